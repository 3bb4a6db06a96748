"""Advisory locks of the channels."""

from contextlib import AbstractContextManager
from uuid import UUID

from tenants.locking.tenant_locks import held_lock


def delivery_lock(tenant_id: UUID, message_id: UUID) -> AbstractContextManager[bool]:
    """Lock a delivery. Yields False at once if another worker has locked it."""
    return held_lock(f"konstruct.delivery\x1f{tenant_id}\x1f{message_id}")


def arrivals_lock(tenant_id: UUID, channel: str, workspace: str) -> AbstractContextManager[bool]:
    """Lock the inbox of a workspace. Yields False at once if another worker has locked it."""
    return held_lock(f"konstruct.arrivals\x1f{tenant_id}\x1f{channel}\x1f{workspace}")
