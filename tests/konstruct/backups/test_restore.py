"""A backup is restored after erasures: the people stay erased."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management.base import CommandError
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from konstruct.api.auth.keys import issue_key, revoke_key
from konstruct.api.models import ApiKey
from konstruct.consistency import verify
from konstruct.orchestrator.identities.erasure_requests import (
    request_erasure,
    request_message_erasure,
)
from konstruct.orchestrator.models import Agent
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message
from tenants import journal
from tenants.audit.models import ErasureRequest, MessageErasure, RetentionRule
from tenants.audit.tombstones import MEMBER, enqueue_tombstones
from tenants.context import tenant_scope
from tenants.models import Job, Tenant
from tenants.schemas import provisioning
from tests import database
from tests.konstruct.backups.conftest import BY, Backup, dumped, owner_works, run, texts
from tests.konstruct.conftest import SendMessage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def drop(tenant: Tenant) -> None:
    with database.cleaner("default").cursor() as cursor:
        cursor.execute(f"DROP SCHEMA {tenant.schema_name} CASCADE")


def test_erasures_after_the_backup_are_repeated(
    tenant_a: Tenant, tenant_b: Tenant, send_message: SendMessage, backup: Backup
) -> None:
    send_message(tenant_a, "My canary is called Zyxomma.", "anna")
    send_message(tenant_a, "My dog is called Rex.", "ben")
    quiet = send_message(tenant_a, "My password is Quokkasaurus.", "ben", thread_id="secrets")
    send_message(tenant_a, "My cat is called Wombatella.", "cleo", thread_id="cats")
    send_message(tenant_b, "Of another tenant.")
    with tenant_scope(tenant_a.id):
        agent = Agent.objects.get()
        fact = MemoryEntry(agent_id=agent.id, content="Ben lives in Kookaburra Lane.")
        LongTermMemory().store(fact)
        key, _ = issue_key(tenant_id=tenant_a.id, name="leaked")
        kept, text = issue_key(tenant_id=tenant_a.id, name="kept")
        member = User.objects.create(username="former", is_staff=True)
        User.objects.create(username="present", is_staff=True)
    made = backup("--tenant", "tenant-a")
    before_of_b = texts(tenant_b)
    with tenant_scope(tenant_a.id):
        request = request_erasure("anna", by=BY)
        one = request_message_erasure(
            agent_id=agent.id, user_id="ben", thread_id="secrets", message_id=quiet.pk, by=BY
        )
        request_message_erasure(agent_id=agent.id, user_id="cleo", thread_id="cats", by=BY)
        LongTermMemory().delete(fact.pk, tenant_a.id)
        revoke_key(key.pk)
        User.objects.filter(pk=member.pk).update(is_active=False)
        enqueue_tombstones(MEMBER, member.pk)
    owner_works()
    send_message(tenant_a, "This came later.", "ben")
    with tenant_scope(tenant_a.id):
        receipt = ErasureRequest.objects.get(pk=request.pk).receipt
    assert receipt is not None
    assert receipt["journal"] == "written"
    drop(tenant_a)
    output = run("restore", made, "--tenant", "tenant-a", "--yes")
    assert "3 erasures repeated" in output
    assert "tenant-a is as of" in output
    left = dumped(tenant_a)
    for word in ("Zyxomma", "Quokkasaurus", "Wombatella", "Kookaburra", "anna"):
        assert word not in left
    assert texts(tenant_a)[:1] == ["My dog is called Rex."]
    assert "This came later." not in left
    with tenant_scope(tenant_a.id):
        assert ErasureRequest.objects.get(pk=request.pk).done_at is not None
        assert MessageErasure.objects.get(pk=one.pk).done_at is not None
        assert ApiKey.objects.get(pk=key.pk).revoked_at is not None
        assert ApiKey.objects.get(pk=kept.pk).revoked_at is None
        assert dict(User.objects.values_list("username", "is_active")) == {
            "former": False,
            "present": True,
        }
    with database.as_owner():
        assert verify(tenant_a.id, "a").findings == []
    answer = Client().get(
        "/api/v1/agents/", HTTP_HOST="localhost", HTTP_AUTHORIZATION=f"Bearer {text}"
    )
    assert answer.status_code == 200
    assert texts(tenant_b) == before_of_b
    send_message(tenant_a, "Here again.", "ben")


@pytest.mark.data
def test_restore_keeps_entries_that_the_owner_worker_has_not_recorded(
    tenant_a: Tenant, send_message: SendMessage, backup: Backup
) -> None:
    send_message(tenant_a, "My canary is called Zyxomma.", "anna")
    secret = send_message(tenant_a, "My password is Quokkasaurus.", "ben")
    send_message(tenant_a, "My dog is called Rex.", "ben")
    with tenant_scope(tenant_a.id):
        agent = Agent.objects.get()
        key, _ = issue_key(tenant_id=tenant_a.id, name="leaked")
    made = backup("--tenant", "tenant-a")
    with tenant_scope(tenant_a.id):
        request = request_erasure("anna", by=BY)
        request_message_erasure(
            agent_id=agent.id, user_id="ben", thread_id="t", message_id=secret.pk, by=BY
        )
        revoke_key(key.pk)
    output = run("restore", made, "--tenant", "tenant-a", "--yes")
    assert "2 erasures repeated" in output
    left = dumped(tenant_a)
    for word in ("Zyxomma", "Quokkasaurus", "anna"):
        assert word not in left
    assert texts(tenant_a)[0] == "My dog is called Rex."
    with tenant_scope(tenant_a.id):
        assert ErasureRequest.objects.get(pk=request.pk).done_at is not None
        assert ApiKey.objects.get(pk=key.pk).revoked_at is not None


@pytest.mark.data
def test_deleted_tenant_is_closed_after_a_recovery(
    make_tenant: database.MakeTenant, tenant_a: Tenant
) -> None:
    tenant = make_tenant("back")
    moment = timezone.now().isoformat()
    # As if its deletion had been requested before the moment, and done after it.
    provisioning.request_deletion(tenant)
    journal.append(tenant.pk, journal.TENANT)
    assert "back stays closed, because it was deleted" in run(
        "restore", "--recovered-to", moment, "--yes"
    )
    states = dict(Tenant.objects.values_list("slug", "state"))
    assert states == {"tenant-a": "active", "tenant-b": "active", "back": "restoring"}
    run("restore", "--recovered-to", moment, "--undelete", "--yes")
    found = Tenant.objects.get(pk=tenant.pk)
    assert (found.state, found.deletion_asked_at) == ("active", None)


@pytest.mark.data
def test_restore_of_all_includes_a_tenant_after_a_failed_deletion(
    make_tenant: database.MakeTenant, backup: Backup
) -> None:
    tenant = make_tenant("kept")
    made = backup()

    def fail(tenant: Tenant) -> None:
        raise ConnectionError("no log")

    with database.as_owner():
        with pytest.raises(ConnectionError):
            provisioning.delete_tenant(tenant, on_delete=fail)
        provisioning.resume_tenant(tenant)
    kinds = [entry["kind"] for entry in journal.read() if entry["tenant"] == str(tenant.pk)]
    assert kinds == ["tenant deletion begun", "tenant", "tenant deletion failed"]
    assert "left out" not in run("restore", made, "--all", "--yes")
    with database.as_owner():
        provisioning.delete_tenant(tenant)
    assert "kept: left out, because it was deleted" in run(
        "restore", made, "--all", "--again", "--yes"
    )


def test_person_who_returned_before_the_backup_is_not_erased_again(
    tenant_a: Tenant, send_message: SendMessage, backup: Backup
) -> None:
    send_message(tenant_a, "The first time.", "anna")
    with tenant_scope(tenant_a.id):
        request_erasure("anna", by=BY)
    owner_works()
    send_message(tenant_a, "The second time.", "anna")
    made = backup()
    run("restore", made, "--tenant", "tenant-a", "--yes")
    assert texts(tenant_a)[0] == "The second time."


def test_retention_and_open_requests_are_carried_out_before_the_tenant_serves(
    tenant_a: Tenant, send_message: SendMessage, backup: Backup
) -> None:
    send_message(tenant_a, "Old.", "ben")
    send_message(tenant_a, "New.", "cleo")
    send_message(tenant_a, "Open.", "anna")
    with database.cleaner("default").cursor() as cursor:
        cursor.execute(f"SET app.current_tenant = '{tenant_a.id}'")
        cursor.execute(
            f"UPDATE {tenant_a.schema_name}.memory_message"
            " SET created_at = now() - interval '10 days' WHERE user_id = 'ben'"
        )
        cursor.execute("RESET app.current_tenant")
    with tenant_scope(tenant_a.id):
        agent = Agent.objects.get()
        request_erasure("anna", by=BY)  # the owner worker has not started
    made = backup()
    with tenant_scope(tenant_a.id):
        rule = RetentionRule.objects.create(agent_id=agent.id, days=5)
    owner_works()
    with tenant_scope(tenant_a.id):
        rule.delete()  # only the journal has it
    (entry,) = [entry for entry in journal.read() if entry["kind"] == "retention"]
    assert entry["agent"] == str(agent.id)
    run("restore", made, "--tenant", "tenant-a", "--yes")
    assert texts(tenant_a)[0] == "New."
    left = dumped(tenant_a)
    assert "Old." not in left
    assert "Open." not in left


def test_logins_of_before_end(tenant_a: Tenant, backup: Backup) -> None:
    with tenant_scope(tenant_a.id):
        Session.objects.create(session_key="s", session_data="", expire_date=timezone.now())
    run("restore", backup(), "--tenant", "tenant-a", "--yes")
    with tenant_scope(tenant_a.id):
        assert not Session.objects.exists()


@pytest.mark.data
def test_deleted_tenant_is_restored_only_on_request(
    make_tenant: database.MakeTenant, send_message: SendMessage, backup: Backup
) -> None:
    tenant = make_tenant("gone")
    send_message(tenant, "My dog is called Rex.")
    quotas = {"messages": {"hard": 1000}}
    with database.as_owner():
        Tenant.objects.filter(pk=tenant.pk).update(quotas=quotas)
    made = backup()
    with database.as_owner():
        provisioning.delete_tenant(tenant)
    with pytest.raises(CommandError, match="pass --undelete"):
        run("restore", made, "--tenant", "gone", "--yes")
    assert "gone: left out" in run("restore", made, "--all", "--yes")
    run("restore", made, "--tenant", "gone", "--undelete", "--yes")
    assert texts(tenant)[0] == "My dog is called Rex."
    assert Tenant.objects.get(pk=tenant.pk).quotas == quotas
    # The journal knows that it is restored.
    run("restore", made, "--tenant", "gone", "--yes")
    # As if a further deletion had been killed before its commit.
    provisioning.request_deletion(tenant)
    journal.append(tenant.pk, journal.TENANT)
    with pytest.raises(CommandError, match="pass --undelete"):
        run("restore", made, "--tenant", "gone", "--yes")
    run("restore", made, "--tenant", "gone", "--undelete", "--yes")
    assert Tenant.objects.get(pk=tenant.pk).deletion_asked_at is None
    run("restore", made, "--tenant", "gone", "--yes")


@pytest.mark.data
def test_tenant_with_findings_is_restored_closed(
    tenant_a: Tenant, send_message: SendMessage, backup: Backup
) -> None:
    send_message(tenant_a, "My dog is called Rex.")
    with database.cleaner("default").cursor() as cursor:
        cursor.execute(f"SET app.current_tenant = '{tenant_a.id}'")
        cursor.execute(f"DELETE FROM {tenant_a.schema_name}.memory_indexedmessage")
        cursor.execute("RESET app.current_tenant")
    made = backup()
    with pytest.raises(CommandError, match="stays closed, because verify_memory finds"):
        run("restore", made, "--tenant", "tenant-a", "--yes")
    assert Tenant.objects.get(pk=tenant_a.pk).state == "restoring"
    answer: Any = Client().get("/", HTTP_HOST="tenant-a.localhost")
    assert (answer.status_code, answer["Retry-After"]) == (503, "60")
    run("restore", made, "--tenant", "tenant-a", "--repair", "--yes")
    assert Tenant.objects.get(pk=tenant_a.pk).state == "active"


def test_an_erasure_without_its_line_in_the_journal_is_not_done(
    tenant_a: Tenant, send_message: SendMessage, journal_file: Path
) -> None:
    send_message(tenant_a, "My canary is called Zyxomma.", "anna")
    journal_file.unlink()
    with tenant_scope(tenant_a.id):
        request = request_erasure("anna", by=BY)
    owner_works()
    with tenant_scope(tenant_a.id):
        found = ErasureRequest.objects.get(pk=request.pk)
        # Their rows are deleted nevertheless.
        assert not Message.objects.exists()
    assert found.done_at is None
    assert "journal of erasures cannot be written" in found.last_error
    journal_file.touch()
    with tenant_scope(tenant_a.id):
        Job.objects.update(due_at=Now(), sweep_at=Now())
    owner_works()
    with tenant_scope(tenant_a.id):
        assert ErasureRequest.objects.get(pk=request.pk).done_at is not None
    assert [entry["kind"] for entry in journal.read()] == ["person", "person"]
