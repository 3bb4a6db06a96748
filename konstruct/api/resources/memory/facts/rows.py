"""The facts that a caller may see, and those that a caller may change."""

from uuid import UUID

from konstruct.api.auth.caller import Caller
from memory.exceptions import FactNotFound
from memory.models import MemoryEntry
from memory.models.fact_querysets import MemoryEntryQuerySet
from tenants.context import required_tenant_id


def facts_here() -> MemoryEntryQuerySet:
    """All facts and versions of the tenant that we are in."""
    return MemoryEntry.objects.of_tenant(required_tenant_id())


def visible_facts(caller: Caller) -> MemoryEntryQuerySet:
    """The facts and versions that the caller may see.

    To an agent's key, what the agent knows; to a user's, what is known of them: what agents are
    told of the tenant's affairs is not every user's to read.
    """
    facts = facts_here()
    if caller.agent_id is not None:
        facts = facts.known_to(caller.agent_id)
    if caller.user_id is not None:
        facts = facts.filter(user_id=caller.user_id)
    return facts


def locked_fact(caller: Caller, memory_id: UUID) -> MemoryEntry:
    """The fact, which nobody else changes meanwhile; a shared one is not a bound key's to change.

    Raises FactNotFound where there is none.
    """
    own = caller.rows(facts_here().entries().filter(memory_id=memory_id).defer("embedding"))
    fact = own.select_for_update().first()
    if fact is None:
        raise FactNotFound(f"There is no fact {memory_id} that you may change.")
    return fact
