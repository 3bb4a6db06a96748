"""Chat completions and their chunks, as OpenAI's clients read them. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from konstruct.channels.rest.events import event

DONE: Final = b"data: [DONE]\n\n"
# A text, or calls of the client's tools.
Said = str | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CompletionOf:
    """What the completion and all chunks of one message have in common."""

    message_id: UUID
    created_at: datetime
    model: str
    rounds: int = 0
    """So often the message was answered with calls of the client's tools before."""

    def whole(self, said: Said) -> dict[str, Any]:
        """Return the completion as one object."""
        is_text = isinstance(said, str)
        message: dict[str, Any] = {"role": "assistant", "content": said if is_text else None}
        if not is_text:
            message["tool_calls"] = said
        message["refusal"] = None
        return self._document("chat.completion", {"message": message}, _reason(said))

    def opening(self) -> bytes:
        """Return the first event of a stream: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        """Return an event with some more of the text; nothing for none."""
        return self._chunk({"content": text}) if text else b""

    def rest(self, said: Said, sent: str) -> bytes:
        """Return the last events of a stream, of whose text so much was sent."""
        if isinstance(said, str):
            last = self.piece(said[len(sent) :])
        else:
            calls = [{"index": place, **call} for place, call in enumerate(said)]
            last = self._chunk({"tool_calls": calls})
        return last + self._chunk({}, _reason(said)) + DONE

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        return event(self._document("chat.completion.chunk", {"delta": delta}, finish_reason))

    def _document(
        self, kind: str, choice: dict[str, Any], finish_reason: str | None
    ) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.message_id.hex}{f'-{self.rounds}' if self.rounds else ''}",
            "object": kind,
            "created": int(self.created_at.timestamp()),
            "model": self.model,
            "choices": [
                {"index": 0, **choice, "logprobs": None, "finish_reason": finish_reason},
            ],
        }


def _reason(said: Said) -> str:
    return "stop" if isinstance(said, str) else "tool_calls"
