"""Facts are isolated by tenant, and deleted permanently."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import ProgrammingError

from memory.context import MemoryEntry
from memory.exceptions import FactNotFound
from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.exceptions import UnknownTenant
from tenants.models import Tenant
from tests.memory.facts.keeping import MEMORY, contents, fact, rows, store


def test_delete_removes_a_fact_with_its_versions(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})
    MEMORY.update(memory_id, tenant_a.id, content="Ann likes rye.")
    kept = store(tenant_a, "The office opens at nine.", metadata={"topic": "hours"})

    assert MEMORY.delete(memory_id, tenant_a.id) is True
    assert MEMORY.delete(memory_id, tenant_a.id) is False

    assert MEMORY.history(memory_id, tenant_a.id) == []
    assert [entry.memory_id for entry in MEMORY.list_by_tenant(tenant_a.id)] == [kept]
    assert rows(tenant_a) == (1, 1)


def test_other_tenant_reads_and_changes_no_facts(tenant_a: Tenant, tenant_b: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})
    MEMORY.update(memory_id, tenant_a.id, metadata={"topic": "drink"})

    assert MEMORY.search(tenant_b.id, "Ann likes tea.") == []
    assert MEMORY.list_by_tenant(tenant_b.id) == []
    assert MEMORY.get(memory_id, tenant_b.id) is None
    assert MEMORY.history(memory_id, tenant_b.id) == []
    assert MEMORY.delete(memory_id, tenant_b.id) is False
    with pytest.raises(FactNotFound, match=str(memory_id)):
        MEMORY.update(memory_id, tenant_b.id, content="Ann likes ink.")
    assert MEMORY.store(fact(tenant_b, "Ann likes tea.")) != memory_id

    assert len(MEMORY.history(memory_id, tenant_a.id)) == 2
    (entry,) = MEMORY.list_by_tenant(tenant_a.id)
    assert (entry.memory_id, entry.content) == (memory_id, "Ann likes tea.")


def test_an_unknown_tenant_has_no_facts_and_takes_none(tenant_a: Tenant) -> None:
    memory_id = store(tenant_a, "Ann likes tea.")
    nobody = uuid4()

    assert MEMORY.search(nobody, "tea") == []
    assert MEMORY.list_by_tenant(nobody) == []
    assert MEMORY.get(memory_id, nobody) is None
    assert MEMORY.history(memory_id, nobody) == []
    assert MEMORY.delete(memory_id, nobody) is False
    with pytest.raises(UnknownTenant):
        MEMORY.store(MemoryEntry(tenant_id=nobody, content="Ann likes tea."))
    with pytest.raises(UnknownTenant):
        MEMORY.update(memory_id, nobody, content="Ann likes ink.")

    # The transaction of this test survived all of it.
    assert contents(MEMORY.list_by_tenant(tenant_a.id)) == ["Ann likes tea."]


@pytest.mark.of_one_server(reason="it attacks a neighbour on the same server")
@pytest.mark.parametrize("table", ["memory_memoryentry", "memory_memoryattribute"])
def test_postgres_itself_hides_another_tenants_facts(
    tenant_a: Tenant, tenant_b: Tenant, table: str
) -> None:
    memory_id = store(tenant_a, "Ann likes tea.", metadata={"topic": "food"})
    with tenant_scope(tenant_b.id), connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {tenant_a.schema_name}.{table}")
        assert cursor.fetchone() == (0,)
        cursor.execute(f"DELETE FROM {tenant_a.schema_name}.{table}")
        assert cursor.rowcount == 0
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            cursor.execute(
                f"INSERT INTO {tenant_a.schema_name}.memory_memoryattribute"
                " (tenant_id, memory_id, key, kind) VALUES (%s, %s, 'a', 'text')",
                [tenant_a.id, memory_id],
            )
    with (
        tenant_scope(tenant_a.id),
        pytest.raises(ProgrammingError, match="row-level security"),
        transaction.atomic(),
    ):
        MemoryEntry.objects.create(
            tenant_id=tenant_b.id, content="x", embedding=[1.0] * 384, embedding_model="m"
        )


def test_asynchronous_callers_have_the_same_methods(tenant_a: Tenant, tenant_b: Tenant) -> None:
    async def live() -> list[Any]:
        memory_id = await MEMORY.astore(fact(tenant_a, "Ann likes tea."))
        await MEMORY.aupdate(memory_id, tenant_a.id, content="Ann likes rye.")
        found = await asyncio.gather(
            MEMORY.asearch(tenant_a.id, "rye"),
            MEMORY.asearch(tenant_b.id, "rye"),
            MEMORY.alist_by_tenant(tenant_a.id),
            MEMORY.ahistory(memory_id, tenant_a.id),
        )
        gone = (
            await MEMORY.adelete(memory_id, tenant_b.id),
            await MEMORY.adelete(memory_id, tenant_a.id),
        )
        return [contents(entries) for entries in found] + [gone]

    assert async_to_sync(live)() == [
        ["Ann likes rye."],
        [],
        ["Ann likes rye."],
        ["Ann likes rye.", "Ann likes tea."],
        (False, True),
    ]
