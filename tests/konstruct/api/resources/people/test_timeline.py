"""The timeline of a user by REST: kinds, pages, bound keys and members of the team."""

from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.handoff.escalations import Thread, open_escalation
from konstruct.orchestrator.identities.channel_identities import identity_of, link
from konstruct.orchestrator.models import Escalation
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

V1 = "/api/v1"
HOSTILE = "a/b <script>?#%25"


def address(user_id: str = "maria", query: str = "") -> str:
    return f"{V1}/users/{quote(user_id, safe='')}/timeline/{query}"


def entries(program: Program, query: str = "", user_id: str = "maria") -> list[dict[str, Any]]:
    answer = program.get(address(user_id, query))
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def kinds(program: Program, query: str = "") -> set[str]:
    return {entry["kind"] for entry in entries(program, query)}


@pytest.fixture
def program(program_a: Program) -> Program:
    """Tenant A, with maria's messages, escalation, link, views, and messages to bert."""
    create_agent(tenant_id=program_a.tenant.id, name="bert")
    for number in range(3):
        program_a.send(f"Message {number}", thread_id="t1")
    program_a.send("To bert", thread_id="t2", agent="bert")
    with tenant_scope(program_a.tenant.id):
        thread = Thread(program_a.agent.pk, "maria", "t1")
        open_escalation(thread, opened_by=Escalation.OpenedBy.PROGRAM, reason="Lost.")
        identity = identity_of("slack", "T1", "U1")
        link(identity, "maria", by="eva")
        actor = Actor(ActorKind.PERSON, "1", "eva")
        record_access(Action.VIEW, "person", by=actor, user_id="maria")
    return program_a


def bound(program: Program, **binding: Any) -> Program:
    return program.with_key(scopes=["read"], **binding)


def test_timeline_is_paged_newest_first(program: Program) -> None:
    every = [entry for entry in entries(program, "?limit=200") if entry["kind"] != "access"]
    assert {entry["kind"] for entry in every} == {"message", "escalation", "account"}
    assert [entry["at"] for entry in every] == sorted((e["at"] for e in every), reverse=True)
    texts = [entry["text"] for entry in every if entry["kind"] == "message"]
    assert sorted(texts) == ["Message 0", "Message 1", "Message 2", "To bert"]
    paged: list[str] = []
    following = address(query="?limit=1&kind=message")
    while following:
        page = program.get(following.removeprefix("http://tenant-a.localhost")).json()
        assert page["previous"] is None
        paged += [entry["text"] for entry in page["results"]]
        following = page["next"]
    assert paged == texts
    assert entries(program, "?kind=message&agent=bert")[0]["text"] == "To bert"
    assert entries(program, "?until=2020-01-01T00:00:00Z") == []
    # Linked ids belong to the same person.
    assert {entry["text"] for entry in entries(program, "?kind=message", "U1")} == set(texts)


def test_a_bound_key_gets_its_part_of_the_timeline(program: Program, program_b: Program) -> None:
    assert {"account", "access"} <= kinds(program)
    of_maria, of_ada = (bound(program, user_id="maria"), bound(program, agent_id=program.agent.pk))
    assert kinds(of_maria) == {"message", "escalation"}
    assert kinds(of_ada) == {"message", "escalation"}
    assert {entry["agent_id"] for entry in entries(of_ada)} == {str(program.agent.pk)}
    for key in (of_maria, of_ada):
        assert key.get(address(query="?kind=access")).status_code == 403
    assert of_ada.get(address(query="?agent=bert")).status_code == 422
    assert of_maria.get(address("theo")).status_code == 403
    assert of_maria.get(address("U1")).status_code == 403
    # Earlier views of the timeline are in it, too.
    assert kinds(program_b) == set()
    assert kinds(program_b) == set()
    # A cursor of another tenant, or of another user, is invalid here.
    cursor = program.get(address(query="?limit=1")).json()["next"].split("?")[1]
    assert program_b.get(address(query=f"?{cursor}")).status_code == 404
    assert program.get(address("theo", f"?{cursor}")).status_code == 404


def test_a_member_of_the_team_gets_the_kinds_that_they_may_view(
    program: Program, program_b: Program
) -> None:
    client = Client(headers={"Host": "tenant-a.localhost"})
    with tenant_scope(program.tenant.id):
        user = User.objects.create_user("auditor", is_staff=True)
        client.force_login(user)
    assert client.get(address()).status_code == 403
    with tenant_scope(program.tenant.id):
        names = ("view_scope", "view_message")
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
    assert {entry["kind"] for entry in client.get(address()).json()["results"]} == {"message"}
    assert client.get(address(query="?kind=access")).status_code == 403
