"""Notifications in Slack: the posts, and answering a user from there."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from konstruct.channels.models import SlackInstallation, SlackMember
from konstruct.channels.slack.inbound import ANSWER, SENT
from konstruct.channels.slack.installations import disconnect
from konstruct.orchestrator.models import Agent, Escalation
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.outbox.models import NOTIFICATIONS
from tests.konstruct.channels.conftest import install
from tests.konstruct.channels.notifications.conftest import (
    QUESTION,
    ask,
    member,
    pass_time,
    slack_recipient,
    work,
)
from tests.konstruct.conftest import Post, Program, user_of
from tests.servers.slack import SlackServer, Trouble

INTERACTIONS = "/channels/slack/interactions/"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def notified_program(connected: Program, slack: SlackServer) -> Program:
    """A user waits for a person, and the channel C9 is notified."""
    with tenant_scope(connected.tenant.id):
        Agent.objects.update(escalate_on=["human"])
        slack_recipient()
        ask(connected)
        work()
    return connected


def send(post: Post, payload: Any) -> Any:
    """Send an interaction as Slack does."""
    body = urlencode({"payload": json.dumps(payload)}).encode()
    return post(body, path=INTERACTIONS, content_type=FORM)


def press(
    post: Post, escalation: Any, user: str = "U7", workspace: str = "T1", **fields: Any
) -> Any:
    """Press the button of a notification."""
    payload = {
        "type": "block_actions",
        "team": {"id": workspace},
        "user": {"id": user, "team_id": workspace},
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
        "actions": [{"action_id": ANSWER, "value": str(escalation)}],
        **fields,
    }
    return send(post, payload)


def submit(
    post: Post, escalation: Any, text: object, user: str = "U7", workspace: str = "T1", **view: Any
) -> Any:
    """Send the form."""
    payload = {
        "type": "view_submission",
        "team": {"id": workspace},
        "user": {"id": user, "team_id": workspace},
        "view": {
            "id": "V1",
            "callback_id": ANSWER,
            "private_metadata": str(escalation),
            "state": {"values": {ANSWER: {ANSWER: {"value": text}}}},
            **view,
        },
    }
    return send(post, payload)


def escalation_of(program: Program) -> Escalation:
    with tenant_scope(program.tenant.id):
        return Escalation.objects.get()


def answers_of(program: Program) -> list[tuple[str, str]]:
    """Return the answers of people with their names."""
    with tenant_scope(program.tenant.id):
        messages = Message.objects.filter(role="assistant").exclude(name__in=["", "ada"])
        return list(messages.order_by("number").values_list("name", "content"))


def error_of(response: Any) -> str:
    return str(response.json()["errors"][ANSWER])


def test_an_escalation_is_posted_with_a_link_and_a_button(
    notified_program: Program, slack: SlackServer
) -> None:
    (posted,) = slack.workspaces["T1"].posts
    found = escalation_of(notified_program)
    (section,) = posted["blocks"]
    assert posted["channel"] == "C9"
    assert posted["text"].startswith("[Tenant-A] A user of ada waits for a person, since ")
    link = f"<http://tenant-a.localhost:8000/admin/escalations/{found.pk}/|Open>"
    assert section["text"]["text"].endswith(link)
    assert section["accessory"]["value"] == str(found.pk)
    assert "Bello" not in json.dumps(posted)


def test_a_member_answers_the_user_from_slack(
    notified_program: Program, slack: SlackServer, post: Post
) -> None:
    found = escalation_of(notified_program)
    with tenant_scope(notified_program.tenant.id):
        eva = member("U7", "change_escalation", "view_message")
    assert press(post, found.pk).content == b""
    (form,) = slack.workspaces["T1"].forms
    assert form["private_metadata"] == str(found.pk)
    assert form["blocks"][0]["text"]["text"] == QUESTION
    assert form["blocks"][1]["hint"]["text"].endswith("under your name, eva-u7.")
    response = submit(post, found.pk, "Hello, this is Eva.")
    assert response.json()["view"]["blocks"][0]["text"]["text"] == SENT
    assert answers_of(notified_program) == [("eva-u7", "Hello, this is Eva.")]
    with tenant_scope(notified_program.tenant.id):
        noted = AccessEvent.objects.filter(subject="escalation").order_by("id")
        assert [(event.actor_id, event.action, user_of(event)) for event in noted] == [
            (str(eva.pk), "view", "maria"), (str(eva.pk), "answer", "maria"),
        ]  # fmt: skip


def test_question_is_hidden_without_the_permission_to_read_conversations(
    notified_program: Program, slack: SlackServer, post: Post
) -> None:
    with tenant_scope(notified_program.tenant.id):
        member("U7", "change_escalation")
    press(post, escalation_of(notified_program).pk)
    assert "Bello" not in json.dumps(slack.workspaces["T1"].forms)


def test_button_is_refused_without_the_permission_to_answer(
    notified_program: Program, slack: SlackServer, post: Post
) -> None:
    found = escalation_of(notified_program)
    with tenant_scope(notified_program.tenant.id):
        member("U8", "view_escalation")
        former_member = member("U9", "change_escalation")
        former_member.is_active = False
        former_member.save()
    for user in ("U7", "U8", "U9"):
        press(post, found.pk, user)
        assert "belongs to no member" in error_of(submit(post, found.pk, "Hello", user))
    forms = slack.workspaces["T1"].forms
    assert [len(form["blocks"]) for form in forms] == [1, 1, 1]
    assert "U7 belongs to no member" in forms[0]["blocks"][0]["text"]["text"]
    assert "Bello" not in json.dumps(forms)
    assert answers_of(notified_program) == []


def test_other_workspace_gets_no_notification(
    notified_program: Program, program_b: Program, slack: SlackServer, post: Post
) -> None:
    install(program_b, slack, "T2")
    found = escalation_of(notified_program)
    with tenant_scope(program_b.tenant.id):
        member("U7", "change_escalation", "view_message", workspace="T2")
    with tenant_scope(notified_program.tenant.id):
        member("U7", "change_escalation")
    press(post, found.pk, workspace="T2")
    assert "resolved, or was erased" in json.dumps(slack.workspaces["T2"].forms)
    assert error_of(submit(post, found.pk, "Hello", workspace="T2")) == (
        "This escalation is resolved, or was erased."
    )
    assert submit(post, found.pk, "Hello", workspace="T9").json()["response_action"] == "errors"
    assert answers_of(notified_program) == []
    assert slack.workspaces["T1"].forms == []


def test_a_guest_of_another_workspace_does_not_answer(
    notified_program: Program, slack: SlackServer, post: Post
) -> None:
    with tenant_scope(notified_program.tenant.id):
        member("U7", "change_escalation")
    payload = {
        "type": "view_submission",
        "team": {"id": "T1"},
        "user": {"id": "U7", "team_id": "T2"},
        "view": {
            "id": "V1",
            "callback_id": ANSWER,
            "private_metadata": str(escalation_of(notified_program).pk),
            "state": {"values": {ANSWER: {ANSWER: {"value": "Hello"}}}},
        },
    }
    assert error_of(send(post, payload)) == "This workspace is not connected any more."
    assert answers_of(notified_program) == []


def test_a_post_of_which_the_answer_was_lost_is_found(
    connected: Program, slack: SlackServer
) -> None:
    slack.trouble("chat.postMessage", Trouble(500, done=True))
    with tenant_scope(connected.tenant.id):
        Agent.objects.update(escalate_on=["human"])
        slack_recipient()
        ask(connected)
        work()
        pass_time()
        work()
        assert not NOTIFICATIONS.jobs().due().exists()
    assert len(slack.posts("T1")) == 1


def test_a_workspace_that_was_disconnected_reaches_no_one(
    connected: Program, slack: SlackServer, post: Post
) -> None:
    with tenant_scope(connected.tenant.id):
        Agent.objects.update(escalate_on=["human"])
        slack_recipient()
        member("U7", "change_escalation")
        disconnect(SlackInstallation.objects.get(), by="eva")
        ask(connected)
        work()
        assert NOTIFICATIONS.jobs().failed().get().last_error == (
            "The Slack workspace T1 is not connected any more."
        )
        assert SlackMember.objects.count() == 1
    assert error_of(submit(post, escalation_of(connected).pk, "Hello")) == (
        "This workspace is not connected any more."
    )


def test_names_and_questions_notify_no_one(connected: Program, slack: SlackServer) -> None:
    with tenant_scope(connected.tenant.id):
        Agent.objects.update(escalate_on=["human"], name="<!channel> <@U1> *Ada*")
        slack_recipient(includes_content=True)
        ask(connected)
        work()
    (posted,) = slack.workspaces["T1"].posts
    section, question = posted["blocks"]
    assert "&lt;!channel&gt; &lt;@U1&gt; *Ada*" in section["text"]["text"]
    assert "<!" not in posted["text"]
    assert question["text"] == {"type": "plain_text", "text": QUESTION, "emoji": False}
