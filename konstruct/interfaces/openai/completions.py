"""Chat completions and their chunks, as OpenAI's clients read them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from konstruct.channels.rest.events import event

CHUNK: Final = "chat.completion.chunk"
DONE: Final = b"data: [DONE]\n\n"
# A text, or calls of the client's tools.
Said = str | list[dict[str, Any]]
# Tokens as the language model has reported them.
Usage = Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class CompletionOf:
    """What the completion and all chunks of one message have in common."""

    message_id: UUID
    created_at: datetime
    model: str
    rounds: int = 0
    """So often the message was answered with calls of the client's tools before."""
    with_usage: bool = False
    """Whether a stream ends with the tokens that it took."""

    def whole(self, said: Said, usage: Usage = None) -> dict[str, Any]:
        """Return the completion as one object."""
        is_text = isinstance(said, str)
        message: dict[str, Any] = {"role": "assistant", "content": said if is_text else None}
        if not is_text:
            message["tool_calls"] = said
        message["refusal"] = None
        document = self._document("chat.completion", {"message": message}, _reason(said))
        return document if usage is None else {**document, "usage": usage}

    def opening(self) -> bytes:
        """Return the first event of a stream: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        """Return an event with some more of the text; nothing for none."""
        return self._chunk({"content": text}) if text else b""

    def rest(self, said: Said, sent: str, usage: Usage = None) -> bytes:
        """Return the last events of a stream, of whose text so much was sent."""
        if isinstance(said, str):
            last = self.piece(said[len(sent) :])
        else:
            calls = [{"index": place, **call} for place, call in enumerate(said)]
            last = self._chunk({"tool_calls": calls})
        last += self._chunk({}, _reason(said))
        if self.with_usage and usage is not None:
            last += event({**self._common(CHUNK), "choices": [], "usage": usage})
        return last + DONE

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        return event(self._document(CHUNK, {"delta": delta}, finish_reason))

    def _document(
        self, kind: str, choice: dict[str, Any], finish_reason: str | None
    ) -> dict[str, Any]:
        return {
            **self._common(kind),
            "choices": [
                {"index": 0, **choice, "logprobs": None, "finish_reason": finish_reason},
            ],
        }

    def _common(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.message_id.hex}{f'-{self.rounds}' if self.rounds else ''}",
            "object": kind,
            "created": int(self.created_at.timestamp()),
            "model": self.model,
        }


def _reason(said: Said) -> str:
    return "stop" if isinstance(said, str) else "tool_calls"
