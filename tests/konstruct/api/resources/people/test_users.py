"""Users by REST: what programs set of them, and the export of one."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.identities.channel_identities import identity_of, link
from konstruct.privacy import jobs
from tenants.audit.models import Action
from tenants.audit.people import Person, time_zone_of
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.conftest import Browser, Program, access_events, users_shown

KENJI = {"name": "Kenji", "time_zone": "Asia/Tokyo", "language": "ja", "metadata": {"plan": "gold"}}
NOTHING = {"name": "", "time_zone": "", "language": "", "metadata": {}}


def address(user_id: str, tail: str = "") -> str:
    return f"/api/v1/users/{quote(user_id, safe='')}/{tail}"


def write(program: Program, method: str, user: str, **fields: Any) -> Any:
    return program.write(method, address(user), fields)


def shown(user_id: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"user_id": user_id, **fields, "channel_time_zone": ""}


def test_a_user_is_set_changed_and_read(program_a: Program, program_b: Program) -> None:
    assert program_a.get(address("k/1 é")).status_code == 404
    assert write(program_a, "PUT", "k/1 é", **KENJI).json() == shown("k/1 é", KENJI)
    with tenant_scope(program_a.tenant.id):
        assert time_zone_of("k/1 é").key == "Asia/Tokyo"
    changed = write(program_a, "PATCH", "k/1 é", metadata={"plan": None, "n": [1]}, name="")
    expected = {**KENJI, "name": "", "metadata": {"n": [1]}}
    assert changed.json() == shown("k/1 é", expected) == program_a.get(address("k/1 é")).json()
    assert program_b.get(address("k/1 é")).status_code == 404
    assert write(program_b, "PUT", "k/1 é").json() == shown("k/1 é", NOTHING)
    assert write(program_a, "PUT", "k/1 é").json() == shown("k/1 é", NOTHING)
    event = access_events(program_a.tenant)[-1]
    assert (event.action, event.subject) == (Action.EDIT, "user")
    assert "gold" not in json.dumps([one.detail for one in access_events(program_a.tenant)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"time_zone": "Mars/Base"}, {"language": "german!"}, {"language": "x" * 36},
        {"name": "\u202e"}, {"name": "x" * 121}, {"metadata": [1]}, {"metadata": {"a": "\x00"}},
        {"metadata": {"a": "x" * 8192}}, {"user_id": "theo"},
    ],
)  # fmt: skip
def test_hostile_values_are_refused(program_a: Program, wrong: dict[str, Any]) -> None:
    for method in ("PUT", "PATCH"):
        assert write(program_a, method, "kenji", **wrong).status_code == 400
    assert program_a.get(address("kenji")).status_code == 404


@pytest.mark.parametrize("of_user", ["", "export/", "timeline/"])
@pytest.mark.parametrize("user_id", ["\0", "x" * 3000])
def test_a_text_that_is_no_id_is_not_found(program_a: Program, user_id: str, of_user: str) -> None:
    assert program_a.get(address(user_id, of_user)).status_code == 404


def test_merged_metadata_keeps_its_limit(program_a: Program) -> None:
    assert write(program_a, "PATCH", "kenji", metadata={"a": "x" * 5000}).status_code == 200
    assert write(program_a, "PATCH", "kenji", metadata={"b": "x" * 5000}).status_code == 400
    assert list(program_a.get(address("kenji")).json()["metadata"]) == ["a"]


def test_bound_keys_have_their_user_or_the_users_of_their_agent(program_a: Program) -> None:
    write(program_a, "PUT", "theo", **KENJI)
    program_a.send("Hello", user_id="maria")
    of_maria = program_a.with_key(user_id="maria")
    assert write(of_maria, "PATCH", "maria", name="Maria").status_code == 200
    assert write(of_maria, "PATCH", "theo", name="Maria").status_code == 403
    assert of_maria.get(address("theo")).status_code == 403
    of_ada = program_a.with_key(agent_id=program_a.agent.id)
    assert of_ada.get(address("maria")).json()["name"] == "Maria"
    (listed,) = of_ada.get("/api/v1/users/?q=MARIA").json()["results"]
    assert (listed["user_id"], listed["name"], listed["names"]) == ("maria", "Maria", [])
    assert of_ada.get(address("theo")).status_code == 404
    assert write(of_ada, "PUT", "theo").status_code == 404
    bo = create_agent(tenant_id=program_a.tenant.id, name="bo")
    assert program_a.with_key(agent_id=bo.pk).get(address("maria")).status_code == 404


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_erasure_removes_what_was_set(program_a: Program) -> None:
    program_a.send("Hello", user_id="kenji")
    write(program_a, "PUT", "kenji", **KENJI)
    request = program_a.post("/api/v1/erasures/", {"user_id": "kenji"})
    assert write(program_a, "PATCH", "kenji", name="Ken").status_code == 409
    with database.as_owner():
        assert jobs.ERASE.run_due() == 1
    assert program_a.get(request.headers["Location"]).json()["state"] == "done"
    assert program_a.get(address("kenji")).status_code == 404
    with tenant_scope(program_a.tenant.id):
        assert not Person.objects.exists()


def test_a_person_is_exported_with_all_ids(
    program_a: Program, program_b: Program, browser: Browser
) -> None:
    write(program_a, "PUT", "maria", **KENJI)
    for program in (program_a, program_b):
        program.send(f"I live in {program.tenant.slug}.", user_id="maria")
        program.send("I am Theo.", user_id="theo")
    program_a.send("It is me.", user_id="U1")
    with tenant_scope(program_a.tenant.id):
        link(identity_of("slack", "T1", "U1"), "maria", by="eva")
    exported = program_a.get(address("maria", "export/")).json()
    assert exported["user_ids"] == ["maria", "U1"]
    said = [message["content"] for message in exported["messages"]]
    assert said == ["I live in tenant-a.", "It is me."]
    (person,) = [row for row in exported["person"] if row["user_id"] == "maria"]
    assert (person["chosen_name"], person["metadata"]) == ("Kenji", {"plan": "gold"})
    event = access_events(program_a.tenant)[-1]
    assert (event.action, event.subject, users_shown(event)) == (
        "export",
        "person",
        ["U1", "maria"],
    )

    eraser = program_a.with_key(scopes=[KeyScope.ERASE])
    assert eraser.get(address("maria", "export/")).status_code == 200
    for refused in (
        program_a.with_key(scopes=[KeyScope.READ, KeyScope.WRITE]),
        program_a.with_key(scopes=KeyScope.values, user_id="maria"),
        program_a.with_key(scopes=KeyScope.values, agent_id=program_a.agent.id),
    ):
        assert refused.get(address("maria", "export/")).status_code == 403
    assert "historyimport" not in exported  # a file has other people too
    assert program_a.get(address("unknown", "export/")).status_code == 404
    auditor = browser(program_a.tenant, "export_person")
    assert auditor.get(address("maria", "export/")).status_code == 200
    assert (
        browser(program_a.tenant, "view_scope").get(address("maria", "export/")).status_code == 403
    )
