"""A month of data for the demo's first tenant, so that all pages of its admin have content.

Everything is stored by the product's own functions. Turns of earlier days have their time like
imported turns. Decisions of people (a correction, an erasure) happen now.
"""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from konstruct.channels.delivery import queue as deliveries
from konstruct.channels.exceptions import ChannelRefused
from konstruct.channels.models import SlackMember
from konstruct.channels.slack.installations import connect
from konstruct.channels.slack.oauth import SCOPES
from konstruct.llm.exceptions import LLMRefused
from konstruct.orchestrator.agents import create_agent, update_agent
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.handoff import escalations
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import (
    request_erasure,
    request_message_erasure,
)
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import (
    Agent,
    Destination,
    Escalation,
    Event,
    NotificationRecipient,
)
from konstruct.orchestrator.pipeline.accept import Incoming, accept
from konstruct.orchestrator.replies import queue
from konstruct.orchestrator.retention_rules import set_days
from memory.conversations.transcript import record_message
from memory.embedding.embedder import model_version
from memory.facts import Author, LongTermMemory, confirm, reject
from memory.facts.exclusions import exclude_from_recall
from memory.models import MemoryEntry, Message, Role
from memory.models.facts import AuthorKind, FactState
from memory.recall.service import Hit, RecallResult
from memory.short_term import clear_window
from tenants import transaction
from tenants.audit.access_log import Actor
from tenants.audit.models import RetentionRule
from tenants.context import required_tenant_id

DAYS: Final = 29
SECOND_AGENT: Final = "Otto"
WORKSPACE: Final = "T024BE7LD"
SLACK_USER: Final = "U024BE7LH"
# The person who requests an erasure.
LEAVING: Final = "ravi"
# Names, and the channels of their messages.
PEOPLE: Final = {
    "lea": ("Lea Peeters", "rest"),
    "tom": ("Tom Okafor", "openai"),
    "ines": ("Inês Duarte", "slack"),
    LEAVING: ("Ravi Nair", "openai"),
}
SMALL_TALK: Final = (
    ("A group of {n} wants to see Bruges. Is there room?", "There is room for {n} in Bruges."),
    ("How long is the train to Ghent for {n} people?", "The train to Ghent takes two hours."),
    ("The hotel in Porto asks for {n} names.", "I have noted that the hotel wants {n} names."),
    ("Can {n} people visit the belfry at once?", "The belfry lets 70 people in at once."),
    ("Please hold {n} seats on the ferry.", "I hold {n} seats on the ferry until Friday."),
)
# By days ago. The rules find facts in them; the second home corrects the first one.
STATEMENTS_OF_LEA: Final = {
    26: "I live in Ghent.",
    19: "I work for Bruges Events.",
    12: "My dog is called Waffel.",
    9: "I just moved to Antwerp.",
    6: "I am a vegetarian.",
    4: "My favourite city is Venice.",
}
CONFIRMED: Final = ("Ghent", "Bruges Events", "Antwerp")
REJECTED: Final = "Venice"


@dataclass(frozen=True)
class Month:
    """Rows of the month that tests look at."""

    failed: Message
    """Its reply has failed."""
    escalation: Escalation
    """It waits for a person."""
    waiting: tuple[Message, ...]
    """Messages for a worker: one that needs a consent, and one more of the escalation."""


def add_month(agent: Agent, *, admin: Any) -> Month:
    """Store a month of conversations, facts, escalations and failures in the current tenant.

    Args:
        agent: the tenant's first agent. Nothing is stored of the demo's user: answers do not depend
            on the month.
        admin: the user of the tenant's admin, who decides.

    Returns:
        The unfinished rows. Workers process the others: embeddings, erasures, `waiting`.
    """
    actor = Actor.person(admin)
    author = Author(AuthorKind.PERSON, actor.id, actor.name)
    otto = create_agent(
        tenant_id=required_tenant_id(),
        name=SECOND_AGENT,
        system_prompt=f"You are {SECOND_AGENT}, who books trains and ferries.",
        tools=["remember_fact"],
        escalate_on=["complaint"],
    )
    replies = _store_conversations(agent, otto)
    _find_facts(agent, author)
    exclude_from_recall(replies[1], author=author, reason="The reply was wrong.")
    _settle_escalation(agent, actor)
    # It takes effect a day later, unless it is cancelled.
    set_days(RetentionRule(agent_id=otto.pk), 14)
    _request_erasures(agent, actor)
    clear_window(required_tenant_id(), agent.pk, "tom")
    _connect_slack(agent, actor, admin)
    update_agent(
        agent,
        author=author,
        note="Answers are shorter.",
        system_prompt=f"{agent.system_prompt} Answer in at most three sentences.",
    )
    escalation, waiting = _wait_for_people(otto)
    return Month(_store_failed_reply(agent), escalation, tuple(waiting))


