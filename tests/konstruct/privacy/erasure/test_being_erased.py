"""During an erasure no interface writes about the person, and what was in flight writes nothing."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connections
from django_redis import get_redis_connection

from konstruct.channels.inbox import ARRIVALS
from konstruct.channels.models import Arrival
from konstruct.interfaces.openai import views as openai_views
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.dry_runs import save_question
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.channel_identities import identity_of, link
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent, QuestionAnswer, SavedQuestion
from konstruct.orchestrator.pipeline import respond
from konstruct.privacy.erasure import person
from konstruct.privacy.erasure.erasing import carry_out
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message, Scope
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind
from tenants.audit.people import Person, PersonBeingErased
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.redis_keys import memory_short_key
from tests import database
from tests.konstruct.channels.conftest import answer_all, connected, post, slack, take_in_all  # noqa: F401
from tests.konstruct.conftest import Post, Program, SendMessage
from tests.konstruct.interfaces.mcp.speaking import call, text_of
from tests.konstruct.orchestrator.extraction.conftest import fact
from tests.konstruct.privacy.conftest import save_session
from tests.servers.llm import Answer, LLMServer
from tests.servers.slack import mention

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("files_left_alone"),
]

V1 = "/api/v1/"
ADD = "/mem0/v3/memories/add/"
EVA = Actor(ActorKind.PERSON, "1", "eva")


def requests_of(program: Program) -> dict[str, dict[str, Any]]:
    """Return a request for each path that stores something about maria."""
    person = {"agent": program.agent.name, "user_id": "maria"}
    said = {**person, "thread_id": "t", "content": "I am here."}
    turn = {**said, "role": "user", "external_id": "e", "created_at": "2026-01-01T00:00:00Z"}
    item = {"item": {"text": "Hi."}}
    return {
        f"{V1}messages/": said,
        f"{V1}messages/?wait=1": said,
        f"{V1}messages/import/": {"messages": [turn]},
        f"{V1}facts/": {**person, "content": "Maria is tall."},
        f"{V1}facts/batch/": {"facts": [{**person, "content": "Maria is tall."}]},
        f"{V1}conversations/items/": {**person, "thread_id": "t", "items": [item]},
        ADD: {"messages": "I am tall.", "user_id": "maria", "infer": False},
        "/v1/chat/completions": {
            "model": program.agent.name, "user": "maria",
            "messages": [{"role": "user", "content": "I am here."}],
        },
    }  # fmt: skip


def test_every_interface_refuses_the_person_until_the_erasure_is_done(
    program_a: Program, program_b: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_views, "WAIT_SECONDS", 0)  # no worker answers
    assert program_a.send("Hello.").status_code == 202
    with tenant_scope(program_a.tenant.id):
        link(identity_of("slack", "T1", "U1"), "maria", by="eva")
        request_erasure("maria", by=EVA)
        rows = (Message.objects.count(), MemoryEntry.objects.count())
    for path, body in requests_of(program_a).items():
        refused = program_a.post(path, body)
        assert refused.status_code == 409, (path, refused.content)
        assert int(refused.headers["Retry-After"]) > 0, path
        assert "being erased" in refused.content.decode(), path
        assert program_b.post(path, requests_of(program_b)[path]).status_code != 409, path
    # Linked ids are the same person.
    assert program_a.send("From Slack.", user_id="U1").status_code == 409
    assert program_a.send("I am bob.", user_id="bob").status_code == 202
    remembered = call(program_a, "remember", user_id="maria", content="Maria is tall.")
    assert remembered["isError"]
    assert "being erased" in text_of(remembered)
    with pytest.raises(PersonBeingErased):
        save_session(program_a.tenant, "t", "Hi.", user_id="maria")
    with tenant_scope(program_a.tenant.id):
        assert (Message.objects.count() - 1, MemoryEntry.objects.count()) == rows
    with database.as_owner(), tenant_scope(program_a.tenant.id):
        carry_out(request_erasure("maria", by=EVA))
    assert program_a.send("I am back.").status_code == 202


def test_an_erasure_by_one_agent_refuses_messages_to_that_agent(program_a: Program) -> None:
    program_a.send("Hello.")
    with tenant_scope(program_a.tenant.id):
        Agent.objects.create(name="bo")
        request_erasure("maria", by=EVA, agent_id=program_a.agent.pk)
    assert program_a.send("Hello.").status_code == 409
    assert program_a.send("Hello.", agent="bo").status_code == 202


def test_slack_event_during_an_erasure_is_erased_or_processed_after_it(
    connected: Program,  # noqa: F811
    post: Post,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    purge, tenant_id = person.purge_files, connected.tenant.id
    post(mention("T1", "My code is heliotrope."))
    answer_all(connected)
    with tenant_scope(tenant_id):
        (user_id,) = {*Message.objects.values_list("user_id", flat=True)}
        request = request_erasure(user_id, by=EVA)
    post(mention("T1", "It was heliotrope."))  # removed with the rows of the person
    take_in_all(connected)

    def send() -> int:
        try:
            post(mention("T1", "Are you there?"))
            take_in_all(connected)
            with tenant_scope(tenant_id):
                assert not Message.objects.exists()
                return Arrival.objects.count()
        finally:
            connections.close_all()

    def purge_after_an_event(*given: Any, **options: Any) -> Any:
        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(send).result() == 1
        return purge(*given, **options)

    monkeypatch.setattr(person, "purge_files", purge_after_an_event)
    with database.as_owner(), tenant_scope(tenant_id):
        carry_out(request)
    with tenant_scope(tenant_id):
        assert not Message.objects.exists()
        long_ago = "2000-01-01T00:00:00Z"
        ARRIVALS.jobs().update(due_at=long_ago, sweep_at=long_ago)
    take_in_all(connected)
    with tenant_scope(tenant_id):
        assert [*Message.objects.values_list("content", flat=True)] == ["Are you there?"]


def test_turns_that_are_appended_after_the_erasure_stay_in_no_window(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = respond.append_to_window

    def append_late(*given: Any) -> None:
        with database.as_owner(), tenant_scope(program_a.tenant.id):
            carry_out(request_erasure("maria", by=EVA))
        append(*given)

    monkeypatch.setattr(respond, "append_to_window", append_late)
    message = program_a.send("My code is heliotrope.").json()
    pipeline.handle(tenant_id=program_a.tenant.id, message_id=UUID(message["id"]))
    key = memory_short_key(program_a.tenant.id, program_a.agent.id, "maria")
    assert not get_redis_connection("default").exists(key)


def test_a_model_that_answers_after_the_erasure_makes_no_memory(
    program_a: Program, llm_server: LLMServer, settings: Any
) -> None:
    """The model of mem0's `infer` answers when the person is erased already."""
    settings.LLM_POOL_URL, settings.LLM_API = llm_server.url, "pool"
    found = fact("Porto", "I live in Porto.", fact="Maria lives in Porto.")
    llm_server.answers = [Answer({"content": json.dumps({"facts": [found]})}, wait=True)]
    body = {"messages": "I live in Porto.", "user_id": "maria"}
    before = len(llm_server.requests)

    def add() -> Any:
        try:
            return program_a.post(ADD, {**body, "agent_id": program_a.agent.name})
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        adding = threads.submit(add)
        llm_server.wait_for_requests(before + 1, seconds=60)
        with database.as_owner(), tenant_scope(program_a.tenant.id):
            carry_out(request_erasure("maria", by=EVA))
        llm_server.release()
        refused = adding.result()
    assert refused.status_code == 409, refused.content
    with tenant_scope(program_a.tenant.id):
        for model in (Message, MemoryEntry, Scope, Person):
            assert not model.objects.filter(user_id="maria").exists(), model
        entry = MemoryEntry(tenant_id=program_a.tenant.id, user_id="maria", content="Is back.")
        assert LongTermMemory().store(entry)


