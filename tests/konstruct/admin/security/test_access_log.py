"""The access log: actions are recorded, and entries are permanent."""

import pytest
from django.db import ProgrammingError
from django.test import Client

from memory.models import Message
from tenants import transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import AccessEvent, Action, ActorKind, ErasureRequest
from tenants.audit.people import hold_people
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, user_of, users_shown

LOG = "/admin/audit/accessevent/"


def logged(program: Program) -> list[tuple[str, str, str | None]]:
    with tenant_scope(program.tenant.id):
        rows = AccessEvent.objects.order_by("id")
        return [(event.action, event.subject, user_of(event)) for event in rows]


@pytest.mark.slow
def test_views_and_searches_are_recorded(populated_a: Program, admin: Client) -> None:
    with tenant_scope(populated_a.tenant.id):
        message = Message.objects.get(content="Answer me!")
    admin.get("/admin/memory/message/")
    admin.get("/admin/search/", {"q": "sister"})
    admin.get(f"/admin/memory/message/{message.pk}/change/")
    admin.get("/admin/conversations/")
    admin.get(f"/admin/conversations/{message.pk}/")
    admin.get("/admin/people/person/", {"user": "maria"})
    assert logged(populated_a) == [
        ("list", "message", None),
        ("search", "everything", None),
        ("view", "message", "maria"),
        ("list", "conversations", None),
        ("view", "conversation", "maria"),
        ("view", "person", "maria"),
    ]
    with tenant_scope(populated_a.tenant.id):
        event = AccessEvent.objects.filter(action="search").get()
    assert event.actor.startswith("u")
    assert (event.actor_kind, event.detail) == ("person", {})
    assert users_shown(event) == ["maria"]
    assert event.request_id


def test_the_log_is_read_and_narrowed(
    populated_a: Program, populated_b: Program, browser: Browser, admin: Client
) -> None:
    somebody = Actor(ActorKind.PROGRAM, "1", "billing")
    for program, user in ((populated_a, "maria"), (populated_a, "bob"), (populated_b, "carla")):
        with tenant_scope(program.tenant.id):
            hold_people([user])
            record_access(Action.VIEW, "fact", by=somebody, user_id=user)
    page = admin.get(LOG, {"actor_kind__exact": "program"}).text
    assert ("maria" in page, "bob" in page, "carla" in page) == (True, True, False)
    page = admin.get(LOG, {"user": "bob", "actor_kind__exact": "program"})
    assert [event.user_id for event in page.context["cl"].result_list] == ["bob"]
    assert browser(populated_a.tenant, "view_message").get(LOG).status_code == 403


@pytest.mark.parametrize("model", [AccessEvent, ErasureRequest])
def test_access_log_entries_cannot_be_changed_or_deleted(
    program_a: Program, model: type[AccessEvent] | type[ErasureRequest]
) -> None:
    with tenant_scope(program_a.tenant.id):
        record_access(Action.VIEW, "fact", by=Actor(ActorKind.PERSON, "1", "eva"))
        ErasureRequest.objects.create(user_id="maria", requested_by="eva")
        for refused in (lambda: model.objects.update(tenant_id=None), model.objects.all().delete):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                refused()
        assert model.objects.count() == 1
