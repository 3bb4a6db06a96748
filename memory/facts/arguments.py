"""Checks of the fields of a fact, with the value in the message."""

from datetime import datetime
from uuid import UUID

from django.db.models.expressions import DatabaseDefault

from memory.arguments import content_argument, uuid_argument
from memory.exceptions import InvalidArgument
from memory.facts.versions import Unchanged
from memory.ids import new_id_argument
from memory.models.fact_filters import values_of
from memory.models.facts import MemoryEntry
from tenants.context import current_tenant_id


def tenant_of(entry: MemoryEntry) -> UUID | str:
    """The tenant that an entry names, or else the one that its maker is in."""
    if isinstance(entry.tenant_id, UUID | str):
        return entry.tenant_id
    current = current_tenant_id()
    if current is None:
        raise InvalidArgument("the fact has no tenant_id, and is not stored inside a tenant")
    return current


def check_entry(entry: MemoryEntry) -> None:
    """Put an entry's fields into their types, or say which of them cannot be."""
    content_argument(entry.content)
    if entry.agent_id is not None:
        entry.agent_id = uuid_argument("agent_id", entry.agent_id)
    if entry.user_id is not None:
        new_id_argument("user_id", entry.user_id)
    entry.metadata = {} if entry.metadata is None else entry.metadata
    values_of(entry.metadata)
    for name in ("valid_from", "valid_to", "expires_at"):
        value = getattr(entry, name)
        if not isinstance(value, DatabaseDefault):
            moment_argument(name, value)


def moment_argument(name: str, value: datetime | None) -> datetime | None:
    if value is not None and (not isinstance(value, datetime) or value.tzinfo is None):
        raise InvalidArgument(f"{name}={value!r} is not a time with a time zone")
    return value


def left_or_moment(name: str, value: datetime | Unchanged | None) -> datetime | Unchanged | None:
    return value if isinstance(value, Unchanged) else moment_argument(name, value)
