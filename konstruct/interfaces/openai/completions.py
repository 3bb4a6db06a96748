"""Chat completions and their chunks, as OpenAI's clients read them. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

DONE: Final = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class CompletionOf:
    """What the completion and all chunks of one message have in common."""

    message_id: UUID
    created_at: datetime
    model: str

    def whole(self, text: str) -> dict[str, Any]:
        """Return the completion as one object."""
        return self._document(
            "chat.completion",
            {"message": {"role": "assistant", "content": text, "refusal": None}},
            "stop",
        )

    def opening(self) -> bytes:
        """Return the first event of a stream: who speaks."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        """Return an event with some more of the text; nothing for none."""
        return self._chunk({"content": text}) if text else b""

    def closing(self) -> bytes:
        """Return the last events of a stream that is complete."""
        return self._chunk({}, "stop") + DONE

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        return event(self._document("chat.completion.chunk", {"delta": delta}, finish_reason))

    def _document(
        self, kind: str, choice: dict[str, Any], finish_reason: str | None
    ) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.message_id.hex}",
            "object": kind,
            "created": int(self.created_at.timestamp()),
            "model": self.model,
            "choices": [
                {"index": 0, **choice, "logprobs": None, "finish_reason": finish_reason},
            ],
        }


def event(document: Mapping[str, Any]) -> bytes:
    """Return one server-sent event."""
    return f"data: {json.dumps(document)}\n\n".encode()
