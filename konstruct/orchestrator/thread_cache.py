"""The keys of open states of threads in the cache: escalations, and tool calls that wait.

The rows are the source, and the product reads them. Other programs read the keys. The key of a
thread exists from the commit that opens a state until the commit that ends it. It has the rows of
the thread as JSON, by the number of their scope (memory/scopes.py), which does not contain the
user's id. After a flush of the cache `write_after_flush` writes all keys again.
"""

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from memory.scopes import scope_number
from tenants import transaction
from tenants.context import execute, public_scope, tenant_scope
from tenants.models import Tenant

logger = logging.getLogger(__name__)

STATES: Final[list["ThreadState"]] = []
# Exists while the cache has the keys of all tenants.
WRITTEN_KEY: Final = "public:thread_states"


@dataclass(frozen=True)
class ThreadState:
    """A state of threads. Creating it registers it."""

    key: Callable[[UUID, str], str]
    open_rows: Callable[[], QuerySet[Any]]
    """Returns the open rows of the current tenant, with agent_id, user_id and thread_id."""
    value_of: Callable[[Any], str]
    """Returns the value of a row."""

    def __post_init__(self) -> None:
        STATES.append(self)

    def write_on_commit(self, tenant_id: UUID, thread_id: str) -> None:
        """Write the key of a thread when the current transaction is committed."""
        transaction.on_commit(partial(self.write, tenant_id, thread_id))

    def write(self, tenant_id: UUID, thread_id: str) -> None:
        """Write the key of a thread from its rows, or delete it if no state is open."""
        key = self.key(tenant_id, thread_id)
        try:
            with tenant_scope(tenant_id), transaction.atomic():
                # The last writer of the key is the one that has read the rows last.
                execute("SELECT public.wait_for_tenant_lock(%s)", [f"konstruct.state {key}"])
                values: dict[str, str] = {}
                for row in self.open_rows().filter(thread_id=thread_id):
                    scope = str(scope_number(row.agent_id, row.user_id))
                    values[scope] = f"{values.get(scope, '')} {self.value_of(row)}".strip()
                client = get_redis_connection("default")
                if values:
                    client.set(key, json.dumps(values))
                else:
                    client.delete(key)
        except RedisError as error:
            logger.warning("a state of a thread is not written: %s", error)


def write_all(tenant_id: UUID, threads: Iterable[str] | None = None) -> None:
    """Write the keys of all open states of a tenant, or of these threads."""
    for state in STATES:
        of_state = threads
        if of_state is None:
            with tenant_scope(tenant_id):
                rows = state.open_rows().order_by().values_list("thread_id", flat=True)
                of_state = list(rows.distinct())
        for thread_id in of_state:
            state.write(tenant_id, thread_id)


def write_after_flush() -> bool:
    """Write the keys of all tenants, if the cache has lost them; return whether it had."""
    client = get_redis_connection("default")
    if client.exists(WRITTEN_KEY):
        return False
    with public_scope():
        tenants = list(Tenant.objects.serving().values_list("pk", flat=True))
    for tenant_id in tenants:
        write_all(tenant_id)
    client.set(WRITTEN_KEY, 1)
    return True
