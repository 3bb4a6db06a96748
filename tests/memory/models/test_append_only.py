"""Postgres refuses changes of append-only tables."""

from uuid import UUID

import pytest
from django.apps import apps
from django.db import ProgrammingError
from psycopg.errors import InsufficientPrivilege

from memory.models import ConversationEmbedding, Message, PendingEmbedding, Scope, WindowClear
from tenants import transaction
from tenants.context import connection, current_server, tenant_scope
from tests.memory.recall_traces import store_trace

AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")
# Tables that the application may change: jobs, and facts, which are corrected and deleted.
CHANGEABLE = {
    *("memory_pendingembedding", "memory_memoryentry", "memory_memoryattribute"),
    "memory_conversationitem",  # which the framework takes back that has added it
    *("memory_factevidence", "memory_factevent"),  # which are deleted with their fact
    "memory_conversation",  # titles and metadata
    "memory_recallexclusion",  # which is removed when the correction is undone
}


@pytest.fixture
def one_of_each(tenant_a, add_message):
    """Create a row in each append-only table."""
    message = add_message(tenant_a.id, "My sister lives in Lisbon.")
    with tenant_scope(tenant_a.id):
        scope = {"agent_id": AGENT, "user_id": "ann"}
        rows = [
            message,
            ConversationEmbedding.objects.create(
                **scope, content="x", role="user", embedding=[1.0] * 384
            ),
            Scope.objects.create(**scope, id=1),
            store_trace(**scope),
            WindowClear.objects.create(**scope, last_number=0),
        ]
    return rows


def refused(statement):
    with pytest.raises(ProgrammingError) as caught, transaction.atomic():
        statement()
    return isinstance(caught.value.__cause__, InsufficientPrivilege)


def test_update_and_delete_are_refused_and_change_nothing(tenant_a, one_of_each):
    with tenant_scope(tenant_a.id):
        for row in one_of_each:
            model = type(row)
            before = list(model.objects.values())
            field = "content" if hasattr(row, "content") else "user_id"
            assert refused(lambda m=model, f=field: m.objects.update(**{f: "forged"}))
            assert refused(lambda r=row, f=field: r.save(force_update=True))
            assert refused(lambda m=model: m.objects.all()._raw_delete(current_server()))
            with connection.cursor() as cursor:
                table = model._meta.db_table
                assert refused(lambda c=cursor, t=table: c.execute(f"TRUNCATE {t} CASCADE"))
                assert refused(lambda c=cursor, t=table: c.execute(f"SELECT 1 FROM {t} FOR UPDATE"))
            assert list(model.objects.values()) == before


def test_only_jobs_and_facts_can_be_changed(tenant_a):
    """A new table is append-only until it is listed here."""
    tables = {model._meta.db_table for model in apps.get_app_config("memory").get_models()}
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, privilege_type FROM information_schema.role_table_grants"
            " WHERE grantee = 'konstruct_app' AND table_schema = %s AND table_name = ANY (%s)",
            [tenant_a.schema_name, sorted(tables)],
        )
        granted = set(cursor.fetchall())
    assert {table for table, privilege in granted if privilege in ("UPDATE", "DELETE")} <= (
        CHANGEABLE
    )
    assert {table for table, privilege in granted if privilege == "SELECT"} == tables


def test_another_tenants_id_cannot_be_written(tenant_a, tenant_b, add_message):
    message = add_message(tenant_a.id, "mine")
    with tenant_scope(tenant_a.id):
        forged = Message(
            agent_id=AGENT,
            user_id="ann",
            channel="rest",
            role="user",
            content="forged",
            tenant_id=tenant_b.id,
        )
        assert refused(lambda: forged.save(force_insert=True))
        assert refused(
            lambda: ConversationEmbedding.objects.create(
                agent_id=AGENT,
                user_id="ann",
                content="x",
                role="user",
                embedding=[1.0] * 384,
                tenant_id=tenant_b.id,
            )
        )
        assert refused(
            lambda: PendingEmbedding.objects.filter(pk=message.pk).update(tenant_id=tenant_b.id)
        )
        assert list(Message.objects.values_list("content", "tenant_id")) == [("mine", tenant_a.id)]
    with tenant_scope(tenant_b.id):
        assert Message.objects.count() == ConversationEmbedding.objects.count() == 0
