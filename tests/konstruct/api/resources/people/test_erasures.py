"""Erasures by REST: requested by a program, run by the owner worker, read with the receipt."""

from urllib.parse import urlencode

import pytest

from konstruct.orchestrator.identities.channel_identities import identity_of, link
from konstruct.privacy import jobs
from memory.models import Message
from tenants.audit.models import AccessEvent, ActorKind, ErasureRequest
from tenants.audit.people import pseudonym
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.api.auth.test_scopes import refusal
from tests.konstruct.conftest import MESSAGES, Program, user_of

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
    assert (event.actor_kind, user_of(event)) == (ActorKind.PROGRAM, "maria")
    again = program_a.post(ERASURES, {"user_id": "maria"})
    assert (again.status_code, again.json()) == (202, answer.json())

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


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_bound_key_lists_the_erasures_of_its_user_or_agent(program_a: Program) -> None:
    of_maria = program_a.with_key(scopes=["read", "erase"], user_id="maria")
    of_agent = program_a.with_key(scopes=["read", "erase"], agent_id=program_a.agent.id)
    for body in ({"user_id": "maria"}, {"user_id": "theo"}, {"user_id": "theo", "agent": "ada"}):
        assert program_a.post(ERASURES, body).status_code == 202

    def listed(program: Program) -> list[tuple[str, bool]]:
        rows = program.get(ERASURES).json()["results"]
        return [(row["user_id"], row["agent_id"] is not None) for row in rows]

    assert (listed(of_maria), listed(of_agent)) == ([("maria", False)], [("theo", True)])
    refusal(of_maria.get(f"{ERASURES}?user_id=theo"), 403)
    with database.as_owner():
        assert jobs.ERASE.run_due() == 3
    with tenant_scope(program_a.tenant.id):
        maria, theo = pseudonym("maria"), pseudonym("theo")
    refusal(of_maria.get(ERASURES), 401)  # the key is erased too
    of_maria = program_a.with_key(scopes=["read", "erase"], user_id="maria")
    assert (listed(of_maria), listed(of_agent)) == ([(maria, False)], [(theo, True)])


def test_a_reason_that_names_the_person_is_refused(program_a: Program) -> None:
    message = program_a.send("Hi.", name="Zoë Łuc-Rossi").json()
    program_a.send("Hi.", name="Art Support-Mai")
    program_a.send("Hi.", user_id="U024BE7LH", name="山田太郎")
    with tenant_scope(program_a.tenant.id):
        link(identity_of("slack", "T1", "U77", "Mia"), "maria", by="eva")
    reasons = {
        "maria": "MARIA asked; Maria's wish; (ma\u200bria); zoe luc-rossi;"
        " ZOE\u0308 Luc  Rossis Antrag; Zoë Luc-\uff32\uff4f\uff53\uff53\uff49; u77 of Slack; mia",
        "U024BE7LH": "by u024be7lh; 山田太郎さんの依頼",
    }
    for user_id, texts in reasons.items():
        for reason in texts.split("; "):
            answer = program_a.post(ERASURES, {"user_id": user_id, "reason": reason})
            assert answer.json()["errors"][0]["field"] == "reason", reason
            assert "names the person" in refusal(answer, 400)
    thread = {"agent": "ada", "user_id": "maria", "thread_id": message["thread_id"]}
    for address, query in (
        (f"{MESSAGES}{message['id']}/", {}),
        ("/api/v1/conversations/transcript/", thread),
    ):
        query = urlencode({**query, "reason": "for Zoé Łuc-Rossi"})
        answer = program_a.request("DELETE", f"{address}?{query}")
        assert "names the person" in refusal(answer, 400)
    with tenant_scope(program_a.tenant.id):
        assert not ErasureRequest.objects.exists()
    reason = "Art. 17, Support asked on 3 Mai for Rossi's Mariana: ticket 77"
    accepted = {"user_id": "maria", "reason": reason}
    assert program_a.post(ERASURES, accepted).status_code == 202
