"""Replies with the words of an erased person or message are kept or erased, as chosen."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.management import call_command

from konstruct.backups.restoring import journal_open_requests, replay
from konstruct.orchestrator.identities import erasure_requests
from konstruct.orchestrator.models import Agent, ToolCall
from konstruct.privacy import jobs
from konstruct.privacy.erasure.erasing import carry_out
from memory.exceptions import InvalidArgument
from memory.models import Message
from tenants import journal
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind, ErasureRequest, MessageErasure
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.channels.conftest import answer_all, connected, post, slack  # noqa: F401
from tests.konstruct.conftest import MESSAGES, Browser, Post, Program
from tests.konstruct.privacy.erasure.test_erasure import everything
from tests.servers.llm import Answer, LLMServer
from tests.servers.slack import mention, message_event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("files_left_alone"),
]

EVA = Actor(ActorKind.PERSON, "1", "eva")
SECRET = "heliotrope"
REPLIES = "/api/v1/erasures/replies/"
QUOTES = [f"Her code is {SECRET}, Otto.", f"The code is {SECRET}, Bo.", "I do not know, Otto."]


@pytest.fixture
def shared(
    connected: Program,  # noqa: F811
    post: Post,  # noqa: F811
    llm_server: LLMServer,
) -> Program:
    """One character is the id of P, who speaks in a thread with O and B; R speaks in another."""
    event = mention("T1", f"My code is {SECRET}.", user="P")
    post(event)
    answer_all(connected)
    thread = event["event"]["ts"]
    for user, answer in zip("OBO", QUOTES, strict=True):
        llm_server.answers = [Answer({"content": answer})]
        post(message_event("T1", "What is her code?", user=user, thread_ts=thread))
        answer_all(connected)
    post(mention("T1", "Hello.", user="R"))
    answer_all(connected)
    return connected


def affected(program: Program) -> dict[str, Message]:
    """Return the replies to others with words of P, by their texts."""
    with tenant_scope(program.tenant.id):
        return {reply.content: reply for reply in erasure_requests.replies_to_others(["P"])}


def kept(program: Program) -> set[str]:
    with tenant_scope(program.tenant.id):
        return {*Message.objects.filter(role="assistant").values_list("content", flat=True)}


def erase(program: Program, **options: Any) -> Any:
    """Erase P, and return the choice in the receipt."""
    with database.as_owner(), tenant_scope(program.tenant.id):
        receipt: Any = carry_out(erasure_requests.request_erasure("P", by=EVA, **options)).receipt
    return receipt["replies_to_others"]


def test_chosen_replies_are_erased_and_the_others_kept(shared: Program) -> None:
    replies = affected(shared)
    assert set(replies) == set(QUOTES)
    first = replies[QUOTES[0]]
    with tenant_scope(shared.tenant.id):
        other = Message.objects.get(user_id="R", role="assistant")
        with pytest.raises(InvalidArgument, match="not written with their words"):
            erasure_requests.request_erasure("P", by=EVA, reply_ids=[first.pk, other.pk])
        ToolCall.objects.create(
            agent_id=first.agent_id, user_id="O", thread_id=first.thread_id, round=0, position=0,
            message_id=first.in_reply_to_id, call_id="c", name="note", state="done",
            arguments={"fact": SECRET}, expires_at=first.created_at,
        )  # fmt: skip
    chosen = erase(shared, reply_ids=[first.pk])
    assert chosen == {"chosen": 1, "erased": 1, "kept": 2}
    assert kept(shared) & set(QUOTES) == set(QUOTES[1:])
    with tenant_scope(shared.tenant.id):
        question = Message.objects.get(pk=first.in_reply_to_id)
        assert question.pending_reply.last_error == "Its reply was erased."
        assert not ToolCall.objects.exists()


def test_all_replies_are_erased(shared: Program) -> None:
    assert erase(shared, all_replies=True) == {"chosen": "all", "erased": 3, "kept": 0}
    assert SECRET not in everything(shared.tenant)
    with tenant_scope(shared.tenant.id):
        assert Message.objects.filter(user_id__in=["O", "B"]).count() == 3


def test_one_agent_erases_its_replies_only(shared: Program) -> None:
    with tenant_scope(shared.tenant.id):
        bert = Agent.objects.create(name="bert")
    assert erase(shared, agent_id=bert.pk, all_replies=True)["erased"] == 0
    assert set(QUOTES) <= kept(shared)


def test_programs_choose_replies_with_a_key_of_the_whole_tenant(
    shared: Program, program_b: Program
) -> None:
    listed = shared.get(f"{REPLIES}?user_id=P").json()["results"]
    assert [(reply["user_id"], reply["content"]) for reply in listed] == [
        *zip("OBO", QUOTES, strict=True)
    ][::-1]
    assert program_b.get(f"{REPLIES}?user_id=P").json()["results"] == []
    body = {"user_id": "P", "replies": [listed[0]["id"]]}
    for bound in ({"user_id": "P"}, {"agent_id": shared.agent.id}):
        narrow = shared.with_key(scopes=["read", "erase"], **bound)
        assert narrow.get(f"{REPLIES}?user_id=P").status_code == 403
        assert narrow.post("/api/v1/erasures/", body).status_code == 403
    refused = shared.post("/api/v1/erasures/", {**body, "user_id": "R"})
    assert refused.status_code == 400, refused.content
    with tenant_scope(shared.tenant.id):
        assert not ErasureRequest.objects.exists()
    answer = shared.post("/api/v1/erasures/", body).json()
    assert (answer["all_replies"], answer["reply_ids"]) == (False, body["replies"])


def test_the_command_counts_replies_and_keeps_them(shared: Program, capsys: Any) -> None:
    affected(shared)
    with database.as_owner():
        call_command("erase_user", "--tenant", shared.tenant.slug, "--user", "P", "--yes")
    output = capsys.readouterr()
    assert "written with their words: 3. They are kept" in output.err
    assert 'replies_to_others: {"kept": 3, "chosen": 0, "erased": 0}' in output.out


def test_the_team_chooses_replies(shared: Program, browser: Browser) -> None:
    replies, client = affected(shared), browser(shared.tenant)
    address = "/admin/people/person/erase/?user=P"
    page = client.get(address).text
    assert all(f"{reply.user_id}: {text}" in page for text, reply in replies.items())
    permitted = ("add_erasurerequest", "view_scope")
    assert SECRET not in browser(shared.tenant, *permitted).get(address).text
    chosen = str(replies[QUOTES[0]].pk)
    client.post(address, {"typed": "P", "replies": [chosen]})
    with tenant_scope(shared.tenant.id):
        assert [*map(str, ErasureRequest.objects.get().reply_ids)] == [chosen]
        message = Message.objects.get(user_id="P", role="user")
    address = f"/admin/messages/{message.pk}/erase/"
    assert QUOTES[0] in client.get(address).text
    client.post(address, {"what": "message", "replies": [chosen]})
    with tenant_scope(shared.tenant.id):
        assert [*map(str, MessageErasure.objects.get().reply_ids)] == [chosen]


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_message_is_erased_with_its_quotes(shared: Program, is_bound: bool) -> None:
    with tenant_scope(shared.tenant.id):
        message = Message.objects.get(user_id="P", role="user")
    of_person = shared.with_key(scopes=["read", "erase"], user_id="P")
    program = of_person if is_bound else shared
    query = urlencode({"quotes": "true", "reason": "by mail"})
    answer = program.request("DELETE", f"{MESSAGES}{message.pk}/?{query}")
    assert answer.status_code == 202, answer.content
    with database.as_owner():
        assert jobs.ERASE_MESSAGES.run_due() == 1
    receipt = program.get(answer.headers["Location"]).json()["receipt"]
    assert kept(shared) & set(QUOTES) == (set(QUOTES) if is_bound else {QUOTES[2]})
    assert len(receipt["quoted_in"]) == (2 if is_bound else 0)
    assert (SECRET in everything(shared.tenant)) is is_bound


@pytest.mark.parametrize("whole_person", [True, False])
def test_a_restore_of_a_dump_from_before_repeats_the_choice(
    shared: Program, whole_person: bool, settings: Any, tmp_path: Path
) -> None:
    settings.ERASURE_JOURNAL = str(tmp_path / "journal")
    (tmp_path / "journal").touch()
    reply = affected(shared)[QUOTES[0]]
    with database.as_owner(), tenant_scope(shared.tenant.id):
        message = Message.objects.get(user_id="P", role="user")
        request: Any = (
            erasure_requests.request_erasure("P", by=EVA, reply_ids=[reply.pk])
            if whole_person
            else erasure_requests.request_message_erasure(
                agent_id=message.agent_id, user_id="P", thread_id=message.thread_id,
                message_id=message.pk, reply_ids=[reply.pk], by=EVA,
            )
        )  # fmt: skip
        journal_open_requests()
        request.delete()  # the dump has the rows, and no request
        assert replay(journal.read()) == 2
    assert kept(shared) & set(QUOTES) == set(QUOTES[1:])
    with tenant_scope(shared.tenant.id):
        assert not Message.objects.filter(pk=message.pk).exists()
