"""Errors of memory. Each message has the invalid value and the remedy."""

from collections.abc import Collection
from uuid import UUID

from tenants.exceptions import KonstructError


class InvalidArgument(KonstructError, ValueError):
    """An argument has an invalid value."""

    is_usage_error = True


class EmbeddingModelError(KonstructError):
    """The embedding model cannot be found or loaded, or does not have the tables' 384
    dimensions.
    """

    code = "embedding_model"
    public = "The embedding model cannot be used. The operators' log says why."


class FactNotFound(KonstructError, LookupError):
    """The tenant has no such fact."""


class FactBusy(KonstructError):
    """Other requests stored and deleted a fact with the same text during every attempt."""

    code = "busy"

    def __init__(self, attempts: int) -> None:
        super().__init__(
            f"A fact with this text was stored and deleted by others {attempts} times during this"
            " request: try again."
        )


class DuplicateFact(KonstructError, ValueError):
    """A fact cannot be changed into one that exists already."""

    def __init__(self, memory_id: UUID) -> None:
        super().__init__(f"fact {memory_id} says the same of the same agent and user")
        self.memory_id = memory_id


class WrongFactState(KonstructError, ValueError):
    """The decision is not possible in the fact's state."""

    code = "wrong_state"

    def __init__(self, memory_id: UUID, state: str, expected: Collection[str]) -> None:
        super().__init__(
            f"fact {memory_id} is {state}; this is possible for a fact that is"
            f" {' or '.join(expected)}"
        )


class OwnProposal(KonstructError, ValueError):
    """The author of a proposed fact cannot confirm it."""

    code = "own_proposal"

    def __init__(self, memory_id: UUID) -> None:
        super().__init__(f"you proposed fact {memory_id} yourself: somebody else has to confirm it")


class SlotTaken(KonstructError, ValueError):
    """A single-valued slot has another active value."""

    code = "slot_taken"

    def __init__(self, slot: str, memory_id: UUID) -> None:
        super().__init__(
            f"slot {slot} has one value at a time, and fact {memory_id} is active: retract it first"
        )
        self.memory_id = memory_id


class UnknownModelTier(KonstructError, ValueError):
    """A model tier without a token budget."""


class NoTenant(KonstructError):
    """A session store without a tenant was used outside of tenants."""


class SessionTablesOutdated(KonstructError):
    """A tenant's schema lacks LangGraph's tables, or has them in an older version."""


class CheckpointRefused(KonstructError):
    """A checkpoint's value has an object of a class that is not allowed."""


class UnreadableSession(KonstructError):
    """The messages of a thread cannot be read without its graph."""
