"""Held messages in Slack: consent by buttons, and an answer of a person."""

import json
import time
from typing import Any
from urllib.parse import urlencode

import pytest

from konstruct.channels.delivery import CLOSED, PLACEHOLDER, WITH_PERSON
from konstruct.orchestrator.handoff.escalations import NOTICE, answer_as_person, resolve
from konstruct.orchestrator.identities.channel_identities import user_of
from konstruct.orchestrator.models import Agent, Escalation, PendingReply, ToolCall
from memory.models import MemoryEntry, Message
from tenants.context import tenant_scope
from tests.konstruct.channels.conftest import answer_all, install, messages
from tests.konstruct.conftest import Post, Program
from tests.servers.llm import Answer, LLMServer
from tests.servers.slack import SlackServer, mention, message_event, signed

INTERACTIONS = "/channels/slack/interactions/"
FORM = "application/x-www-form-urlencoded"


def press(post: Post, element: Any, *, user: str = "U1", workspace: str = "T1") -> int:
    """Press a button, as Slack sends it."""
    payload = {
        "type": "block_actions",
        "team": {"id": workspace},
        "user": {"id": user},
        "actions": [{"action_id": element["action_id"], "value": element["value"]}],
    }
    body = urlencode({"payload": json.dumps(payload)}).encode()
    answer = post(body, path=INTERACTIONS, content_type=FORM)
    assert answer.content == b""
    return int(answer.status_code)


def buttons(slack: SlackServer, workspace: str = "T1") -> list[Any]:
    """Return the buttons below our last post."""
    blocks = slack.workspaces[workspace].posts[-1]["blocks"]
    return [element for block in blocks for element in block.get("elements", [])]


@pytest.fixture
def asking(connected: Program, slack: SlackServer, llm_server: LLMServer, post: Post) -> Program:
    """The agent asks for consent to remember something."""
    call = {"name": "remember_fact", "arguments": json.dumps({"fact": "Maria likes <tea>."})}
    calls = [{"id": "c1", "type": "function", "function": call}]
    llm_server.answers = [Answer({"role": "assistant", "content": None, "tool_calls": calls})]
    with tenant_scope(connected.tenant.id):
        Agent.objects.update(tools=["remember_fact"])
    post(mention("T1", "I like tea"))
    answer_all(connected)
    return connected


def call_of(program: Program) -> ToolCall:
    """Return the only tool call of a tenant."""
    with tenant_scope(program.tenant.id):
        return ToolCall.objects.get()


def facts_of(program: Program) -> list[str]:
    """Return the facts of a tenant's agents."""
    with tenant_scope(program.tenant.id):
        return list(MemoryEntry.objects.entries().values_list("content", flat=True))


def test_a_tool_call_is_consented_to_by_a_button(
    asking: Program, slack: SlackServer, post: Post
) -> None:
    (question,) = slack.posts("T1")
    assert "Maria likes &lt;tea&gt;." in question
    approve, deny = buttons(slack)
    assert (approve["text"]["text"], deny["text"]["text"]) == ("Approve", "Deny")
    assert (approve["style"], deny["style"]) == ("primary", "danger")
    assert press(post, approve) == 200
    assert press(post, approve) == 200
    assert press(post, deny) == 200
    answer_all(asking)
    assert facts_of(asking) == ["Maria likes <tea>."]
    assert call_of(asking).decided_by == "U1 in Slack"
    (posted,) = slack.workspaces["T1"].posts
    assert posted["shown"] in ([question, "Noted."], [question, PLACEHOLDER.text, "Noted."])
    assert posted["blocks"] == []


def test_a_tool_call_that_is_denied_is_not_done(
    asking: Program, slack: SlackServer, post: Post
) -> None:
    _, deny = buttons(slack)
    assert press(post, deny) == 200
    answer_all(asking)
    assert facts_of(asking) == []
    assert (call_of(asking).state, slack.posts("T1")) == ("denied", ["Noted."])


