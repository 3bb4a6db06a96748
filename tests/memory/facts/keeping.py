"""Store facts in tests, and read the current ones."""

from typing import Any
from uuid import UUID

from memory.context import LongTermMemory, MemoryEntry
from memory.models import MemoryAttribute
from tenants.context import tenant_scope
from tenants.models import Tenant

AGENT, OTHER_AGENT = UUID(int=1), UUID(int=2)
MEMORY = LongTermMemory()


def fact(tenant: Tenant, content: str, **fields: Any) -> MemoryEntry:
    return MemoryEntry(tenant_id=tenant.id, content=content, **{"agent_id": AGENT, **fields})


def store(tenant: Tenant, content: str, **fields: Any) -> UUID:
    return MEMORY.store(fact(tenant, content, **fields))


def contents(entries: list[MemoryEntry]) -> list[str]:
    return [entry.content for entry in entries]


def rows(tenant: Tenant) -> tuple[int, int]:
    """Return the numbers of facts, versions and attributes."""
    with tenant_scope(tenant.id):
        return MemoryEntry.objects.count(), MemoryAttribute.objects.count()
