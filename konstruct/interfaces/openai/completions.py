"""Chat completions and their chunks, as OpenAI's clients read them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from konstruct.channels.rest.events import event
from konstruct.interfaces.openai.following import Report

CHUNK: Final = "chat.completion.chunk"
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent says: a text, or calls of the client's tools and the text before them."""

    text: str
    calls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] | None = None
    """Tokens as the language model has reported them."""
    finish_reason: str = "stop"
    """Why the language model ended it: "stop", "length" or "content_filter"."""
    answered_by: UUID | None = None
    """The agent that wrote it, if it is a reply."""


@dataclass(frozen=True, slots=True)
class CompletionOf:
    """What the completion and all chunks of one message have in common."""

    message_id: UUID
    created_at: datetime
    model: str
    report: Report
    """The parts of the request that are not followed as they were sent."""
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
        document |= {} if said.usage is None else {"usage": said.usage}
        return document | self._reported()

    def opening(self) -> bytes:
        """Return the first event of a stream: the role, and the report that is known so far.

        OpenAI's libraries keep the report of the first chunk in the completion that they put
        together of a stream.
        """
        delta = {"role": "assistant", "content": ""}
        return event(self._document(CHUNK, {"delta": delta}, None) | self._reported())

    def piece(self, text: str) -> bytes:
        """Return an event with some more of the text; nothing for none."""
        return self._chunk({"content": text}) if text else b""

    def rest(self, said: Said, sent: str) -> bytes:
        """Return the last events of a stream, of whose text so much was sent."""
        last = self.piece(said.text[len(sent) :]) if said.text.startswith(sent) else b""
        if said.calls:
            calls = [{"index": place, **call} for place, call in enumerate(said.calls)]
            last += self._chunk({"tool_calls": calls})
        last += event(self._document(CHUNK, {"delta": {}}, _reason(said)) | self._reported())
        if self.with_usage and said.usage is not None:
            last += event({**self._common(CHUNK), "choices": [], "usage": said.usage})
        return last + DONE

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return event(self._document(CHUNK, {"delta": delta}, None))

    def _reported(self) -> dict[str, Any]:
        """The field that OpenAI's API does not have, and that its clients keep unchanged."""
        document = self.report.document()
        return {"konstruct": document} if document else {}

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
    return "tool_calls" if said.calls else said.finish_reason
