"""What can go wrong between a message and its reply."""

from collections.abc import Mapping, Sequence
from typing import Self

from tenants.exceptions import KonstructError


class AgentNotFound(KonstructError):
    """No active agent of this tenant has that name or id."""


class AgentInvalid(KonstructError):
    """An agent cannot be like this; the message names the fields, as `fields` does for programs."""

    fields: Mapping[str, Sequence[str]] = {}

    @classmethod
    def because(cls, fields: Mapping[str, Sequence[str]]) -> Self:
        """Return the error for what is wrong with each field; `__all__` is the agent as a whole."""
        words = "; ".join(f"{field}: {' '.join(wrong)}" for field, wrong in fields.items())
        error = cls(words.replace("__all__: ", ""))
        error.fields = fields
        return error


class AgentContradictory(AgentInvalid):
    """Every field could be like this, but not all of them together."""


class AgentNameTaken(AgentInvalid):
    """Another agent of this tenant has the name."""


class AgentVersionNotFound(KonstructError):
    """The agent has no version of this number."""


class TooManyQuestions(KonstructError):
    """The agent has as many saved questions as it may."""


class TrialUnreadable(KonstructError):
    """A text is not the trial of this author with this agent, or is too old."""


class MessageNotFound(KonstructError):
    """This tenant has no such message."""


class IdempotencyKeyReused(KonstructError):
    """The key already stands for a message with other contents."""


class IdempotencyKeyInUse(KonstructError):
    """The first request with this key is still at work."""


class Busy(KonstructError):
    """A lock was waited for, and is still held."""

    code = "busy"


class NothingToRetry(KonstructError):
    """Only a reply that was given up can be tried again."""


class EscalationNotFound(KonstructError):
    """This tenant has no such escalation."""


class EscalationOver(KonstructError):
    """The escalation is resolved already."""


class NothingToEscalate(KonstructError):
    """Nothing was said in this thread: a person could not answer there."""


class WithAnotherAgent(KonstructError):
    """An agent answers in this thread: a person could not until it is given to one."""


class NothingToHandOver(KonstructError):
    """The thread cannot be handed to this agent: it has it, or it is the thread's own."""


class ToolCallNotFound(KonstructError):
    """This tenant has no such tool call, or it is not this user's to decide."""


class AlreadyDecided(KonstructError):
    """The tool call does not wait for consent (any more)."""


class IdentityNotFound(KonstructError):
    """This tenant has no such identity."""


class PersonBeingErased(KonstructError):
    """Who is who cannot change while the person is being erased."""


class NothingToLink(KonstructError):
    """The identity speaks as this user already, or is not linked."""


class ExtractionFailed(KonstructError):
    """A language model's answer has no list of facts, or there is nothing to extract from."""

    code = "extraction_failed"


class ExtractionLimitReached(KonstructError):
    """The agent has used its tokens for facts of today (UTC)."""

    code = "extraction_limit_reached"


class ExtractionRunNotFound(KonstructError):
    """This tenant has no such extraction run."""


class WrongRunState(KonstructError):
    """The extraction run has another state than this needs."""