def test_another_user_cannot_consent(
    asking: Program, program_b: Program, slack: SlackServer, post: Post
) -> None:
    approve, _ = buttons(slack)
    install(program_b, slack, "T2")
    assert press(post, approve, user="U2") == 200
    assert press(post, approve, workspace="T2") == 200
    assert press(post, approve, workspace="T9") == 200
    assert press(post, approve, workspace="T\0") == 200
    assert press(post, {**approve, "value": "x"}) == 200
    assert press(post, {**approve, "action_id": "other"}) == 200
    body = urlencode({"payload": json.dumps({"type": "view_submission"})}).encode()
    assert post(body, path=INTERACTIONS, content_type=FORM).status_code == 200
    assert post(b"payload=x", path=INTERACTIONS, content_type=FORM).status_code == 400
    forged = signed(body, secret="guessed")
    answer = post(body, path=INTERACTIONS, content_type=FORM, headers=forged)
    assert answer.status_code == 401
    assert call_of(asking).state == "waiting"


def test_a_person_answers_in_the_thread(connected: Program, slack: SlackServer, post: Post) -> None:
    post(mention("T1", "I want to talk to a human", ts="17.1"))
    answer_all(connected)
    assert slack.posts("T1") == [NOTICE]
    for number in (2, 3):
        post(message_event("T1", f"Hello? {number}", ts=f"17.{number}", thread_ts="17.1"))
        answer_all(connected)
    assert slack.posts("T1") == [NOTICE, WITH_PERSON.text, WITH_PERSON.text]
    with tenant_scope(connected.tenant.id):
        escalation = Escalation.objects.get()
        answer_as_person(escalation.pk, "This is **Eva**.", name="Eva")
        answer_all(connected)
        assert slack.posts("T1") == [NOTICE, CLOSED.text, "This is *Eva*."]
        answer_as_person(escalation.pk, "Anything else?", name="Eva")
        answer_all(connected)
        assert slack.posts("T1")[3:] == ["Anything else?"]
        assert {posted["thread_ts"] for posted in slack.workspaces["T1"].posts} == {"17.1"}
        resolve(escalation.pk, by="eva", let_agent_answer=True)
    post(message_event("T1", "Thanks", ts="17.9", thread_ts="17.1"))
    answer_all(connected)
    assert slack.posts("T1")[4:] == ["Noted."]


def test_two_workspaces_of_a_tenant_do_not_share_their_users(
    connected: Program, slack: SlackServer, post: Post
) -> None:
    install(connected, slack, "T2")
    post(mention("T1", "One"))
    post(mention("T2", "Two"))
    post(mention("T1", "Guest", user_team="T3"))
    users = {content: user_id for user_id, _, content, _ in messages(connected)}
    with tenant_scope(connected.tenant.id):
        assert users == {
            content: user_of("slack", workspace, "U1")
            for content, workspace in (("One", "T1"), ("Two", "T2"), ("Guest", "T3"))
        }
        assert len(set(users.values())) == 3
        assert Message.objects.filter(user_id=users["One"]).count() == 1


def test_messages_are_in_the_order_in_which_they_were_sent(connected: Program, post: Post) -> None:
    direct, now = {"channel": "D1", "channel_type": "im"}, time.time()
    post(message_event("T1", "Second", ts=f"{now - 1}", **direct))
    post(message_event("T1", "First", ts=f"{now - 2}", **direct))
    messages(connected)
    with tenant_scope(connected.tenant.id):
        rows = Message.objects.order_by("created_at").values_list("content", "created_at")
        assert [(content, round(now - at.timestamp())) for content, at in rows] == [
            ("First", 2),
            ("Second", 1),
        ]
        pending = PendingReply.objects.in_thread(
            agent_id=connected.agent.id, user_id="U1", thread_id="T1/D1"
        )
        assert [reply.message.content for reply in pending] == ["First", "Second"]
