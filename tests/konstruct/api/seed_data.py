"""Create a tenant with two agents, three users and their messages."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now
from langgraph.graph import START, MessagesState, StateGraph

from konstruct.api.auth.keys import derive_key
from konstruct.api.models import ApiKey
from konstruct.channels.webhooks import create_webhook
from konstruct.llm.completions import LLMRefused
from konstruct.orchestrator import models, replies
from konstruct.orchestrator.agents import create_agent, update_agent
from konstruct.orchestrator.dry_runs import save_question
from konstruct.orchestrator.extraction.runs import EXTRACTIONS
from konstruct.orchestrator.history_import.lines import import_history
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.language_models import create_language_model
from konstruct.orchestrator.messages import Thread
from memory import indexing as embeddings
from memory.context import SessionStore
from memory.conversations.transcript import add_items, record_message
from memory.facts import Author, LongTermMemory, exclude_from_recall, reject
from memory.models import ConversationItem, MemoryEntry, Message, RecallEvent
from memory.models.facts import AuthorKind
from tenants.audit.models import ErasureRequest
from tenants.context import tenant_scope
from tenants.outbox.events import record_event
from tenants.outbox.models import EventDelivery, EventType
from tests.konstruct.conftest import Program
from tests.konstruct.extracted import add_run, propose
from tests.memory.recall_traces import fact_of, hit_of, store_trace


def answer(program: Program, message_id: str | UUID, content: str = "Hi there") -> Message:
    """Answer a message as a worker does."""
    with tenant_scope(program.tenant.id):
        message = Message.objects.get(pk=message_id)
        reply, _ = record_message(
            tenant_id=program.tenant.id,
            **Thread.of(message).as_filter,
            channel=message.channel,
            role="assistant",
            content=content,
            in_reply_to=message.id,
        )
        store_trace(
            message.agent_id,
            message.user_id,
            reply_id=reply.pk,
            sources=[message.pk],
            query=message.content,
            hits=[hit_of(message)],
            injected=[f"- user: {message.content}"],
        )
        replies.REPLIES.finish(message.id)
    return reply


@dataclass
class SeedData:
    """Ids of the created rows."""

    program: Program
    other: models.Agent
    sent: dict[str, Any]
    reply: Message
    event: RecallEvent
    fact: UUID
    proposed: UUID
    rejected: UUID
    run: UUID
    extraction: UUID
    preview: UUID
    erasure: UUID
    escalation: UUID
    call: UUID
    identity: UUID
    item: UUID
    excluded: UUID
    exclusion: UUID
    question: UUID
    webhook: UUID
    delivery: UUID
    history_import: UUID
    language_model: UUID
    key: UUID


def create_seed_data(program: Program, *, secret: str = "") -> SeedData:
    """Create talks of maria with ada and bo, a history of theo, and a fact about vera.

    An erasure of theo is requested.

    `secret` is in every text.
    """
    other = create_agent(tenant_id=program.tenant.id, name="bo", system_prompt="You are Bo.")
    with tenant_scope(program.tenant.id):
        update_agent(other, persona=f"Curt.{secret}")
        question, *_ = [_save_question(other, f"{number}?{secret}") for number in (1, 2)]
    sent = program.send(f"What do I drink?{secret}", thread_id="t1", name="Maria").json()
    reply = answer(program, sent["id"], f"Tea.{secret}")
    program.send(f"Good morning{secret}", agent="bo", thread_id="t2")
    lines = [
        {
            "external_id": f"e{number}",
            "agent": "ada",
            "user_id": "theo",
            "thread_id": "old/thread?",
            "role": ("user", "assistant")[number % 2],
            "content": f"Line {number} of the history.{secret}",
            "created_at": f"2025-03-14T09:{number // 2:02}:00Z",
        }
        for number in range(4)
    ]
    with tenant_scope(program.tenant.id):
        import_history(lines, tenant_id=program.tenant.id)
        fact = LongTermMemory().store(
            MemoryEntry(
                tenant_id=program.tenant.id,
                agent_id=program.agent.id,
                user_id="vera",
                content=f"Vera likes tea.{secret}",
                external_id="own",
            )
        )
    embeddings.drain(program.tenant.id)
    with tenant_scope(program.tenant.id):
        event = RecallEvent.objects.get(reply=reply)
        line = Message.objects.get(external_id="e0")
        author = Author(AuthorKind.PERSON, "1", "ada")
        exclusion, _ = [
            exclude_from_recall(line, author=author, start=start, end=4, reason=f"Noise.{secret}")
            for start in (0, 1)
        ]
        asked = {"user_id": "theo", "requested_by": "tests"}
        erasure, *_ = [
            ErasureRequest.objects.create(**asked, agent_id=agent_id).pk
            for agent_id in (None, other.pk)
        ]
        escalation, *_ = [_escalated(program, secret, thread) for thread in ("a", "b")]
        call, *_ = [_asked_for(reply.in_reply_to, secret, place) for place in (0, 1)]
        identity, *_ = [
            channel_identities.identity_of("slack", "T1", f"U{number}{secret}") for number in (1, 2)
        ]
        channel_identities.link(identity, "maria", by="tests")
        # Of maria: the open erasure is not hers.
        for number in (1, 2):
            add_items(
                program.agent.id, "maria", "t1", [({"n": number, "said": f"Tea.{secret}"}, None)]
            )
        item = ConversationItem.objects.values_list("pk", flat=True)[0]
        message = Message.objects.get(pk=sent["id"])
        proposed = propose(message, "drink", f"Maria drinks.{secret}", slot="drink").memory_id
        rejected = propose(message, "What", f"Maria asks.{secret}").memory_id
        reject(rejected, author=Author(AuthorKind.PERSON, "1", "eva"), reason=f"Trivial.{secret}")
        run = MemoryEntry.objects.values_list("run_id", flat=True).get(pk=proposed)
        extraction, *_ = [_store_progress(message, thread) for thread in ("t1", "t2")]
        preview = add_run(message, state=models.RunState.PREVIEW, output='{"facts": []}').pk
        for _ in range(2):
            _store_trace(program, fact, secret)
        webhook, _ = [
            create_webhook(f"https://{number}.example.com/", description=f"Bot.{secret}")[0].pk
            for number in (1, 2)
        ]
        record_event(EventType.FACT_ACTIVE, fact, agent_id=program.agent.id, user_id="vera")
        upload = models.HistoryImport.objects.create(file_name=f"chat{secret}.txt", content=b"")
        delivery = EventDelivery.objects.values_list("pk", flat=True)[0]
        # Not called by agents: they have no position.
        language_model = create_language_model(
            name=f"m1{secret}", endpoint="https://llm.invalid/v1", key="sk-1"
        ).pk
        models.LanguageModel.objects.create(name=f"m2{secret}")  # of the deployment, which has none
        own = ApiKey.objects.get(prefix=program.key.split("_")[2])
        key, _ = derive_key(
            own, name=f"Bot{secret}", scopes=["read"], agent_id=None, user_id=None, expires_at=None
        )
    return SeedData(
        program, other, sent, reply, event, fact, proposed, rejected, run, extraction, preview,
        erasure, escalation.pk, call.pk, identity.pk, item, line.pk, exclusion.pk,
        question, webhook, delivery, upload.pk, language_model, key.pk,
    )  # fmt: skip


def _save_question(agent: models.Agent, content: str) -> UUID:
    """Save a question with its answer; no question is waiting."""
    question = save_question(agent, content=content, user_id="maria")
    models.QuestionAnswer.objects.create(
        question=question,
        agent_id=agent.pk,
        user_id=question.user_id,
        version=2,
        content=f"I am Bo. {content}",
    )
    return question.pk


def _store_trace(program: Program, fact: UUID, secret: str) -> None:
    """Store the trace of a reply to vera whose prompt had the fact."""
    used = [fact_of(fact, f"Vera likes tea.{secret}", score=0.9)]
    query = f"What does Vera like?{secret}"
    store_trace(program.agent.id, "vera", sources=[fact], query=query, facts=used)


def _store_progress(message: Message, thread_id: str) -> UUID:
    """Store the progress of a conversation of maria's, with a failed extraction after it."""
    cursor = models.ExtractionCursor.objects.create(
        agent_id=message.agent_id,
        user_id=message.user_id,
        thread_id=thread_id,
        last_number=message.number,
    )
    EXTRACTIONS.enqueue_many([cursor.pk])
    EXTRACTIONS.record_failure(cursor.pk, LLMRefused("No such model."))
    return cursor.pk


def _escalated(program: Program, secret: str, thread_id: str) -> models.Escalation:
    return models.Escalation.objects.create(
        agent_id=program.agent.id,
        user_id="maria",
        thread_id=thread_id,
        channel="rest",
        opened_by="user",
        reason=f"Lost.{secret}",
    )


def _asked_for(message: Message | None, secret: str, position: int) -> models.ToolCall:
    assert message is not None
    return models.ToolCall.objects.create(
        message=message,
        **Thread.of(message).as_filter,
        round=0,
        position=position,
        call_id="c",
        name="remember_fact",
        arguments={"fact": f"Maria likes tea.{secret}"},
        state="waiting",
        expires_at=Now() + timedelta(days=1),
    )


def talk(program: Program, thread_id: str, *messages: Any) -> None:
    """Run a LangGraph graph of the program's tenant that ends with these messages.

    A text is a message of a user.

    LangGraph has its own connections, so this is for tests that commit.
    """
    graph = (
        StateGraph(MessagesState)
        .add_node("end", lambda state: {"messages": []})
        .add_edge(START, "end")
        .compile(checkpointer=SessionStore(program.tenant.id).checkpointer)
    )
    graph.invoke({"messages": list(messages)}, {"configurable": {"thread_id": thread_id}})
