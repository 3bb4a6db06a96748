"""Errors of the orchestrator."""

from collections.abc import Mapping, Sequence
from typing import Self
from uuid import UUID

from django.core.exceptions import ValidationError

from tenants.exceptions import KonstructError


class AgentNotFound(KonstructError):
    """No active agent of this tenant has that name or id."""

    is_usage_error = True


class FieldsInvalid(KonstructError):
    """Fields of a row are invalid. `fields` has the messages by field, for programs."""

    fields: Mapping[str, Sequence[str]] = {}

    @classmethod
    def of(cls, error: ValidationError) -> Self:
        """Return the error for the messages of `full_clean`."""
        fields = error.message_dict
        text = "; ".join(f"{field}: {' '.join(messages)}" for field, messages in fields.items())
        invalid = cls(text.replace("__all__: ", ""))
        invalid.fields = fields
        return invalid


class AgentInvalid(FieldsInvalid):
    """A field of an agent is invalid."""

    is_usage_error = True


class AgentContradictory(AgentInvalid):
    """Each field is valid, but their combination is not."""


class AgentNameTaken(AgentInvalid):
    """Another agent of this tenant has the name."""


class LanguageModelInvalid(FieldsInvalid):
    """A field of a language model is invalid."""


class TooManyQuestions(KonstructError):
    """The agent has the maximum number of saved questions."""


class LimitReached(KonstructError):
    """The tenant has the maximum number of such objects."""


class ImportRefused(KonstructError):
    """A file of history, or an option of its import, cannot be used."""

    is_usage_error = True


class RowNotFound(KonstructError):
    """This tenant has no such row, or the caller may not see it."""


class MessageNotFound(RowNotFound):
    """This tenant has no such message."""


class IdempotencyKeyReused(KonstructError):
    """The key belongs to a message with other content."""


class IdempotencyKeyInUse(KonstructError):
    """The first request with this key is still running."""


class Busy(KonstructError):
    """A lock is still held after waiting for it."""

    code = "busy"


class NothingToRetry(KonstructError):
    """Only a failed reply can be retried."""


class EscalationOver(KonstructError):
    """The escalation is resolved already."""


class NothingToEscalate(KonstructError):
    """The user has sent no message in this thread, so that a person cannot answer there."""


class NothingToHandOver(KonstructError):
    """The thread cannot be handed to this agent: it has the thread, or is the thread's own
    agent.
    """


class AlreadyDecided(KonstructError):
    """The tool call does not wait for consent."""


class ProgramToolsInvalid(KonstructError):
    """Tools that a program sends, or the results of their calls, are invalid.

    `parameter` has the path in the request, `openai_code` the code of OpenAI's interface.
    """

    def __init__(self, parameter: str, detail: str, openai_code: str = "invalid_value") -> None:
        super().__init__(detail)
        self.parameter, self.openai_code = parameter, openai_code
        self.fields = {parameter: [detail]}


class ResultsMissing(ProgramToolsInvalid):
    """A program has not sent the results of all calls of its tools. `calls` has the others."""

    def __init__(self, calls: Sequence[UUID]) -> None:
        detail = f"The results of these calls are missing: {', '.join(map(str, calls))}."
        super().__init__("results", detail, "tool_result_missing")
        self.calls = calls


class NothingToLink(KonstructError):
    """The identity belongs to this user already, or is not linked."""


class ExtractionFailed(KonstructError):
    """A language model's answer has no list of facts, or there are no messages."""

    code = "extraction_failed"


class ExtractionLimitReached(KonstructError):
    """The agent has used its tokens for facts of today (UTC)."""

    code = "extraction_limit_reached"


class WrongState(KonstructError):
    """The operation is not possible in the state of the row."""
