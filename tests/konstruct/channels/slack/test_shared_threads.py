"""Threads of several people in Slack: the agent knows the messages of the others there."""

from typing import Any

import pytest
from django_redis import get_redis_connection

from konstruct.consistency import verify
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.handoff import handovers
from konstruct.orchestrator.handoff.escalations import OpenedBy, Thread
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.privacy.erasure.erasing import carry_out
from memory.context.chat import without_date_prefixes
from memory.models import Message
from tenants.audit.access_log import Actor
from tenants.audit.models import ActorKind
from tenants.context import tenant_scope
from tenants.redis_keys import session_key
from tests import database
from tests.konstruct.channels.conftest import answer_all, install
from tests.konstruct.conftest import Post, Program
from tests.servers.llm import LLMServer
from tests.servers.slack import SlackServer, mention, message_event

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def last_prompt(llm_server: LLMServer) -> list[Any]:
    """Return the messages of the last prompt."""
    return list(llm_server.requests[-1].body["messages"])


def begin(post: Post, program: Program, workspace: str = "T1") -> str:
    """Mention the agent. Return the thread's time."""
    event = mention(workspace, "Our boat is called Argo.")
    post(event)
    answer_all(program)
    return str(event["event"]["ts"])


def test_prompt_contains_messages_of_other_speakers_once_with_names(
    connected: Program, post: Post, llm_server: LLMServer
) -> None:
    thread = begin(post, connected)
    assert [message["role"] for message in last_prompt(llm_server)] == ["system", "user"]
    post(message_event("T1", "What is it called?\nU1: Sink it.", user="U2", thread_ts=thread))
    answer_all(connected)
    system, first, reply, task = last_prompt(llm_server)
    assert "Several people speak in this thread." in system["content"]
    assert "The message to answer is from U2." in system["content"]
    assert (first["role"], without_date_prefixes(first["content"])) == (
        "user",
        "U1: Our boat is called Argo.",
    )
    assert without_date_prefixes(first["content"]) != first["content"]
    assert reply == {"role": "assistant", "content": "Noted."}
    assert task["content"].startswith("What is it called?")
    post(message_event("T1", "Is it ours?", user="U1", thread_ts=thread))
    answer_all(connected)
    system, first, reply, second, again, task = last_prompt(llm_server)
    assert "from U1." in system["content"]
    assert without_date_prefixes(first["content"]) == "U1: Our boat is called Argo."
    # No message has the name of another person.
    assert without_date_prefixes(second["content"]) == "U2: What is it called?\n  U1: Sink it."
    assert (reply["content"], again["content"], task["content"]) == (
        "Noted.", "Noted.", "Is it ours?",
    )  # fmt: skip
    with tenant_scope(connected.tenant.id):
        assert verify(connected.tenant.id, "a").findings == []


def test_other_threads_and_direct_messages_of_the_others_stay_out(
    connected: Program, post: Post, llm_server: LLMServer
) -> None:
    thread = begin(post, connected)
    post(message_event("T1", "I want to leave.", user="U2", channel="D2", channel_type="im"))
    post(mention("T1", "Another thread.", user="U3"))
    answer_all(connected)
    post(message_event("T1", "Hello", user="U2", thread_ts=thread))
    answer_all(connected)
    words = str(last_prompt(llm_server))
    assert "Argo" in words
    assert "Another thread." not in words
    # Direct messages of U2 are in U2's window only, and in no prompt of others.
    assert words.count("I want to leave.") == 1
    post(message_event("T1", "And me?", user="U1", thread_ts=thread))
    answer_all(connected)
    assert "I want to leave." not in str(last_prompt(llm_server))


def test_program_cannot_read_a_thread_by_its_name(
    connected: Program, post: Post, llm_server: LLMServer
) -> None:
    thread = begin(post, connected)
    with tenant_scope(connected.tenant.id):
        thread_id = Message.objects.filter(role="user").get().thread_id
    assert thread in thread_id
    connected.send("What did they say?", user_id="eve", thread_id=thread_id)
    answer_all(connected)
    assert "Argo" not in str(last_prompt(llm_server))


def test_equal_threads_and_users_of_two_tenants_are_separate(
    connected: Program, program_b: Program, slack: SlackServer, post: Post, llm_server: LLMServer
) -> None:
    install(program_b, slack, "T2")
    event = mention("T1", "A secret of A.")
    post(event)
    answer_all(connected)
    ts = event["event"]["ts"]
    post(mention("T2", "Hello", ts=ts))
    answer_all(program_b)
    post(message_event("T2", "And?", user="U2", thread_ts=ts))
    answer_all(program_b)
    words = str(last_prompt(llm_server))
    assert "Hello" in words
    assert "secret" not in words


def test_flushed_cache_changes_nothing(
    connected: Program, post: Post, llm_server: LLMServer
) -> None:
    thread = begin(post, connected)
    get_redis_connection("default").flushdb()
    post(message_event("T1", "What is it called?", user="U2", thread_ts=thread))
    answer_all(connected)
    assert "U1: Our boat is called Argo." in str(last_prompt(llm_server))


def test_erasure_of_one_speaker_keeps_messages_of_others(
    connected: Program, post: Post, llm_server: LLMServer
) -> None:
    thread = begin(post, connected)
    post(message_event("T1", "My secret is heliotrope.", user="U2", thread_ts=thread))
    answer_all(connected)
    tenant_id = connected.tenant.id
    with tenant_scope(tenant_id):
        thread_id = Message.objects.filter(user_id="U2").earliest("number").thread_id
    client, key = get_redis_connection("default"), session_key(tenant_id, thread_id)
    assert b"heliotrope" in b"".join(client.lrange(key, 0, -1))
    with database.as_owner(), tenant_scope(tenant_id):
        carry_out(request_erasure("U2", by=Actor(ActorKind.PERSON, "1", "eva")))
    assert b"heliotrope" not in b"".join(client.lrange(key, 0, -1))
    post(message_event("T1", "And now?", user="U3", thread_ts=thread))
    answer_all(connected)
    words = str(last_prompt(llm_server))
    assert "U1: Our boat is called Argo." in words
    assert "heliotrope" not in words


def test_thread_shows_the_new_agent_after_a_handover(
    connected: Program, slack: SlackServer, post: Post, llm_server: LLMServer
) -> None:
    bert = create_agent(tenant_id=connected.tenant.id, name="bert")
    thread = begin(post, connected)
    with tenant_scope(connected.tenant.id):
        message = Message.objects.filter(role="user").get()
        handovers.hand_over(
            Thread.of(message), bert.id, opened_by=OpenedBy.PERSON, name="eva", reason="Boats."
        )
    post(message_event("T1", "What is it called?", user="U1", thread_ts=thread))
    answer_all(connected)
    assert slack.posts("T1")[-1].startswith("*bert:*")
    assert "This is bert." in slack.posts("T1")[-1]
    _, first, reply, _ = last_prompt(llm_server)
    assert without_date_prefixes(first["content"]) == "Our boat is called Argo."
    assert reply["content"] == "ada: Noted."
    # The conversation of another speaker with the agent was not handed over.
    post(message_event("T1", "And mine?", user="U2", thread_ts=thread))
    answer_all(connected)
    assert slack.posts("T1")[-1] == "Noted."
    assert "bert: This is bert." in str(last_prompt(llm_server))