MARIA = "U07:maria%"
NAMING = ["What does José Lopez like?", "Ask jOSÉ   LOPEZ.", f"Who is {MARIA}?", "Call Pepa!"]
OTHERS = ["Who is Ana?", "Is Joséphine Lopez in?", "José likes Lopez.", "Pepaland, U07:maria"]


def save(agent: Agent, tenant: Tenant) -> None:
    """Save questions, some of which name Maria."""
    for content in [*NAMING, *OTHERS]:
        question = save_question(agent, content=content)
        QuestionAnswer.objects.create(
            question=question, agent_id=agent.pk, version=1, content="Yes."
        )


def kept() -> set[str]:
    return set(SavedQuestion.objects.values_list("content", flat=True))


@pytest.fixture
def named_people(tenant_a: Tenant, send_message: SendMessage) -> None:
    """Maria under two names, one of an account, and Ana under a name that Maria has, too."""
    send_message("Hello.", MARIA, "t1", name="José Lopez")
    send_message("Hello.", MARIA, "t2", name="Ana")
    send_message("Hello.", MARIA, "t2", name="Bo")
    send_message("Hello.", "ana", "t3", name="ÁNA")
    with tenant_scope(tenant_a.id):
        identity = channel_identities.identity_of("slack", "T1", "U1", name="Pepa")
        channel_identities.link(identity, MARIA, by="eva")


def test_rows_naming_the_person_are_deleted_in_this_tenant_only(
    tenant_a: Tenant, tenant_b: Tenant, agent: Agent, named_people: None
) -> None:
    with tenant_scope(tenant_b.id):
        save(Agent.objects.create(name="ada"), tenant_b)
        every = kept()
    with database.as_owner(), tenant_scope(tenant_a.id):
        save(agent, tenant_a)
        receipt: Any = carry_out(request_erasure(MARIA, by=EVA)).receipt
        assert kept() == set(OTHERS)
        assert set(
            QuestionAnswer.objects.values_list("question__content", flat=True)
        ) == set(OTHERS)  # fmt: skip
        tables = receipt["tables"]
        assert tables["orchestrator_savedquestion"]["removed"] == 4
        assert tables["orchestrator_questionanswer"]["removed"] == 4
    with tenant_scope(tenant_b.id):
        assert kept() == every


def test_an_erasure_by_one_agent_leaves_the_questions_to_others(
    tenant_a: Tenant, agent: Agent, named_people: None
) -> None:
    with database.as_owner(), tenant_scope(tenant_a.id):
        other = Agent.objects.create(name="bo")
        save(other, tenant_a)
        save_question(agent, content="Who is Pepa?")
        carry_out(request_erasure(MARIA, by=EVA, agent_id=agent.pk))
        assert not SavedQuestion.objects.filter(agent_id=agent.pk).exists()
        assert SavedQuestion.objects.filter(agent_id=other.pk).count() == 8


def test_unknown_id_deletes_no_saved_question(tenant_a: Tenant, agent: Agent) -> None:
    with database.as_owner(), tenant_scope(tenant_a.id):
        save_question(agent, content="Which agent are you?")
        carry_out(request_erasure("agent", by=EVA))
        assert SavedQuestion.objects.count() == 1
