"""States of rows that the demo's history does not have, so that all pages have content."""

from typing import Any

from konstruct.channels.delivery import queue as deliveries
from konstruct.channels.exceptions import ChannelRefused
from konstruct.channels.models import SlackMember
from konstruct.channels.slack.installations import connect
from konstruct.channels.slack.oauth import SCOPES
from konstruct.orchestrator import pipeline
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import (
    request_erasure,
    request_message_erasure,
)
from konstruct.orchestrator.models import (
    Agent,
    Destination,
    Escalation,
    Event,
    NotificationRecipient,
)
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from konstruct.orchestrator.retention_rules import set_days
from memory.conversations.transcript import record_message
from memory.facts import Author
from memory.facts.exclusions import exclude_from_recall
from memory.models import Message, Role
from memory.models.facts import AuthorKind
from tenants.audit.access_log import Actor
from tenants.audit.models import RetentionRule
from tenants.context import required_tenant_id

WORKSPACE = "T024BE7LD"
SLACK_USER = "U024BE7LH"


def send(agent: Agent, text: str, *, user: str, thread: str, answered: bool = True) -> Message:
    """Send a message like a program, and answer it immediately."""
    incoming = Incoming(
        agent_id=agent.id,
        user_id=user,
        thread_id=thread,
        channel="rest",
        content=text,
        name=user.title(),
    )
    message, _ = accept(incoming, tenant_id=required_tenant_id())
    if answered:
        pipeline.handle(tenant_id=required_tenant_id(), message_id=message.id)
    return message


def add_states(agent: Agent, otto: Agent, admin: Any) -> Escalation:
    """Request erasures, connect Slack, let a message and a tool wait; return the escalation."""
    actor = Actor.person(admin)
    author = Author(AuthorKind.PERSON, actor.id, actor.name)
    messages = Message.objects.filter(agent_id=agent.pk, user_id="tom")
    exclude_from_recall(
        messages.filter(role=Role.ASSISTANT).latest("number"), author=author, reason="It is wrong."
    )
    # It takes effect a day later, unless it is cancelled.
    set_days(RetentionRule(agent_id=otto.pk), 14)
    request_erasure("ravi", by=actor, reason="Ravi asked for it by mail.")
    message = messages.filter(role=Role.USER).earliest("number")
    request_message_erasure(
        agent_id=agent.pk,
        user_id=message.user_id,
        thread_id=message.thread_id,
        message_id=message.pk,
        by=actor,
        reason="It named a guest.",
    )
    _connect_slack(agent, actor, admin)
    send(otto, "Can I talk to a human, please?", user="kim", thread="kim-ferry")
    # A tool call that waits for a consent.
    send(otto, "Please remember that I travel with my dog.", user="kim", thread="kim-dog")
    return Escalation.objects.get()


def _connect_slack(agent: Agent, actor: Actor, admin: Any) -> None:
    """Connect a workspace, with a delivery that has failed."""
    installation = connect(
        tenant_id=required_tenant_id(),
        agent_id=agent.pk,
        workspace=WORKSPACE,
        name="Aurora Travel",
        bot_user_id="U0BOT",
        token="xoxb-of-no-workspace",
        scopes=SCOPES,
        by=actor.name,
    )
    SlackMember.objects.create(installation=installation, slack_id="U0ADMIN", member=admin)
    NotificationRecipient.objects.create(
        destination=Destination.MAIL,
        email="desk@aurora.example",
        events=[Event.ESCALATION_OPENED, Event.JOB_FAILED],
        is_active=False,
    )
    identity = channel_identities.identity_of("slack", WORKSPACE, SLACK_USER, "Kim Novak")
    channel_identities.link(identity, "kim", by=actor.name)
    message, _ = record_message(
        tenant_id=required_tenant_id(),
        agent_id=agent.pk,
        user_id="kim",
        thread_id="slack-ferry",
        channel="slack",
        role=Role.USER,
        name="Kim Novak",
        content="Is the ferry running today?",
    )
    address = {"workspace": WORKSPACE, "channel": "C1", "thread_ts": "1.1", "ts": "1.1"}
    deliveries.enqueue(message, channel="slack", address=address)
    refusal = ChannelRefused("Slack refused chat.postMessage: is_archived.")
    deliveries.DELIVERIES.record_failure(message.pk, refusal)