# --- Conversations --------------------------------------------------------------------------------


def _store_conversations(agent: Agent, otto: Agent) -> list[Message]:
    """Store the turns of earlier days; return the replies, latest first."""
    rng = random.Random(7)  # noqa: S311  (of a demo)
    now = datetime.now(UTC)
    replies: list[Message] = []
    earlier: dict[tuple[UUID, str], Message] = {}
    for days_ago in range(DAYS, 0, -1):
        morning = now - timedelta(days=days_ago)
        users = rng.sample(list(PEOPLE), 1 if morning.weekday() > 4 else rng.randint(1, 3))
        turns = [(rng.choice((agent, agent, otto)), user, rng.choice(SMALL_TALK)) for user in users]
        if days_ago in STATEMENTS_OF_LEA:
            turns.append(
                (
                    agent,
                    "lea",
                    (STATEMENTS_OF_LEA[days_ago], "Thank you, Lea. I will keep it in mind."),
                )
            )
        for number, (agent_asked, user, (question, answer)) in enumerate(turns):
            people = rng.randint(4, 60)
            at = morning + timedelta(minutes=11 * number)
            message = _turn(agent_asked, user, question.format(n=people), days_ago=days_ago, at=at)
            recalled = earlier.get((agent_asked.pk, user))
            reply = _turn(
                agent_asked,
                user,
                answer.format(n=people),
                days_ago=days_ago,
                at=at + timedelta(seconds=rng.uniform(0.6, 4.0)),
                in_reply_to=message.pk,
                recall_trace=_recall_result(
                    message, recalled if rng.random() < 0.7 else None
                ).trace(),
                usage={
                    "prompt_tokens": rng.randint(300, 900),
                    "completion_tokens": rng.randint(10, 60),
                },
            )
            earlier[agent_asked.pk, user] = message
            replies.insert(0, reply)
    return replies


def _turn(
    agent: Agent, user_id: str, content: str, *, days_ago: int, at: datetime, **reply_fields: Any
) -> Message:
    """Store a message of a user or, with `in_reply_to`, the reply to it."""
    name, channel = PEOPLE[user_id]
    message, _ = record_message(
        tenant_id=required_tenant_id(),
        agent_id=agent.pk,
        user_id=user_id,
        thread_id=f"{user_id}-{days_ago}",
        channel=channel,
        role=Role.ASSISTANT if reply_fields else Role.USER,
        name="" if reply_fields else name,
        content=content,
        created_at=at,
        **reply_fields,
    )
    return message


def _recall_result(message: Message, found: Message | None) -> RecallResult:
    """Return a recall for the message that found an earlier one, or an empty one."""
    hits = (
        ()
        if found is None
        else (
            Hit(
                message_id=found.pk,
                external_id=None,
                thread_id=found.thread_id,
                role=found.role,
                name=found.name,
                content=found.content,
                created_at=found.created_at,
                score=3.1,
                probability=0.8,
                gate_value=0.8,
                channels={"vector": 0.6, "words": 0.4},
                metadata=None,
            ),
        )
    )
    return RecallResult(
        query=message.content,
        hits=hits,
        cut=(),
        abstained=not hits,
        embedding_model=model_version(),
        milliseconds=4.0,
        embedding_milliseconds=6.0,
    )


# --- Facts ----------------------------------------------------------------------------------------


