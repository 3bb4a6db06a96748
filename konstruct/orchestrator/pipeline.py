"""The way of a message to its reply, each step a function of its own.

Every step may be killed and run again. What stands already (a reply, its turns in the window) is
found and kept, and the message waits in the outbox until the last step is done. Nothing here holds
a transaction while it waits for somebody else's network.
"""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction

from konstruct.orchestrator import outbox, outlets, waiting
from konstruct.orchestrator.bell import ring
from konstruct.orchestrator.builder import build_system_prompt
from konstruct.orchestrator.exceptions import AgentNotFound, MessageNotFound
from konstruct.orchestrator.locks import thread_lock, window_lock
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.policy import recall_policy
from konstruct.orchestrator.runner import run_agent
from memory import short_term, transcript
from memory.conf import FACT_FLOOR
from memory.context import ContextManager
from memory.context.prompt import Gathered, Prompt
from memory.models import Message, Role
from memory.tasks import embed_and_store
from memory.turns import Turn
from tenants.context import tenant_scope

# Without a session store: no channel has a graph, and the thread of a graph may be called as a
# thread of a channel is, whose users it knows nothing of.
context = ContextManager(fact_floor=FACT_FLOOR)


@dataclass(frozen=True)
class Draft:
    """What the agent says, before it is written down, and what it was given to say it."""

    name: str
    content: str
    prompt: Prompt


def handle(*, tenant_id: UUID, message_id: UUID) -> None:
    """Answer the message, and what else waits in its thread, oldest first.

    A thread is answered by one worker at a time. Who finds it taken leaves at once: the other looks
    again after it has let go, so that no message falls between the two.
    """
    with tenant_scope(tenant_id):
        arrived = load_message(message_id)
        while outbox.oldest_ready(arrived) is not None:
            with thread_lock(arrived) as ours:
                if not ours:
                    return
                while (ready_id := outbox.oldest_ready(arrived)) is not None:
                    answer(ready_id)


def answer(message_id: UUID) -> None:
    """Take one message all the way, or note in the outbox why not and when to try again."""
    outbox.begin(message_id)
    message = load_message(message_id)
    try:
        said = standing_reply(message) or draft_reply(message)
        with window_lock(message):
            reply = said if isinstance(said, Message) else record_reply(message, said)
            append_to_window(message, reply)
        finish(message, reply)
    except Exception as error:  # whatever it is, a human must find it on the row
        with transaction.atomic():
            outbox.give_back(message.id, error)
            outlets.changed(message)
    deliver(message)


def draft_reply(message: KonstructMessage) -> Draft:
    """Remember, and ask the language model."""
    agent = load_agent(message)
    prompt = build_prompt(agent, gather_context(message, agent))
    return Draft(agent.name, run_agent(message, agent, prompt.messages), prompt)


def load_message(message_id: UUID) -> KonstructMessage:
    """Rebuild the message from the transcript.

    Raises MessageNotFound.
    """
    row = Message.objects.filter(pk=message_id, role=Role.USER).first()
    if row is None:
        raise MessageNotFound(f"No user's message has the id {message_id}.")
    return konstruct_message(row)


def konstruct_message(row: Message) -> KonstructMessage:
    """Return the pipeline's form of a transcript row."""
    return KonstructMessage(
        id=row.id,
        tenant_id=row.tenant_id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        thread_id=row.thread_id,
        channel=row.channel,
        content=row.content,
        name=row.name,
        created_at=row.created_at,
    )


def standing_reply(message: KonstructMessage) -> Message | None:
    """Return the reply that an earlier run recorded before it was killed."""
    return Message.objects.filter(in_reply_to=message.id).first()


def load_agent(message: KonstructMessage) -> Agent:
    """Return the agent that the message was sent to; inactive ones finish what they accepted."""
    try:
        return Agent.objects.get(pk=message.agent_id)
    except Agent.DoesNotExist:
        raise AgentNotFound(f"Agent {message.agent_id} does not exist any more.") from None


def gather_context(message: KonstructMessage, agent: Agent) -> Gathered:
    """Load the window, and look for facts and for what was said before.

    The window has the user's recent turns with this agent, from all threads and channels. What the
    model will see of it, and the message itself, are not recalled.
    """
    return context.gather(
        message.tenant_id,
        message.thread_id,
        message.content,
        agent.model_tier,
        agent_id=message.agent_id,
        user_id=message.user_id,
        policy=recall_policy(agent),
        exclude=[message.id],
    )


def build_prompt(agent: Agent, gathered: Gathered) -> Prompt:
    """Put the agent, the memories, the window and the message together, within the budget."""
    return context.fit(gathered, build_system_prompt(agent), agent.model_tier)


def record_reply(message: KonstructMessage, draft: Draft) -> Message:
    """Write the reply and why it was given, or return the one that another worker wrote first."""
    reply, _ = transcript.record_message(
        tenant_id=message.tenant_id,
        agent_id=message.agent_id,
        user_id=message.user_id,
        thread_id=message.thread_id,
        channel=message.channel,
        role=Role.ASSISTANT,
        name=draft.name,
        content=draft.content,
        in_reply_to=message.id,
        recall_trace=draft.prompt.trace(),
    )
    return reply


def append_to_window(message: KonstructMessage, reply: Message) -> None:
    """Append both turns, once however often this runs."""
    short_term.append_turns(
        message.tenant_id,
        message.agent_id,
        message.user_id,
        [_turn_of(message), Turn.of(reply)],
    )


def finish(message: KonstructMessage, reply: Message) -> None:
    """Take the message out of the outbox, and hand both turns to `embed_and_store`."""
    with transaction.atomic():
        outbox.finish(message.id)
        outlets.changed(message)
        turns = [str(message.id), str(reply.id)]
        transaction.on_commit(partial(ring, embed_and_store, str(message.tenant_id), turns))


def deliver(message: KonstructMessage) -> None:
    """Wake whoever waits: a program that sent the message by REST fetches the reply itself."""
    waiting.announce(message.tenant_id, message.id)


def _turn_of(message: KonstructMessage) -> Turn:
    return Turn(
        role=Role.USER,
        content=message.content,
        message_id=str(message.id),
        name=message.name,
        at=message.created_at.isoformat() if message.created_at else "",
    )
