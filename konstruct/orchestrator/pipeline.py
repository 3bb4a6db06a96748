"""The way of a message to its reply, each step a function of its own.

Every step may be killed and run again. What stands already (a reply, its turns in the window) is
found and kept, and the message waits in the outbox until the last step is done. Nothing here holds
a transaction while it waits for somebody else's network.
"""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction

from konstruct.orchestrator import escalations, outbox, outlets, tool_calls, waiting
from konstruct.orchestrator.asking_for_people import yes_or_no
from konstruct.orchestrator.bell import ring
from konstruct.orchestrator.builder import build_system_prompt
from konstruct.orchestrator.escalations import OpenedBy, Thread
from konstruct.orchestrator.exceptions import AgentNotFound, AlreadyDecided, MessageNotFound
from konstruct.orchestrator.locks import thread_lock, window_lock
from konstruct.orchestrator.messages import KonstructMessage, konstruct_message
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.policy import recall_policy
from konstruct.orchestrator.runner import run_agent
from konstruct.orchestrator.tool_rounds import ask_with_tools
from memory import short_term, transcript
from memory.conf import FACT_FLOOR
from memory.context import ContextManager
from memory.context.prompt import Gathered, Prompt
from memory.models import Message, Role
from memory.tasks import embed_and_store
from memory.turns import Turn
from tenants.context import tenant_scope

# Messages of a thread that one task answers before those of other threads have their turn.
THREAD_TURN = 10

# Without a session store: no channel has a graph, and the thread of a graph may be called as a
# thread of a channel is, whose users it knows nothing of.
context = ContextManager(fact_floor=FACT_FLOOR)


@dataclass(frozen=True)
class Draft:
    """What the agent says, before it is written down, and what it was given to say it.

    What it says by itself, without a language model, has no prompt.
    """

    name: str
    content: str
    prompt: Prompt | None = None


def handle(*, tenant_id: UUID, message_id: UUID) -> UUID | None:
    """Answer the message, and what else waits in its thread, oldest first.

    A thread is answered by one worker at a time. Who finds it taken leaves at once: the other looks
    again after it has let go, so that no message falls between the two.

    Returns:
        The message that is next, if there are more than THREAD_TURN: to be rung for, so that tasks
        of other threads and tenants come first.
    """
    answered = 0
    with tenant_scope(tenant_id):
        arrived = load_message(message_id)
        while (next_id := outbox.oldest_ready(arrived)) is not None:
            if answered == THREAD_TURN:
                outbox.begin(next_id)  # should the bell be lost
                return next_id
            with thread_lock(arrived) as ours:
                if not ours:
                    return None
                while answered < THREAD_TURN and (ready_id := outbox.oldest_ready(arrived)):
                    answer(ready_id)
                    answered += 1
    return None


def answer(message_id: UUID) -> None:
    """Take one message all the way, or note in the outbox why not and when to try again."""
    outbox.begin(message_id)
    message = load_message(message_id)
    try:
        said = standing_reply(message) or respond(message)
        if said is not None:
            with window_lock(message):
                conclude(message, said)
    except Exception as error:  # whatever it is, a human must find it on the row
        give_back(message, error)
    deliver(message)


def respond(message: KonstructMessage) -> Draft | None:
    """Return what the agent says; None if the message is held, for a person or for consent."""
    thread = Thread.of(message)
    agent = load_agent(message)
    if escalations.is_open(thread):
        if escalations.asked_by(message):
            return Draft(agent.name, escalations.NOTICE)
        if escalations.hold_if_open(message):
            return None
    if (why := escalations.reason_to_escalate(message, agent)) is not None:
        opened_by, reason = why
        escalations.open_escalation(
            thread,
            opened_by=opened_by,
            reason=reason,
            channel=message.channel,
            message_id=message.id,
        )
        return Draft(agent.name, escalations.NOTICE)
    if (words := decide_by_words(message)) is not None:
        return Draft(agent.name, words)
    return ask_language_model(message, agent)


def decide_by_words(message: KonstructMessage) -> str | None:
    """Take a plain yes or no for the user's decision, if a tool call waits for one.

    Returns what the user is told then.
    """
    approve = yes_or_no(message.content)
    if approve is None:
        return None
    try:
        decided = tool_calls.decide_by_message(message, approve)
    except AlreadyDecided:
        return None
    return (tool_calls.THANKS if approve else tool_calls.AS_YOU_LIKE) if decided else None


def ask_language_model(message: KonstructMessage, agent: Agent) -> Draft | None:
    """Remember, do what was consented to, and ask; None if the message waits for consent now."""
    tool_calls.carry_out(message)
    prompt = build_prompt(agent, gather_context(message, agent))
    if not agent.tools:
        return Draft(agent.name, run_agent(message, agent, prompt.messages), prompt)
    said = ask_with_tools(message, agent, prompt.messages)
    return None if said is None else Draft(agent.name, said, prompt)


def conclude(message: KonstructMessage, said: Draft | Message) -> None:
    """Write the reply down and be done. Inside of the window's lock."""
    if load_message(message.id).user_id != message.user_id:
        return  # it was moved to another user meanwhile, and is answered anew as theirs
    is_agents = isinstance(said, Draft) and said.prompt is not None
    is_escalated = is_agents and escalations.is_open(Thread.of(message))
    if is_escalated and escalations.hold_if_open(message):
        return
    reply = said if isinstance(said, Message) else record_reply(message, said)
    append_to_window(message, reply)
    finish(message, reply)


def give_back(message: KonstructMessage, error: Exception) -> None:
    """Note that it failed, and call for a person if the agent's rule wants one by now."""
    with transaction.atomic():
        given_up = outbox.give_back(message.id, error)
        if given_up and escalations.is_past_bearing(message):
            escalations.open_escalation(
                Thread.of(message),
                opened_by=OpenedBy.RULE,
                reason=f"The agent could not answer: {outbox.reason_of(error)}",
                channel=message.channel,
                message_id=message.id,
            )
            # Its reply says that a person will answer, for which nothing need be asked.
            outbox.retry(message.id)
        outlets.changed(message)


def draft_reply(message: KonstructMessage) -> Draft:
    """Remember, and ask the language model, which is offered no tools: for trials."""
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
        recall_trace=None if draft.prompt is None else draft.prompt.trace(),
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
