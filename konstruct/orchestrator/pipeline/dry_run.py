"""Dry runs: the reply that a channel would send, without storing anything.

The decisions, the prompt and the tools are those of the pipeline. The caller keeps the conversation
between two messages, as a DryThread. Tools are described and not run; a handover or escalation
changes only the DryThread. The meter counts the calls of the language model.
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
from konstruct.orchestrator.extraction.fact_requests import request_slot
from konstruct.orchestrator.handoff import escalations, handovers, thread_turns
from konstruct.orchestrator.handoff.detection import yes_or_no
from konstruct.orchestrator.messages import KonstructMessage, Thread
from konstruct.orchestrator.models import Agent, ToolCall
from konstruct.orchestrator.models.tool_calls import ToolCallState
from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.decisions import (
    AskModel,
    DecideToolCall,
    Decision,
    Escalate,
    HandBack,
    HandOver,
    Hold,
)
from konstruct.orchestrator.pipeline.respond import (
    MAX_DECISIONS,
    build_prompt,
    decide,
    gather_context,
)
from konstruct.orchestrator.pipeline.snapshot import Consent, Snapshot
from konstruct.orchestrator.pipeline.tool_rounds import MAX_ROUNDS, exchanges
from konstruct.orchestrator.tool_catalog import tool_descriptions
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
HOLD_STEP: Final = "A person answers in this conversation: the message would wait for them."
FINISH_REASONS: Final = {
    "length": "The answer was cut at the limit of tokens.",
    "content_filter": "The content filter of the language model withheld the answer, or a part.",
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message of a dry run, and its result."""

    content: str
    reply: str = ""
    """Empty if the channel would send no reply, or none yet."""
    agent_id: str = ""
    agent_name: str = ""
    steps: tuple[str, ...] = ()
    """Sentences about the decisions and their reasons, for people."""
    problem: str = ""
    """The error of the language model."""
    asked_at: str = ""
    answered_at: str = ""


@dataclass(frozen=True, slots=True)
class DryThread:
    """The conversation of a dry run."""

    exchanges: tuple[Exchange, ...] = ()
    agents: tuple[str, ...] = ()
    """Ids of the agents that the thread was handed over to; the last one answers. An agent that
    hands back is removed."""
    agents_so_far: tuple[str, ...] = ()
    """Ids of all agents that the thread was ever handed over to."""
    is_escalated: bool = False
    """Whether a person answers."""
    waiting_calls: tuple[str, ...] = ()
    """Descriptions of the tool calls that wait for consent."""

    @property
    def is_full(self) -> bool:
        """Whether the thread accepts no more messages."""
        return len(self.exchanges) >= MAX_MESSAGES

    def as_dict(self) -> dict[str, Any]:
        """Return the thread as JSON data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the thread of a document from `as_dict`."""
        exchanges = tuple(
            Exchange(**{**exchange, "steps": tuple(exchange["steps"])})
            for exchange in document["exchanges"]
        )
        return cls(
            exchanges=exchanges,
            agents=tuple(document["agents"]),
            agents_so_far=tuple(document["agents_so_far"]),
            is_escalated=document["is_escalated"],
            waiting_calls=tuple(document["waiting_calls"]),
        )


@dataclass(slots=True)
class DryReply:
    """The reply to one message, and the conversation with it."""

    thread: DryThread
    prompt: Prompt | None = None
    """The prompt of the reply; None if no language model was asked."""
    usage: Mapping[str, int] | None = None

    @property
    def exchange(self) -> Exchange:
        """The message and the reply."""
        return self.thread.exchanges[-1]


