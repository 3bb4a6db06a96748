"""Chat completions and their chunks, as OpenAI's clients read them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from konstruct.channels.rest.responses import event

CHUNK: Final = "chat.completion.chunk"
DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """An agent's answer: a text, or calls of the client's tools and the text before them."""

    text: str
    calls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] | None = None
    """The number of tokens, as the language model reports it."""
    finish_reason: str = "stop"
    """The language model's reason to stop: "stop", "length" or "content_filter"."""
    answered_by: UUID | None = None
    """The agent that wrote the text, if it is a reply."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The completion of a message, and its chunks."""

    message_id: UUID
    created_at: datetime
    model: str
    report: Mapping[str, Any]
    """The parts of the request that are not followed as they were sent."""
    rounds: int = 0
    """The number of earlier answers with calls of the client's tools."""
    with_usage: bool = False
    """Whether a stream ends with the number of its tokens."""

    def document(self, answer: Answer) -> dict[str, Any]:
        """Return the completion as one object."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        if answer.calls:
            message["content"] = answer.text or None
            message["tool_calls"] = answer.calls
        message["refusal"] = None
        document = self._document("chat.completion", {"message": message}, _finish_reason(answer))
        document |= {} if answer.usage is None else {"usage": answer.usage}
        return document | self._report_field()

    def opening_event(self) -> bytes:
        """Return the first event of a stream: the role and the report.

        OpenAI's libraries keep the report of the first chunk in the completion that they build
        from a stream.
        """
        delta = {"role": "assistant", "content": ""}
        return event(self._document(CHUNK, {"delta": delta}, None) | self._report_field())

    def text_event(self, text: str) -> bytes:
        """Return an event with more of the text; nothing for an empty text."""
        return self._chunk({"content": text}) if text else b""

    def closing_events(self, answer: Answer, sent: str) -> bytes:
        """Return the last events of a stream that has sent this text so far."""
        events = self.text_event(answer.text[len(sent) :]) if answer.text.startswith(sent) else b""
        if answer.calls:
            calls = [{"index": index, **call} for index, call in enumerate(answer.calls)]
            events += self._chunk({"tool_calls": calls})
        events += event(
            self._document(CHUNK, {"delta": {}}, _finish_reason(answer)) | self._report_field()
        )
        if self.with_usage and answer.usage is not None:
            events += event({**self._common_fields(CHUNK), "choices": [], "usage": answer.usage})
        return events + DONE

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return event(self._document(CHUNK, {"delta": delta}, None))

    def _report_field(self) -> dict[str, Any]:
        """Return the report, in a field that OpenAI's API does not have and its clients keep."""
        return {"konstruct": self.report} if self.report else {}

    def _document(
        self, kind: str, choice: dict[str, Any], finish_reason: str | None
    ) -> dict[str, Any]:
        return {
            **self._common_fields(kind),
            "choices": [
                {"index": 0, **choice, "logprobs": None, "finish_reason": finish_reason},
            ],
        }

    def _common_fields(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.message_id.hex}{f'-{self.rounds}' if self.rounds else ''}",
            "object": kind,
            "created": int(self.created_at.timestamp()),
            "model": self.model,
        }


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else answer.finish_reason