def _find_facts(agent: Agent, author: Author) -> None:
    """Extract facts with the rules, conversation by conversation, and decide some of them."""
    for days_ago in sorted(STATEMENTS_OF_LEA, reverse=True):
        messages = Message.objects.filter(agent_id=agent.pk, thread_id=f"lea-{days_ago}")
        preview = runs.preview(
            messages=list(messages.order_by("number")), requested_by=author.address
        )
        runs.apply(preview.pk)
        for fact in MemoryEntry.objects.entries().filter(run_id=preview.pk):
            if fact.state == FactState.PROPOSED and fact.value in CONFIRMED:
                confirm(fact.pk, author=author)
            elif fact.state == FactState.PROPOSED and fact.value == REJECTED:
                reject(fact.pk, author=author, reason="It was the favourite of one trip.")
    facts = LongTermMemory()
    tenant_id = required_tenant_id()
    entry = MemoryEntry(
        tenant_id=tenant_id,
        agent_id=agent.pk,
        user_id="tom",
        content="Tom travels with a wheelchair.",
        metadata={"topic": "travel"},
    )
    fact_id = facts.remember_all([entry], author=author)[0].memory_id
    facts.update(
        fact_id, tenant_id, content="Tom travels with a folding wheelchair.", author=author
    )


# --- People ---------------------------------------------------------------------------------------


def _settle_escalation(agent: Agent, actor: Actor) -> None:
    """Answer Inês as a person, and resolve the escalation."""
    message = Message.objects.filter(agent_id=agent.pk, user_id="ines", role=Role.USER).latest(
        "number"
    )
    escalation, _ = escalations.open_escalation(
        Thread.of(message),
        opened_by=Escalation.OpenedBy.PERSON,
        name=actor.name,
        reason="The price of the group is negotiated by a person.",
        message_id=message.pk,
    )
    escalations.assign(escalation.pk, to=actor.name)
    answer = "Hello Inês, we agreed on 48 euros for each person."
    escalations.answer_as_person(escalation.pk, answer, name=actor.name)
    escalations.resolve(escalation.pk, by=actor.name, let_agent_answer=True, note="Price agreed.")


def _request_erasures(agent: Agent, actor: Actor) -> None:
    """Request the erasure of a person, and of one message of another."""
    request_erasure(LEAVING, by=actor, reason="Ravi asked for it by mail.")
    messages = Message.objects.filter(agent_id=agent.pk, user_id="tom", role=Role.USER)
    message = messages.earliest("number")
    request_message_erasure(
        agent_id=agent.pk,
        user_id=message.user_id,
        thread_id=message.thread_id,
        message_id=message.pk,
        by=actor,
        reason="It named a guest.",
    )


def _connect_slack(agent: Agent, actor: Actor, admin: Any) -> None:
    """Connect a workspace that does not exist. A reply in it could not be delivered."""
    installation = connect(
        tenant_id=required_tenant_id(),
        agent_id=agent.pk,
        workspace=WORKSPACE,
        name="Aurora Travel",
        bot_user_id="U0BOT",
        token="xoxb-of-no-workspace",  # noqa: S106
        scopes=SCOPES,
        by=actor.name,
    )
    SlackMember.objects.create(installation=installation, slack_id="U0ADMIN", member=admin)
    # Off: the demo has no mail server.
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
    # In one transaction: no worker sends it to Slack before it has failed.
    with transaction.atomic():
        deliveries.enqueue(message, channel="slack", address=address)
        refusal = ChannelRefused("Slack refused chat.postMessage: is_archived.")
        deliveries.DELIVERIES.record_failure(message.pk, refusal)


def _wait_for_people(otto: Agent) -> tuple[Escalation, list[Message]]:
    """Open an escalation; return it, with a message in it and one that asks for a consent."""
    message = _send(otto, "Can I talk to a human, please?", thread_id="kim-ferry")
    escalation, _ = escalations.open_escalation(
        Thread.of(message), opened_by=Escalation.OpenedBy.USER, reason=f"“{message.content}”"
    )
    return escalation, [
        _send(otto, "It is about the ferry.", thread_id="kim-ferry"),
        _send(otto, "Please remember that I travel with my dog.", thread_id="kim-dog"),
    ]


def _store_failed_reply(agent: Agent) -> Message:
    """Send a message whose reply fails before a worker takes it."""
    with transaction.atomic():
        message = _send(agent, "Could you also book the lighthouse tour?", thread_id="kim-tour")
        refusal = LLMRefused("The language model answered 400: no such model.")
        queue.REPLIES.record_failure(message.pk, refusal)
    return message


def _send(agent: Agent, content: str, *, thread_id: str) -> Message:
    """Send a message of Kim to an agent, for a worker to answer."""
    incoming = Incoming(
        agent_id=agent.pk,
        user_id="kim",
        thread_id=thread_id,
        channel="rest",
        content=content,
        name="Kim Novak",
    )
    return accept(incoming, tenant_id=required_tenant_id())[0]
