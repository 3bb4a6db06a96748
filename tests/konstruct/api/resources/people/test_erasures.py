"""Erasures by REST: requested by a program, run by the owner worker, read with the receipt."""

import pytest

from konstruct.privacy import jobs
from memory.models import Message
from tenants.audit.models import AccessEvent, ActorKind
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.api.auth.test_scopes import refusal
from tests.konstruct.conftest import MESSAGES, Program

ERASURES = "/api/v1/erasures/"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_user_is_forgotten_and_the_program_gets_the_receipt(program_a: Program) -> None:
    message_id = program_a.send("My secret.").json()["id"]
    answer = program_a.post(ERASURES, {"user_id": "maria", "reason": "by mail"})
    assert answer.status_code == 202
    address = answer.headers["Location"]
    assert (answer.json()["state"], answer.json()["requested_by"]) == ("requested", "tests")
    with tenant_scope(program_a.tenant.id):
        event = AccessEvent.objects.get(action="erase")
    assert (event.actor_kind, event.user_id) == (ActorKind.PROGRAM, "maria")
    again = program_a.post(ERASURES, {"user_id": "maria"})
    assert "is requested already" in refusal(again, 409)

    with database.as_owner():
        assert jobs.ERASE.run_due() == 1
    done = program_a.get(address).json()
    assert (done["url"], done["state"], done["reason"]) == (address, "done", "by mail")
    assert done["receipt"]["tables"]["memory_message"]["removed"] == 1
    assert program_a.get(f"{MESSAGES}{message_id}/").status_code == 404
    with tenant_scope(program_a.tenant.id):
        assert not Message.objects.exists()


def test_key_requests_erasures_within_its_binding(program_a: Program) -> None:
    program_of_maria = program_a.with_key(scopes=["read", "erase"], user_id="maria")
    program_of_agent = program_a.with_key(scopes=["read", "erase"], agent_id=program_a.agent.id)
    writer = program_a.with_key(scopes=["read", "write"])
    refusal(program_of_maria.post(ERASURES, {"user_id": "theo"}), 403)
    assert refusal(writer.post(ERASURES, {"user_id": "theo"}), 403) == (
        "This needs the scope erase; yours: read, write."
    )
    of_agent = program_of_agent.post(ERASURES, {"user_id": "theo"}).json()
    assert of_agent["agent_id"] == str(program_a.agent.id)
    assert program_of_maria.post(ERASURES, {"user_id": "maria"}).status_code == 202
    refusal(program_of_maria.get(f"{ERASURES}{of_agent['id']}/"), 404)
    assert program_a.get(f"{ERASURES}{of_agent['id']}/").status_code == 200
