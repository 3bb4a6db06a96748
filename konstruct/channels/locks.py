"""Advisory locks of the channels: what is locked, and under which name."""

from contextlib import AbstractContextManager
from uuid import UUID

from tenants.locking.tenant_locks import held_lock


def delivery_lock(tenant_id: UUID, message_id: UUID) -> AbstractContextManager[bool]:
    """Hold a delivery; gives False at once if another worker holds it."""
    return held_lock(f"konstruct.delivery\x1f{tenant_id}\x1f{message_id}")


def arrivals_lock(tenant_id: UUID, channel: str, workspace: str) -> AbstractContextManager[bool]:
    """Hold what arrives from a workspace; gives False at once if another worker holds it."""
    return held_lock(f"konstruct.arrivals\x1f{tenant_id}\x1f{channel}\x1f{workspace}")
