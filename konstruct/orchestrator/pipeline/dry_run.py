"""Dry runs: the reply that a channel would send, by the decisions of `respond`, without writes.

The decisions, the prompt and the tools are those of the pipeline. Between two messages a dry run is
a value that its caller keeps. Tools are described and not run; a handover or escalation changes
only this value. The meter counts the calls of the language model.
"""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self
from uuid import UUID, uuid4

from django.conf import settings
from django.utils import timezone

from konstruct.llm.completions import Completion, RequestedCall
from konstruct.llm.exceptions import LLMError, LLMReplyInvalid, LLMTimeout
from konstruct.orchestrator import runner, usage
from konstruct.orchestrator.extraction.asking import share
from konstruct.orchestrator.handoff import escalations, handovers, thread_turns
from konstruct.orchestrator.handoff.detection import yes_or_no
from konstruct.orchestrator.messages import KonstructMessage, Thread
from konstruct.orchestrator.models import Agent, ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.decisions import (
    AskModel,
    CallPerson,
    ConsentDecided,
    Decision,
    HandBack,
    Held,
    PassOn,
)
from konstruct.orchestrator.pipeline.respond import (
    MAX_DECISIONS,
    build_prompt,
    decide,
    gather_context,
)
from konstruct.orchestrator.pipeline.snapshot import Consent, Snapshot
from konstruct.orchestrator.pipeline.tool_rounds import MAX_ROUNDS, exchanges
from konstruct.orchestrator.tool_catalog import described
from konstruct.orchestrator.tools import tool_calls
from memory.context import WorkingContextCompiler
from memory.context.prompt import Prompt
from memory.conversations.thread_window import ThreadTurn
from memory.models import Role
from tenants.context import required_tenant_id
from tenants.exceptions import detail_of
from tenants.limits.quotas import QuotaExceeded

logger = logging.getLogger(__name__)

