"""The grace period of a deleted tenant: its length, and its single end."""

import random
import signal
import subprocess
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from django_redis import get_redis_connection

from tenants.audit.operator_log import record_deletion
from tenants.context import connection, public_scope, tenant_scope
from tenants.exceptions import InvalidTenant
from tenants.models import Domain, Job, OperatorEvent, Tenant
from tenants.redis_keys import session_key
from tenants.schemas import provisioning
from tests import database
from tests.tenants.schemas.test_provisioning_at_once import KILLED, SET_UP

DAY = timedelta(days=1)
DELETE_DUE = """
from tenants.audit.operator_log import record_deletion
from tenants.schemas.provisioning import delete_due
print(delete_due(record_deletion))
"""

DELETE_AND_DIE = """
import os, signal, sys
from tenants.models import Tenant
from tenants.schemas.provisioning import delete_tenant
tenant = Tenant.objects.get(pk=sys.argv[1])
delete_tenant(tenant, on_delete=lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""


def suspend(*options: str) -> str:
    out = StringIO()
    call_command("suspend_tenant", "tenant-a", *options, stdout=out)
    return out.getvalue()


def make_due(tenant: Tenant) -> None:
    """Delete it, with a grace period that is over."""
    provisioning.request_deletion(tenant)
    long_ago = timezone.now() - 99 * DAY
    with database.as_owner():
        Tenant.objects.filter(pk=tenant.pk).update(
            deletion_asked_at=long_ago, delete_at=timezone.now()
        )


def assert_gone(tenant: Tenant) -> None:
    """Check that nothing of it is left, and that it was deleted once."""
    with database.as_owner(), public_scope(), connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace(%s)", [tenant.schema_name])
        assert cursor.fetchone() == (None,)
        assert not Tenant.objects.filter(pk=tenant.pk).exists()
        assert not Domain.objects.filter(tenant_id=tenant.pk).exists()
        cursor.execute("SELECT count(*) FROM tenants_job WHERE tenant_id = %s", [tenant.pk])
        assert cursor.fetchone() == (0,)
    assert get_redis_connection("default").keys(f"{tenant.pk}:*") == []
    deleted = OperatorEvent.objects.filter(action="delete", subject_id=str(tenant.pk))
    assert [event.actor for event in deleted] == ["owner_worker"]


def test_a_deletion_is_cancelled_once(tenant_a: Tenant) -> None:
    provisioning.request_deletion(tenant_a)
    found = Tenant.objects.get(pk=tenant_a.pk)
    assert (found.state, found.state_before) == ("suspended", "active")
    with pytest.raises(InvalidTenant, match="to be deleted already"):
        provisioning.request_deletion(tenant_a)
    provisioning.restore_tenant(tenant_a)
    assert Tenant.objects.get(pk=tenant_a.pk).state == "active"
    with pytest.raises(InvalidTenant, match="is not to be deleted"):
        provisioning.restore_tenant(tenant_a)


def test_commands_suspend_and_resume(tenant_a: Tenant) -> None:
    with pytest.raises(CommandError, match="is not suspended"):
        suspend("--resume")
    assert "tenant tenant-a is suspended" in suspend()
    with pytest.raises(CommandError, match="is not active"):
        suspend()
    assert Tenant.objects.get(pk=tenant_a.pk).state == "suspended"
    assert "tenant tenant-a is active" in suspend("--resume")
    assert Tenant.objects.get(pk=tenant_a.pk).state == "active"
    done = OperatorEvent.objects.filter(subject_id=str(tenant_a.pk)).order_by("id")
    assert [event.action for event in done] == ["suspend", "resume"]


@pytest.mark.django_db(transaction=True)
def test_deleted_tenant_is_not_deleted_again(make_tenant: database.MakeTenant) -> None:
    tenant = make_tenant("twice")
    make_due(tenant)
    with pytest.raises(InvalidTenant, match="has begun"):
        provisioning.restore_tenant(tenant)
    with database.as_owner():
        stale = Tenant.objects.get(pk=tenant.pk)
        assert provisioning.delete_due(record_deletion) == 1
        with pytest.raises(InvalidTenant, match="was deleted in the meantime"):
            provisioning.delete_tenant(stale, on_delete=record_deletion)
        assert provisioning.delete_due(record_deletion) == 0
    assert_gone(tenant)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, pytest.param(40, marks=pytest.mark.long)])
def test_a_killed_deletion_is_finished_once(
    start: Callable[..., "subprocess.Popen[str]"], make_tenant: database.MakeTenant, times: int
) -> None:
    chance = random.Random(11)
    cut_off = 0
    for number in range(times):
        tenant = make_tenant(f"killed-{number}")
        with tenant_scope(tenant.id):
            Job.objects.create(kind="reply", key=uuid4())
        get_redis_connection("default").set(session_key(tenant.id, "t"), "said")
        make_due(tenant)
        process = start(KILLED + DELETE_DUE, str(chance.randint(3, 24)))
        process.wait()
        cut_off += Tenant.objects.filter(pk=tenant.pk).exists()
        at_once = [start(SET_UP + DELETE_DUE) for _ in range(2)]
        counts = [int(process.communicate()[0].split()[-1]) for process in at_once]
        assert sum(counts) <= 1
        assert_gone(tenant)
    assert cut_off


@pytest.mark.slow
def test_a_deletion_that_was_killed_before_its_commit_is_completed(
    start: Callable[..., "subprocess.Popen[str]"], make_tenant: database.MakeTenant
) -> None:
    tenant = make_tenant("killed")
    process = start(f"{SET_UP}{DELETE_AND_DIE}", str(tenant.pk))
    assert process.wait() == -signal.SIGKILL
    # The journal has it as deleted, so that no way leads back.
    for change in (provisioning.resume_tenant, provisioning.restore_tenant):
        with pytest.raises(InvalidTenant, match=r"is to be deleted|has begun"):
            change(tenant)
    with database.as_owner():
        assert provisioning.delete_due(record_deletion) == 1
    assert_gone(tenant)


@pytest.mark.django_db(transaction=True)
def test_second_deletion_has_a_full_grace_period(tenant_a: Tenant) -> None:
    provisioning.request_deletion(tenant_a)
    with database.as_owner():
        assert provisioning.delete_due() == 0
    provisioning.restore_tenant(tenant_a)
    # No owner worker runs until the first period would be over.
    with database.as_owner():
        Tenant.objects.filter(pk=tenant_a.pk).update(delete_at=timezone.now() - DAY)
    provisioning.request_deletion(tenant_a)
    provisioning.restore_tenant(tenant_a)
    provisioning.request_deletion(tenant_a)
    with database.as_owner():
        assert provisioning.delete_due() == 0
    found = Tenant.objects.get(pk=tenant_a.pk)
    assert found.delete_at is not None
    assert found.delete_at > timezone.now() + 6 * DAY
    provisioning.restore_tenant(tenant_a)
