"""The model of a table declares its personal data once; all code of privacy reads that."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.core import checks
from django.db import models

from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent
from konstruct.privacy import jobs
from konstruct.privacy.archive.exporting import export_memory
from konstruct.privacy.archive.importing import import_memory
from konstruct.privacy.erasure.erasing import carry_out
from konstruct.privacy.erasure.messages import apply_rules
from konstruct.privacy.jobs import MERGE
from memory.models import AgentUserModel, Message
from tenants import personal_data
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind, RetentionRule
from tenants.context import connection, public_scope, tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")
LONG_AGO = datetime.now(UTC) - timedelta(days=9)
DIARY = """
    CREATE TABLE {0}.memory_diary (
        id uuid PRIMARY KEY,
        tenant_id uuid NOT NULL DEFAULT current_setting('app.current_tenant')::uuid,
        agent_id uuid NOT NULL,
        user_id text NOT NULL,
        message_id uuid REFERENCES {0}.memory_message DEFERRABLE INITIALLY DEFERRED,
        content text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    )
"""


@pytest.fixture
def table(tenant_a: Tenant) -> Iterator[None]:
    """Create a table without a model. The owner works in its tenant."""
    with database.as_owner(), tenant_scope(tenant_a.id):
        with connection.cursor() as cursor:
            cursor.execute(DIARY.format(tenant_a.schema_name))
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute(f"DROP TABLE {tenant_a.schema_name}.memory_diary")


@pytest.fixture
def declare() -> Iterator[Callable[..., Any]]:
    """Create the table's model with these attributes."""

    def declare(**attributes: Any) -> Any:
        fields = {
            "__module__": __name__,
            "id": models.UUIDField(primary_key=True, default=uuid4),
            "message": models.ForeignKey(
                Message, on_delete=models.PROTECT, null=True, related_name="+"
            ),
            "content": models.TextField(),
            "created_at": models.DateTimeField(default=lambda: datetime.now(UTC)),
            "Meta": type("Meta", (), {"app_label": "memory"}),
        }
        return type("Diary", (AgentUserModel,), fields | attributes)

    yield declare
    apps.all_models["memory"].pop("diary", None)
    apps.clear_cache()


def unknown(tenant: Tenant) -> list[str]:
    with connection.cursor() as cursor:
        return personal_data.undeclared_names(cursor, tenant.schema_name)


def failed_checks() -> list[str]:
    return [
        message.msg
        for message in checks.run_checks(tags=["tenants"])
        if message.id == "tenants.E006"
    ]


def test_every_table_is_declared(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        assert unknown(tenant_a) == []
    with public_scope(), connection.cursor() as cursor:
        assert personal_data.undeclared_names(cursor, personal_data.PUBLIC) == []
    assert failed_checks() == []


def test_a_declaration_names_tables_that_there_are(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'v')"
            " AND relnamespace IN (current_schema()::regnamespace, 'public'::regnamespace)"
        )
        assert personal_data.declarations().keys() == {name for (name,) in cursor.fetchall()}


def test_rows_are_deleted_before_those_they_refer_to() -> None:
    order = list(personal_data.personal_tables())
    for table in ("memory_conversationembedding", "channels_delivery", "orchestrator_toolcall"):
        assert order.index(table) < order.index("memory_message")
    assert order.index("memory_memoryattribute") < order.index("memory_memoryentry")
    assert order.index("channels_arrival") < order.index("orchestrator_channelidentity")


def test_one_declaration_is_all_that_a_new_table_needs(
    tenant_a: Tenant,
    table: None,
    declare: Callable[..., Any],
    agent: Agent,
    send_message: SendMessage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    diary = declare(
        personal_data=personal_data.PersonalData(
            subject="user_id",
            agent="agent_id",
            message="message_id",
            key="id",
            export=personal_data.Export(kind="diaries", position=99),
            retention="message_id IS NULL AND created_at < %(before)s",
        )
    )
    assert (
        personal_data.personal_tables()["memory_diary"].on_erasure is personal_data.OnErasure.DELETE
    )
    assert (unknown(tenant_a), failed_checks()) == ([], [])

    def write(message: Message | None, user_id: str, **values: Any) -> None:
        diary.objects.create(
            agent_id=agent.id, user_id=user_id, message=message, content="Rex", **values
        )

    def users() -> list[str]:
        return sorted(diary.objects.values_list("user_id", flat=True))

    # Known users, and a merge of two.
    assert not channel_identities.is_known(["U1"])
    identity = channel_identities.identity_of("slack", "T1", "U1")
    write(send_message("My dog is called Rex.", "U1", "dm"), "U1")
    write(None, "U1")
    write(send_message("I have a cat.", "theo", "his"), "theo")
    assert channel_identities.is_known(["U1"])
    channel_identities.link(identity, "maria", by="eva")
    monkeypatch.setattr(jobs, "MIN_AGE", timedelta(0))
    assert MERGE.run_due() == 1
    assert users() == ["maria", "maria", "theo"]

    # Export and import, of all and of one user.
    manifest = export_memory(tenant_a, tmp_path / "all.db")
    assert manifest.counts["diaries"] == 3
    assert export_memory(tenant_a, tmp_path / "one.db", user_id="maria").counts["diaries"] == 2
    diary.objects.all().delete()
    import_memory(tenant_a, tmp_path / "all.db", expected_digest=manifest.digest)
    assert users() == ["maria", "maria", "theo"]

    # Retention: rows of old messages, and old rows without one.
    RetentionRule.objects.create(agent_id=agent.id, days=1)
    write(None, "theo", created_at=LONG_AGO)
    Message.objects.filter(user_id="theo").update(created_at=LONG_AGO)
    assert [*apply_rules().values()] == [2]
    assert users() == ["maria", "maria"]

    # Erasure.
    receipt = carry_out(request_erasure("maria", by=EVA)).receipt
    assert receipt is not None
    assert receipt["tables"]["memory_diary"]["removed"] == 2
    assert "sha256_of_ids" in json.loads(json.dumps(receipt))["tables"]["memory_diary"]
    assert users() == []
    assert not channel_identities.is_known(["maria", "U1"])
