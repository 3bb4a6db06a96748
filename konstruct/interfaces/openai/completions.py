"""Chat completions and their chunks, as OpenAI's clients read them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from konstruct.channels.rest.events import event

CHUNK: Final = "chat.completion.chunk"
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent says: a text, or calls of the client's tools and the text before them."""

    text: str
    calls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] | None = None
    """Tokens as the language model has reported them."""


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

    def whole(self, said: Said) -> dict[str, Any]:
        """Return the completion as one object."""
        message: dict[str, Any] = {"role": "assistant", "content": said.text}
        if said.calls:
            message["content"] = said.text or None
            message["tool_calls"] = said.calls
        message["refusal"] = None
        document = self._document("chat.completion", {"message": message}, _reason(said))
        return document if said.usage is None else {**document, "usage": said.usage}

    def opening(self) -> bytes:
        """Return the first event of a stream: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        """Return an event with some more of the text; nothing for none."""
        return self._chunk({"content": text}) if text else b""

    def rest(self, said: Said, sent: str) -> bytes:
        """Return the last events of a stream, of whose text so much was sent."""
        last = self.piece(said.text[len(sent) :]) if said.text.startswith(sent) else b""
        if said.calls:
            calls = [{"index": place, **call} for place, call in enumerate(said.calls)]
            last += self._chunk({"tool_calls": calls})
        last += self._chunk({}, _reason(said))
        if self.with_usage and said.usage is not None:
            last += event({**self._common(CHUNK), "choices": [], "usage": said.usage})
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
    return "tool_calls" if said.calls else "stop"