@dataclass(slots=True)
class _DryRun:
    """The processing of one message."""

    message: KonstructMessage
    agent: Agent
    """The agent that the message was sent to."""
    purpose: str
    deadline: float
    """By time.monotonic()."""
    thread: DryThread
    """The conversation before the message. The next fields are its values after the message."""
    agents: list[str]
    agents_so_far: list[str]
    is_escalated: bool = False
    waiting_calls: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    handed_over_by: set[UUID] = field(default_factory=set)
    prompt: Prompt | None = None
    completion: Completion | None = None
    answering_agent: Agent | None = None

    def respond(self) -> str:
        """Return the reply as `respond.respond` does; "" if there is none."""
        for _ in range(MAX_DECISIONS):
            reply = self.apply_decision(decide(self.snapshot()))
            if reply is not None:
                return reply
        return self.escalate("The conversation went from agent to agent.")

    def snapshot(self) -> Snapshot:
        """Return the input of `decide`, as `read_snapshot` does for stored messages."""
        handover_id = UUID(self.agents[-1]) if self.agents else None
        handover_agent = escalation = None
        if handover_id:
            handover_agent = Agent.objects.active().filter(pk=handover_id).first()
            escalation = escalations.EscalationState(to_agent_id=handover_id)
        if self.is_escalated:
            escalation = escalations.EscalationState()
        approve = yes_or_no(self.message.content) if len(self.waiting_calls) == 1 else None
        return Snapshot(
            message=self.message,
            thread=Thread.of(self.message),
            reply=None,
            escalation=escalation,
            thread_agent_or_none=self.agent,
            handover_agent=handover_agent,
            options={},
            instructions=(),
            calls=(),
            consent=None if approve is None else Consent(approve, None),
            was_handled_by_person=False,
            handed_over_by=frozenset(self.handed_over_by),
            can_hand_back=handover_id is not None,
        )

    def apply_decision(self, decision: Decision) -> str | None:
        """Apply a decision to the fields of this object only.

        Returns:
            The reply; "" if there is none; None if the next decision is needed.
        """
        match decision:
            case Escalate():
                return self.escalate(decision.reason, decision.opened_by)
            case Hold():
                self.steps.append(HOLD_STEP)
                return ""
            case HandBack(agent):
                self.hand_back(agent, f"{agent.name} has a rule for it")
            case HandOver(agent, to_agent, reason):
                self.handed_over_by.add(agent.id)
                return self.hand_over(agent, to_agent, reason)
            case DecideToolCall(agent, consent):
                self.answering_agent = agent
                (call,) = self.waiting_calls
                self.waiting_calls.clear()
                if consent.approve:
                    self.steps.append(f"The user agrees: {call} would run now. It is not run here.")
                    return tool_calls.CONSENT_GIVEN_REPLY
                self.steps.append(f"The user declines: {call} would not run.")
                return tool_calls.CONSENT_DENIED_REPLY
            case AskModel(agent):
                return self.ask(agent)
        return None

    def escalate(
        self, reason: str, opened_by: escalations.OpenedBy = escalations.OpenedBy.RULE
    ) -> str:
        self.is_escalated, self.answering_agent = True, self.agent
        by = "the user asks for one" if opened_by == escalations.OpenedBy.USER else "a rule"
        self.steps.append(f"It would be handed to a person ({by}). {reason}")
        return escalations.NOTICE

    def hand_over(self, from_agent: Agent, to_agent: UUID, reason: str) -> str | None:
        agents_so_far = {self.agent.id, *map(UUID, self.agents_so_far)}
        agent, refusal = handovers.next_agent(to_agent, agents_so_far)
        if agent is None:
            return self.escalate(handovers.refusal_reason(from_agent, refusal, reason))
        self.agents.append(str(agent.id))
        self.agents_so_far.append(str(agent.id))
        self.steps.append(
            f"{from_agent.name} would hand the conversation to {agent.name}. {reason}"
        )
        return None

    def hand_back(self, agent: Agent, reason: str) -> None:
        self.agents.pop()
        # Inactive agents are skipped.
        active_ids = {str(pk) for pk in Agent.objects.active().values_list("pk", flat=True)}
        while self.agents and self.agents[-1] not in active_ids:
            self.agents.pop()
        self.steps.append(f"{agent.name} would hand the conversation back: {reason}.")

    def ask(self, agent: Agent) -> str | None:
        """Ask the language model, with the prompt and the tools of the pipeline."""
        turns = thread_turns.with_window(self.message, agent, _turns(self.thread, self.message))
        context = gather_context(self.message, agent, turns)
        self.prompt, self.answering_agent = build_prompt(agent, context, turns), agent
        tools = [
            *tool_descriptions(agent.tools),
            *handovers.handover_tools(agent, can_hand_back=bool(self.agents)),
        ]
        max_tokens = WorkingContextCompiler.TOKEN_BUDGETS[agent.model_tier]
        calls: list[ToolCall] = []
        for round_number in range(MAX_ROUNDS + 1):
            messages = [*self.prompt.messages, *exchanges(calls, max_tokens)]
            options = runner.RunOptions(tools=tools, may_call=round_number < MAX_ROUNDS)
            completion = self.complete(agent, messages, options)
            if not completion.requested:
                return self.with_introduction(completion.text, agent)
            handover_call = next(
                (call for call in completion.requested if call.name in handovers.TOOL_NAMES), None
            )
            if handover_call is not None and self.run_handover_call(agent, handover_call):
                return escalations.NOTICE if self.is_escalated else None
            new_calls = tool_calls.validated_calls(
                self.message, agent, completion, round_number=round_number
            )
            if handover_call is not None:
                for call in new_calls:
                    call.state, call.result = ToolCallState.FAILED, handovers.NOT_DONE
            self.describe(new_calls)
            if any(call.state == ToolCallState.WAITING for call in new_calls):
                return ""
            calls.extend(new_calls)
        raise LLMReplyInvalid("The language model asks for tools where it may use none.")

    def complete(
        self, agent: Agent, messages: Sequence[Mapping[str, Any]], options: runner.RunOptions
    ) -> Completion:
        """Ask the language model; the meter counts the call to the agent of the dry run."""
        seconds_left = self.deadline - time.monotonic()
        if seconds_left <= 0:
            raise LLMTimeout("The dry run takes longer than a reply may.")
        options = replace(
            options, purpose=self.purpose, agent_id=self.agent.id, timeout=seconds_left
        )
        self.completion = runner.complete(self.message, agent, messages, options)
        return self.completion

    def run_handover_call(self, agent: Agent, call: RequestedCall) -> bool:
        """Run a handover tool that the language model called; return False for an invalid call."""
        if call.name == handovers.HAND_BACK:
            if not self.agents:
                return False
            self.hand_back(agent, "its language model asks for it")
            return True
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        agent_name = str(arguments.get("agent", ""))
        to_agent = handovers.handover_targets(agent).get(agent_name)
        if to_agent is None:
            return False
        reason = str(arguments.get("reason") or f"{agent.name} asked for {agent_name}.")
        self.hand_over(agent, to_agent.id, reason[: handovers.MAX_REASON_CHARACTERS])
        return True

    def describe(self, calls: list[ToolCall]) -> None:
        """Add a step for each tool call."""
        for call in calls:
            description = f"{call.name} with {json.dumps(call.arguments, ensure_ascii=False)}"
            step = f"The language model asks for {description}."
            if call.state == ToolCallState.WAITING:
                self.waiting_calls.append(description)
                self.steps.append(
                    f"{step} The user would be asked for consent: {call.question} The tool is not"
                    " run here."
                )
            else:
                self.steps.append(f"{step} Refused: {call.result}")

    def with_introduction(self, text: str, agent: Agent) -> str:
        """Return the text of the reply as `write.with_introduction` does."""
        answered = [exchange for exchange in self.thread.exchanges if exchange.reply]
        answered_last = bool(answered) and answered[-1].agent_id == str(agent.id)
        if agent.id == self.agent.id or answered_last:
            return text
        return f"{write.INTRODUCTION.format(name=agent.name)}\n\n{text}"


