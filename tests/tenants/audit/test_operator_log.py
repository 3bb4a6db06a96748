"""The operators' log: actions on tenants and operators, in the admin and by commands."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import ProgrammingError
from django.db.models import Max, QuerySet
from django.test import Client

from tenants import transaction
from tenants.audit.changes import NO_STATE, RowState, abridge, differences, is_secret, row_state
from tenants.audit.operator_log import operator_name, record_command
from tenants.context import connection, tenant_scope
from tenants.models import OperatorEvent, Tenant

TENANTS = "/admin/tenants/tenant/"
PEOPLE = "/admin/auth/user/"

Events = Callable[[], "QuerySet[OperatorEvent]"]
Changes = Callable[[], list[OperatorEvent]]


@pytest.fixture
def events(db: None) -> Events:
    """Return the events of this test only: tests that commit leave their own."""
    last = OperatorEvent.objects.aggregate(last=Max("id"))["last"] or 0
    return lambda: OperatorEvent.objects.filter(id__gt=last).order_by("id")


@pytest.fixture
def changes(events: Events) -> Changes:
    return lambda: list(events().exclude(action__in=["list", "view"]))


def test_changes_of_operators_to_tenants_are_recorded(
    operator: Client, tenant_a: Tenant, changes: Changes
) -> None:
    act = {"action": "suspend", "_selected_action": [str(tenant_a.id)]}
    operator.post(TENANTS, act, REMOTE_ADDR="198.51.100.7")
    operator.post(TENANTS, act)
    operator.post(TENANTS, {**act, "action": "resume"})
    suspended, resumed = changes()
    assert (suspended.action, resumed.action) == ("suspend", "resume")
    assert suspended.detail == {"before": {"state": "active"}, "after": {"state": "suspended"}}
    assert (suspended.actor_kind, suspended.actor, suspended.name) == ("person", "olga", "tenant-a")
    assert suspended.subject_id == str(tenant_a.id)
    assert suspended.address == "198.51.100.7"


def test_a_tenant_is_recorded_with_its_host_names(
    operator: Client, tenant_a: Tenant, changes: Changes
) -> None:
    domain = tenant_a.domains.get()
    form = {
        "name": "Renamed",
        "domains-TOTAL_FORMS": "2",
        "domains-INITIAL_FORMS": "1",
        "domains-MIN_NUM_FORMS": "1",
        "domains-0-id": str(domain.pk),
        "domains-0-tenant": str(tenant_a.id),
        "domains-0-domain": domain.domain,
        "domains-0-is_primary": "on",
        "domains-1-tenant": str(tenant_a.id),
        "domains-1-domain": "a.example.org",
    }
    answer = operator.post(f"{TENANTS}{tenant_a.id}/change/", form)
    assert answer.status_code == 302
    (edited,) = changes()
    assert edited.detail["before"]["domains"] == [domain.domain]
    assert edited.detail["after"]["domains"] == ["a.example.org", domain.domain]
    assert edited.detail["after"]["name"] == "Renamed"


def test_refused_pages_are_recorded(events: Events) -> None:
    client = Client(headers={"Host": "localhost"})
    client.force_login(User.objects.create_user("otto", is_staff=True))
    assert client.get(TENANTS).status_code == 403
    (refused,) = events()
    assert (refused.action, refused.actor, refused.detail["status"]) == ("refuse", "otto", 403)


def test_commands_are_recorded_with_the_account_that_runs_them(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "correct horse battery")
    call_command("createsuperuser", username="otto", email="", interactive=False, verbosity=0)
    answers = iter(["another horse battery"] * 2)
    monkeypatch.setattr("getpass.getpass", lambda prompt="": next(answers))
    call_command("changepassword", "otto", verbosity=0)
    created, renewed = changes()
    for event in (created, renewed):
        assert (event.actor_kind, event.actor) == ("command", operator_name())
        assert event.name == "otto"
        assert "horse" not in str(event.detail)
        assert event.address is None
    assert created.detail["command"] == "createsuperuser"
    assert created.detail["after"]["is_superuser"] is True
    assert renewed.detail == {"command": "changepassword", "withheld": ["password"]}


@pytest.mark.parametrize("statement", ["UPDATE {} SET actor = ''", "DELETE FROM {}"])
def test_the_application_can_only_add_to_it(events: Events, statement: str) -> None:
    record_command("x", "edit", "tenant")
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format("public.tenants_operatorevent"))
    assert events().count() == 1


def test_no_tenant_sees_it(tenant_a: Tenant) -> None:
    record_command("x", "edit", "tenant")
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM public.tenants_operatorevent")
        seen: Any = cursor.fetchone()
    assert seen == (0,)


def test_only_changed_fields_are_recorded() -> None:
    before = RowState({"a": 1, "b": "x", "c": None})
    after = RowState({"a": 1, "b": "y", "c": [1]})
    assert differences(before, after) == {
        "before": {"b": "x", "c": None},
        "after": {"b": "y", "c": [1]},
    }
    assert differences(before, before) == {}


def test_created_and_deleted_rows_have_one_side() -> None:
    row = RowState({"a": 1, "b": "", "c": None, "d": False}, {"password": "hash"})
    assert differences(NO_STATE, row) == {"after": {"a": 1, "d": False}}
    assert differences(row, NO_STATE) == {"before": {"a": 1, "d": False}}


def test_changed_secrets_are_named_without_their_values() -> None:
    before = RowState({"a": 1}, {"password": "old", "token": "same"})
    after = RowState({"a": 1}, {"password": "new", "token": "same"})
    assert differences(before, after) == {"withheld": ["password"]}
    assert "old" not in repr(before)


def test_row_is_serialized_as_json_without_deferred_fields() -> None:
    tenant = Tenant(slug="acme", name="Acme\0")
    values = row_state(tenant).fields
    assert values["id"] == str(tenant.id)
    assert values["name"] == "Acme"
    assert "migrated_to" not in values


def test_every_field_that_holds_a_secret_is_known_by_its_name() -> None:
    """All models of the project and of Django. A field with another name must be added here."""
    secrets = {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.concrete_fields
        if is_secret(field.name)
    }
    assert secrets == {
        "api.ApiKey.secret_digest",
        "api.IdempotencyRecord.digest",
        "auth.User.password",
        "channels.SlackInstallation.encrypted_token",
        "memory.FactEvidence.source_digest",
        "memory.MemoryEntry.content_digest",
        "orchestrator.ExtractionRun.prompt_digest",
        "orchestrator.LanguageModel.secret_key",
        "outbox.Subscription.previous_secret",
        "outbox.Subscription.secret",
    }


def test_nested_values_of_requests_are_shortened() -> None:
    assert abridge({"q": "y" * 999, "n": 1}) == {"q": "y" * 500 + "…", "n": 1}
