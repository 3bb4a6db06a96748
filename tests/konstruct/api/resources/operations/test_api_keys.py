"""API keys by API: a key makes only keys that allow no more than it does."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from konstruct.api.auth.keys import KeyTooWide, derive_key, owns_proposal, revoke_key, roll_key
from konstruct.api.models import ApiKey, ApiKeyQuerySet
from konstruct.orchestrator.agents import create_agent
from memory.facts import Author
from memory.models import Message
from memory.models.facts import AuthorKind
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Browser, Program, access_events
from tests.konstruct.extracted import propose

KEYS = "/api/v1/api-keys/"
SOON = timezone.now() + timedelta(days=1)
LATER = SOON + timedelta(days=1)


def made_by(program: Program, **fields: Any) -> tuple[Program, dict[str, Any]]:
    """Make a key. Return its program, and the answer."""
    response = program.post(KEYS, {"name": "made", **fields})
    assert response.status_code == 201, response.content
    document = response.json()
    return Program(program.tenant, program.agent, document["key"]), document


def row_of(program: Program) -> ApiKey:
    with tenant_scope(program.tenant.id):
        return ApiKey.objects.get(prefix=program.key.split("_")[2])


def test_a_made_key_works_and_its_secret_is_shown_once(program_a: Program) -> None:
    made, document = made_by(
        program_a, scopes=["read", "keys"], user_id="maria", expires_at=SOON.isoformat()
    )
    assert made.get(MESSAGES).status_code == 200
    assert made.send().status_code == 403
    own = row_of(program_a)
    assert document["parent_id"] == str(own.pk)
    assert document["expires_at"] == SOON.isoformat().replace("+00:00", "Z")
    shown = program_a.get(f"{KEYS}{document['id']}/")
    assert "key" not in shown.json()
    listed = program_a.get(KEYS)
    assert [key["id"] for key in listed.json()["results"]] == [document["id"], str(own.pk)]
    assert made.key.split("_")[3] not in (shown.content + listed.content).decode()
    # It sees no other key than its own.
    assert [key["id"] for key in made.get(KEYS).json()["results"]] == [document["id"]]
    assert made.request("DELETE", f"{KEYS}{own.pk}/").status_code == 404
    created = next(event for event in access_events(program_a.tenant) if event.subject == "api key")
    assert (created.action, created.subject_id) == (Action.CREATE, document["id"])


@pytest.mark.parametrize(
    ("own", "wanted", "status"),
    [
        ({"scopes": ["keys"]}, {}, 403),  # by default read and write
        ({"scopes": ["keys", "read"]}, {"scopes": ["read", "erase"]}, 403),
        ({"scopes": ["read", "write"]}, {"scopes": ["read"]}, 403),
        ({"agent_id": "own"}, {"agent": "bo"}, 422),
        ({"user_id": "maria"}, {"user_id": "theo"}, 403),
        ({"user_id": "maria"}, {"user_id": ""}, 400),
        ({"user_id": "maria"}, {"user_id": None}, 400),
        ({"expires_at": SOON}, {"expires_at": LATER.isoformat()}, 403),
        ({"expires_at": SOON}, {"expires_at": None}, 403),
        ({}, {"scopes": []}, 400),
        ({}, {"scopes": ["admin"]}, 400),
        ({}, {"name": "\x00"}, 400),
        ({}, {"parent_id": None}, 400),
    ],
)
def test_a_key_makes_none_that_allows_more(
    program_a: Program, own: dict[str, Any], wanted: dict[str, Any], status: int
) -> None:
    create_agent(tenant_id=program_a.tenant.id, name="bo")
    own = {"scopes": ["read", "write", "keys"], **own}
    if "agent_id" in own:
        own["agent_id"] = program_a.agent.id
    narrow = program_a.with_key(**own)
    response = narrow.post(KEYS, {"name": "made", **wanted})
    assert response.status_code == status, response.content
    with tenant_scope(program_a.tenant.id):
        assert ApiKey.objects.count() == 2


def test_a_made_key_has_the_binding_and_the_end_of_its_maker(program_a: Program) -> None:
    bound = {"agent_id": program_a.agent.id, "user_id": "maria", "expires_at": SOON}
    maker = program_a.with_key(scopes=["read", "write", "keys"], **bound)
    made, document = made_by(maker)
    row = row_of(made)
    assert (row.agent_id, row.user_id, row.expires_at) == (program_a.agent.id, "maria", SOON)
    assert document["scopes"] == ["read", "write"]
    assert made.send(user_id="theo").status_code == 403


def test_a_key_is_revoked_with_its_maker_and_a_revoked_one_makes_none(program_a: Program) -> None:
    first, document = made_by(program_a, scopes=["read", "write", "keys"])
    second, _ = made_by(first, scopes=["read", "keys"])
    row = row_of(first)
    assert program_a.request("DELETE", f"{KEYS}{document['id']}/").status_code == 204
    assert [key.get(MESSAGES).status_code for key in (first, second, program_a)] == [401, 401, 200]
    assert program_a.get(f"{KEYS}{document['id']}/").json()["revoked_at"] is not None
    # A request that was authenticated before the key was revoked.
    with tenant_scope(program_a.tenant.id), pytest.raises(KeyTooWide, match="not valid any more"):
        derive_key(row, name="late", scopes=["read"], agent_id=None, user_id=None, expires_at=None)


def test_a_rolled_key_takes_over_the_keys_that_it_made(program_a: Program) -> None:
    made, _ = made_by(program_a)
    with tenant_scope(program_a.tenant.id):
        new, text = roll_key(row_of(program_a))
    assert row_of(made).parent_id == new.pk
    assert made.get(MESSAGES).status_code == 200
    rolled = Program(program_a.tenant, program_a.agent, str(text))
    assert rolled.request("DELETE", f"{KEYS}{new.pk}/").status_code == 204
    assert made.get(MESSAGES).status_code == 401


def test_a_key_that_is_rolled_at_the_same_moment_is_revoked_with_its_maker(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = made_by(program_a)
    child = row_of(made)
    update = ApiKeyQuerySet.update
    calls = []

    def update_late(rows: Any, **values: Any) -> int:
        calls.append(values)
        if len(calls) == 2:  # the children, as another request rolls one
            roll_key(child, grace=timedelta(hours=1))
        return update(rows, **values)

    monkeypatch.setattr(ApiKeyQuerySet, "update", update_late)
    with tenant_scope(program_a.tenant.id):
        revoke_key(row_of(program_a).pk)
        assert not ApiKey.objects.valid().exists()


def test_a_made_key_does_not_confirm_what_its_maker_proposed(program_a: Program) -> None:
    made, _ = made_by(program_a)
    message = program_a.send().json()["id"]
    with tenant_scope(program_a.tenant.id):
        author = Author(AuthorKind.PROGRAM, str(row_of(program_a).pk))
        fact = propose(Message.objects.get(pk=message), "Hello", "Maria greets.", author=author)
        assert owns_proposal(fact.memory_id, person_id="", key_id=row_of(made).pk)


def test_keys_of_another_tenant_are_unknown(program_a: Program, program_b: Program) -> None:
    _, document = made_by(program_a, scopes=["read"])
    address = f"{KEYS}{document['id']}/"
    assert program_b.get(address).status_code == 404
    assert program_b.request("DELETE", address).status_code == 404
    foreign = program_b.post(KEYS, {"name": "made", "agent": str(program_a.agent.id)})
    assert foreign.status_code == 422
    assert program_a.get(address).json()["revoked_at"] is None


def test_a_person_makes_and_sees_keys_by_permission(program_a: Program, browser: Browser) -> None:
    def post(*permissions: str) -> Any:
        client = browser(program_a.tenant, *permissions)
        return client.post(KEYS, {"name": "by eva"}, content_type="application/json")

    assert post("view_apikey").status_code == 403
    assert post("add_apikey").json()["parent_id"] is None
    listed = browser(program_a.tenant, "view_apikey").get(KEYS).json()["results"]
    assert [key["name"] for key in listed] == ["by eva", "tests"]
