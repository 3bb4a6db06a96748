"""What waits in tables of a tenant's own stands in the outbox, whoever writes to them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import pytest
from django.db.migrations.executor import MigrationExecutor

from konstruct.channels.models import Arrival, Delivery
from memory.models import Message, PendingEmbedding
from tenants.context import connection, tenant_scope
from tenants.models import OutboxEntry, Tenant

AsOwner = Callable[[], AbstractContextManager[None]]
BEFORE = [("channels", "0006_name_sweep_at"), ("memory", "0015_comment_on_tables")]
AFTER = [("channels", "0007_mirror_in_outbox"), ("memory", "0016_mirror_embeddings_in_outbox")]
MESSAGE = UUID(int=7)


def entries() -> list[tuple[str, int]]:
    return [
        (kind, key.int)
        for kind, key in OutboxEntry.objects.order_by("kind", "key").values_list("kind", "key")
    ]


def let_wait() -> None:
    """A message with an embedding and a delivery, and what has just arrived."""
    message = Message.objects.create(
        id=MESSAGE, agent_id=MESSAGE, user_id="u", thread_id="t", channel="slack", role="user",
        content="?",
    )  # fmt: skip
    PendingEmbedding.objects.create(message=message)
    Delivery.objects.create(message=message, channel="slack", address={})
    Arrival.objects.create(channel="slack", workspace="T1", key="one", event={})


def test_entries_follow_their_rows(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        let_wait()
        number = Arrival.objects.get().pk
        assert entries() == [("arrival", number), ("delivery", 7), ("embedding", 7)]
        moments: dict[str, Any] = {"due_at": "2001-01-01T00:00Z", "sweep_at": "2002-01-01T00:00Z"}
        for model in (Arrival, Delivery):
            model.objects.update(**moments)
        PendingEmbedding.objects.update(due_at=moments["due_at"])
        kept = OutboxEntry.objects.order_by("kind").values_list("sweep_at__year", flat=True)
        assert list(kept) == [2002, 2002, 2001]
        Delivery.objects.update(due_at=None)
        Arrival.objects.update(failed_at=moments["due_at"])
        PendingEmbedding.objects.all().delete()
        assert entries() == []
        Delivery.objects.update(due_at=moments["due_at"])
        Arrival.objects.update(failed_at=None)
        assert entries() == [("arrival", number), ("delivery", 7)]


@pytest.mark.django_db(transaction=True)
def test_what_waits_already_is_found(make_tenant: Callable[[], Tenant], as_owner: AsOwner) -> None:
    tenant = make_tenant()
    with as_owner(), tenant_scope(tenant.id):
        let_wait()
        MigrationExecutor(connection).migrate(BEFORE)
        assert entries() == []
        for _ in range(2):
            MigrationExecutor(connection).migrate(AFTER)
            assert entries() == [("arrival", 1), ("delivery", 7), ("embedding", 7)]
            MigrationExecutor(connection).migrate(BEFORE)
            assert entries() == []