def dry_run(
    thread: DryThread, content: str, agent: Agent, *, user_id: str | None, purpose: str = PURPOSE
) -> DryReply:
    """Return the reply that a channel would send to the message.

    An error of the language model is in the exchange's `problem`. Each request to it may take
    LLM_TIMEOUT seconds, and all of them together TASK_TIME_LIMIT, as for a reply. Do not call it in
    a transaction: it waits for the language model.

    Args:
        thread: the conversation so far; `DryThread()` at first.
        content: the message.
        agent: the agent that the message is sent to. It may be an unsaved draft.
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
    run = _DryRun(
        message=message,
        agent=agent,
        purpose=purpose,
        deadline=time.monotonic() + settings.TASK_TIME_LIMIT,
        thread=thread,
        agents=list(thread.agents),
        agents_so_far=list(thread.agents_so_far),
        is_escalated=thread.is_escalated,
        waiting_calls=list(thread.waiting_calls),
    )
    reply, problem = "", ""
    try:
        with request_slot():
            usage.require_room(usage.MODEL_CALL_QUOTAS)
            reply = run.respond()
    except (LLMError, QuotaExceeded) as error:
        logger.warning("A dry run of agent %s failed: %s", agent.pk, detail_of(error))
        problem = str(error)
    if run.completion is not None and run.completion.finish_reason in FINISH_REASONS:
        run.steps.append(FINISH_REASONS[run.completion.finish_reason])
    answering_agent = run.answering_agent or agent
    exchange = Exchange(
        content=content,
        reply=reply,
        agent_id=str(answering_agent.id),
        agent_name=answering_agent.name,
        steps=tuple(run.steps),
        problem=problem,
        asked_at=message.created_at.isoformat() if message.created_at else "",
        answered_at=timezone.now().isoformat(),
    )
    new_thread = DryThread(
        exchanges=(*thread.exchanges, exchange),
        agents=tuple(run.agents),
        agents_so_far=tuple(run.agents_so_far),
        is_escalated=run.is_escalated,
        waiting_calls=tuple(run.waiting_calls),
    )
    used = None if run.completion is None else run.completion.usage
    return DryReply(new_thread, run.prompt, used)


def _turns(thread: DryThread, message: KonstructMessage) -> list[dict[str, Any]]:
    """Return the exchanges as turns of a thread. A window has no message without a reply."""
    turns = []
    for exchange in thread.exchanges:
        if not exchange.reply:
            continue
        question = ThreadTurn(
            role=Role.USER,
            content=exchange.content,
            message_id=str(uuid4()),
            at=exchange.asked_at,
            user_id=message.user_id,
        )
        answer = ThreadTurn(
            role=Role.ASSISTANT,
            content=exchange.reply,
            message_id=str(uuid4()),
            name=exchange.agent_name,
            at=exchange.answered_at,
            user_id=message.user_id,
            answered_by=exchange.agent_id,
        )
        turns += [question.as_dict(), answer.as_dict()]
    return turns