PURPOSE: Final = "dry run"
CHANNEL: Final = "dry-run"
MAX_MESSAGES: Final = 20
HELD_FOR_PERSON: Final = "A person answers in this conversation: the message would wait for them."
FINISH_REASONS: Final = {
    "length": "The answer was cut at the limit of tokens.",
    "content_filter": "The content filter of the language model withheld the answer, or a part.",
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message of a dry run, and its result."""

    content: str
    reply: str = ""
    """Empty: there would be no reply, or none yet."""
    agent_id: str = ""
    agent_name: str = ""
    steps: tuple[str, ...] = ()
    """The decisions and their reasons, in plain words."""
    problem: str = ""
    """The error of the language model."""
    asked_at: str = ""
    answered_at: str = ""


@dataclass(frozen=True, slots=True)
class DryThread:
    """The conversation of a dry run."""

    exchanges: tuple[Exchange, ...] = ()
    agents: tuple[str, ...] = ()
    """Ids of the agents that the thread was handed to; the last one answers."""
    had: tuple[str, ...] = ()
    """Ids of all agents that the thread was handed to so far."""
    has_person: bool = False
    """Whether a person answers."""
    waiting: tuple[str, ...] = ()
    """Descriptions of the tool calls that wait for consent."""

    @property
    def is_full(self) -> bool:
        """Whether it accepts no more messages."""
        return len(self.exchanges) >= MAX_MESSAGES

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Return the thread of a document from `as_dict`."""
        names = ("agents", "had", "waiting")
        return cls(
            exchanges=tuple(
                Exchange(**{**each, "steps": tuple(each["steps"])})
                for each in document["exchanges"]
            ),
            has_person=document["has_person"],
            **{name: tuple(document[name]) for name in names},
        )


@dataclass(slots=True)
class DryReply:
    """The result of the last message."""

    thread: DryThread
    prompt: Prompt | None = None
    """The prompt of the reply; None without a request to a language model."""
    usage: Mapping[str, int] | None = None

    @property
    def exchange(self) -> Exchange:
        """The message and the reply."""
        return self.thread.exchanges[-1]


@dataclass(slots=True)
class _Run:
    """The processing of one message of a dry run."""

    message: KonstructMessage
    own: Agent
    purpose: str
    ends_at: float
    before: DryThread
    agents: list[str]
    had: list[str]
    has_person: bool = False
    waiting: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    passed_on_by: set[UUID] = field(default_factory=set)
    prompt: Prompt | None = None
    completion: Completion | None = None
    answering: Agent | None = None

    def decide(self) -> str:
        """Return the reply as `respond` does; "" if there is none."""
        for _ in range(MAX_DECISIONS):
            reply = self.carry_out(decide(self.snapshot()))
            if reply is not None:
                return reply
        return self.call_person("The conversation went from agent to agent.")

    def snapshot(self) -> Snapshot:
        """Return the input of `decide`, as `snapshot.read` would."""
        guest_id = UUID(self.agents[-1]) if self.agents else None
        guest = Agent.objects.active().filter(pk=guest_id).first() if guest_id else None
        answering = None
        if self.has_person or guest_id:
            answering = escalations.Answering(None if self.has_person else guest_id)
        approve = yes_or_no(self.message.content) if len(self.waiting) == 1 else None
        return Snapshot(
            message=self.message,
            thread=Thread.of(self.message),
            reply=None,
            answering=answering,
            own=self.own,
            guest=guest,
            options={},
            instructions=(),
            calls=(),
            consent=None if approve is None else Consent(approve, None),
            was_seen=False,
            passed_on_by=frozenset(self.passed_on_by),
            may_hand_back=guest_id is not None,
        )

    def carry_out(self, decision: Decision) -> str | None:
        """Apply a decision to this value only.

        Returns:
            The reply; "" if there is none; None if the next decision is needed.
        """
        match decision:
            case CallPerson():
                return self.call_person(decision.reason, decision.opened_by)
            case Held():
                self.steps.append(HELD_FOR_PERSON)
                return ""
            case HandBack(agent):
                self.hand_back(agent, f"{agent.name} has a rule for it")
            case PassOn(agent, to_agent, reason):
                self.passed_on_by.add(agent.id)
                return self.hand_over(agent, to_agent, reason)
            case ConsentDecided(agent, consent):
                self.answering = agent
                (call,) = self.waiting
                self.waiting.clear()
                if consent.approve:
                    self.steps.append(f"The user agrees: {call} would run now. It is not run here.")
                    return tool_calls.CONSENT_GIVEN_REPLY
                self.steps.append(f"The user declines: {call} would not run.")
                return tool_calls.CONSENT_DENIED_REPLY
            case AskModel(agent):
                return self.ask(agent)
        return None

    def call_person(
        self, reason: str, opened_by: escalations.OpenedBy = escalations.OpenedBy.RULE
    ) -> str:
        self.has_person, self.answering = True, self.own
        by = "the user asks for one" if opened_by == escalations.OpenedBy.USER else "a rule"
        self.steps.append(f"It would be handed to a person ({by}). {reason}")
        return escalations.NOTICE

    def hand_over(self, from_agent: Agent, to_agent: UUID, reason: str) -> str | None:
        had = {self.own.id, *map(UUID, self.had)}
        agent, why = handovers.next_agent(to_agent, had)
        if agent is None:
            return self.call_person(handovers.refusal_reason(from_agent, why, reason))
        self.agents.append(str(agent.id))
        self.had.append(str(agent.id))
        self.steps.append(
            f"{from_agent.name} would hand the conversation to {agent.name}. {reason}"
        )
        return None

    def hand_back(self, agent: Agent, reason: str) -> None:
        self.agents.pop()
        # Inactive agents are skipped.
        active = {str(each) for each in Agent.objects.active().values_list("pk", flat=True)}
        while self.agents and self.agents[-1] not in active:
            self.agents.pop()
        self.steps.append(f"{agent.name} would hand the conversation back: {reason}.")

    def ask(self, agent: Agent) -> str | None:
        """Ask the language model, with the prompt and the tools of the pipeline."""
        turns = thread_turns.with_turns(self.message, agent, _turns(self.before, self.message))
        context = gather_context(self.message, agent, turns)
        self.prompt, self.answering = build_prompt(agent, context, turns), agent
        tools = [
            *described(agent.tools),
            *handovers.offered(agent, can_hand_back=bool(self.agents)),
        ]
        max_tokens = WorkingContextCompiler.TOKEN_BUDGETS[agent.model_tier]
        calls: list[ToolCall] = []
        for round_number in range(MAX_ROUNDS + 1):
            messages = [*self.prompt.messages, *exchanges(calls, max_tokens)]
            options = runner.RunOptions(tools=tools, may_call=round_number < MAX_ROUNDS)
            completion = self.complete(agent, messages, options)
            if not completion.requested:
                return self.introduced(completion.text, agent)
            requested = next(
                (each for each in completion.requested if each.name in handovers.NAMES), None
            )
            if requested is not None and self.follow(agent, requested):
                return escalations.NOTICE if self.has_person else None
            rows = tool_calls.checked(self.message, agent, completion, round_number=round_number)
            if requested is not None:
                for row in rows:
                    row.state, row.result = ToolCallState.FAILED, handovers.NOT_DONE
            self.describe(rows)
            if any(row.state == ToolCallState.WAITING for row in rows):
                return ""
            calls.extend(rows)
        raise LLMReplyInvalid("The language model asks for tools where it may use none.")

    def complete(
        self, agent: Agent, messages: Sequence[Mapping[str, Any]], options: runner.RunOptions
    ) -> Completion:
        """Ask the language model; the meter counts the calls to the agent of the dry run."""
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise LLMTimeout("The dry run takes longer than a reply may.")
        metered = replace(options, purpose=self.purpose, agent_id=self.own.id, timeout=left)
        self.completion = runner.complete(self.message, agent, messages, metered)
        return self.completion

    def follow(self, agent: Agent, requested: RequestedCall) -> bool:
        """Follow a handover that the language model asks for; return whether it can be."""
        if requested.name == handovers.HAND_BACK and self.agents:
            self.hand_back(agent, "its language model asks for it")
            return True
        arguments = requested.arguments if isinstance(requested.arguments, dict) else {}
        wanted = str(arguments.get("agent", ""))
        to_agent = handovers.targets(agent).get(wanted)
        if requested.name == handovers.HAND_BACK or to_agent is None:
            return False
        reason = str(arguments.get("reason") or f"{agent.name} asked for {wanted}.")
        self.hand_over(agent, to_agent.id, reason[: handovers.MAX_REASON_CHARACTERS])
        return True

    def describe(self, rows: list[ToolCall]) -> None:
        """Describe the calls of tools, and the questions to the user."""
        for row in rows:
            call = f"{row.name} with {json.dumps(row.arguments, ensure_ascii=False)}"
            if row.state == ToolCallState.WAITING:
                self.waiting.append(call)
                self.steps.append(
                    f"The language model asks for {call}. The user would be asked for consent:"
                    f" {row.question} The tool is not run here."
                )
            else:
                self.steps.append(f"The language model asks for {call}. Refused: {row.result}")

    def introduced(self, text: str, agent: Agent) -> str:
        """Return the reply as `write.introduced` does, for the thread of the dry run."""
        last = next((each for each in reversed(self.before.exchanges) if each.reply), None)
        if agent.id == self.own.id or (last is not None and last.agent_id == str(agent.id)):
            return text
        return f"{write.INTRODUCTION.format(name=agent.name)}\n\n{text}"


def dry_run(
    thread: DryThread, content: str, agent: Agent, *, user_id: str | None, purpose: str = PURPOSE
) -> DryReply:
    """Return the reply that the channel would send, and store only the meter's count.

    An error of the language model is in the exchange's `problem`. Each request to it may take
    LLM_TIMEOUT, and all of them together TASK_TIME_LIMIT, as for a reply. Do not call it in a
    transaction: it waits for the language model.

    Args:
        thread: the conversation so far; `DryThread()` at first.
        content: the message.
        agent: the thread's own agent, which may be an unsaved draft.
        user_id: the person of the memory; None: a person without memories.
        purpose: of the calls of the language model, for the meter.

    Raises:
        Busy: the tenant has the maximum number of requests to the language model.
    """
    message = KonstructMessage(
        id=uuid4(),
        tenant_id=required_tenant_id(),
        agent_id=agent.pk,
        user_id=user_id or f"nobody-{uuid4()}",
        thread_id=f"{CHANNEL}-{uuid4()}",
        channel=CHANNEL,
        content=content,
        created_at=timezone.now(),
    )
    run = _Run(
        message,
        agent,
        purpose,
        time.monotonic() + settings.TASK_TIME_LIMIT,
        thread,
        list(thread.agents),
        list(thread.had),
        thread.has_person,
        list(thread.waiting),
    )
    reply, problem = "", ""
    try:
        with share():
            usage.require_room(usage.OF_MODEL_CALLS)
            reply = run.decide()
    except (LLMError, QuotaExceeded) as error:
        logger.warning("A dry run of agent %s failed: %s", agent.pk, detail_of(error))
        problem = str(error)
    if run.completion is not None and run.completion.finish_reason in FINISH_REASONS:
        run.steps.append(FINISH_REASONS[run.completion.finish_reason])
    answering = run.answering or agent
    exchange = Exchange(
        content=content,
        reply=reply,
        agent_id=str(answering.id),
        agent_name=answering.name,
        steps=tuple(run.steps),
        problem=problem,
        asked_at=message.created_at.isoformat() if message.created_at else "",
        answered_at=timezone.now().isoformat(),
    )
    after = replace(
        thread,
        exchanges=(*thread.exchanges, exchange),
        agents=tuple(run.agents),
        had=tuple(run.had),
        has_person=run.has_person,
        waiting=tuple(run.waiting),
    )
    used = None if run.completion is None else run.completion.usage
    return DryReply(after, run.prompt, used)


def _turns(thread: DryThread, message: KonstructMessage) -> list[dict[str, Any]]:
    """Return the exchanges with a reply as turns of a thread: others are in no window."""
    turns = []
    for each in thread.exchanges:
        if not each.reply:
            continue
        asked = ThreadTurn(
            role=Role.USER,
            content=each.content,
            message_id=str(uuid4()),
            at=each.asked_at,
            user_id=message.user_id,
        )
        answered = ThreadTurn(
            role=Role.ASSISTANT,
            content=each.reply,
            message_id=str(uuid4()),
            name=each.agent_name,
            at=each.answered_at,
            user_id=message.user_id,
            answered_by=each.agent_id,
        )
        turns += [asked.as_dict(), answered.as_dict()]
    return turns
