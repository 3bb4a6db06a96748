"""Dry runs: the reply that a channel would send to a first message, without storing anything.

Rules for people and other agents, the prompt and the tools are those of the pipeline. Tools,
handovers and escalations are described and not carried out. The meter counts the calls of the
language model.
"""

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django.utils import timezone

from konstruct.llm.exceptions import LLMError
from konstruct.orchestrator import runner, usage
from konstruct.orchestrator.builder import AgentForReply
from konstruct.orchestrator.extraction.fact_requests import request_slot
from konstruct.orchestrator.handoff import escalations, handovers
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.respond import build_prompt, gather_context
from konstruct.orchestrator.tool_catalog import tool_descriptions
from konstruct.orchestrator.tools import tool_calls
from memory.context.prompt import Prompt
from tenants.context import required_tenant_id
from tenants.exceptions import detail_of
from tenants.limits.quotas import QuotaExceeded

logger = logging.getLogger(__name__)

PURPOSE: Final = "dry run"
CHANNEL: Final = "dry-run"


@dataclass(slots=True)
class DryRun:
    """The result of a dry run."""

    agent: Agent
    """The agent that answers: after a handover, another one than was asked."""
    asked_at: datetime
    answered_at: datetime | None = None
    reply: str = ""
    """Empty if the channel would send no reply, or none yet."""
    steps: list[str] = field(default_factory=list)
    """Sentences about the decisions and their reasons, for people."""
    problem: str = ""
    """Why there is no reply: the error of the language model, or the quota."""
    prompt: Prompt | None = None
    """None if no language model was asked."""
    usage: Mapping[str, int] | None = None
    """Numbers of tokens, as the language model reports them."""

    @property
    def trace(self) -> dict[str, Any] | None:
        """The recall and the prompt as a recall event stores them."""
        return None if self.prompt is None else self.prompt.trace()

    def escalate(self, by: str, reason: str) -> str:
        """Describe an escalation to a person, and return its notice to the user."""
        self.steps.append(f"It would be handed to a person ({by}). {reason}")
        return escalations.NOTICE


def dry_run(
    agent: Agent,
    content: str,
    *,
    user_id: str | None,
    without: Collection[UUID] = (),
    purpose: str = PURPOSE,
) -> DryRun:
    """Return the reply that a channel would send to the first message of a new thread.

    Do not call it in a transaction: it waits for the language model, at most LLM_TIMEOUT seconds
    for each agent that the message is handed to.

    Args:
        agent: the agent that the message is sent to. It may have values that are not saved.
        content: the message.
        user_id: the person whose memory is used; None: a person without memories.
        without: ids of stored messages to leave out of the prompt.
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
    run = DryRun(agent, asked_at=timezone.now())
    try:
        with request_slot():
            usage.require_room(usage.MODEL_CALL_QUOTAS)
            run.reply = _respond(run, message, without, purpose)
    except (LLMError, QuotaExceeded) as error:
        logger.warning("A dry run of agent %s failed: %s", agent.pk, detail_of(error))
        run.problem = str(error)
    run.answered_at = timezone.now()
    return run


def _respond(
    run: DryRun, message: KonstructMessage, without: Collection[UUID], purpose: str
) -> str:
    """Return the reply, by the agent that the message is sent to or handed over to."""
    agents_so_far = {run.agent.id}
    # Ends: an agent gets the message once.
    while True:
        agent = run.agent
        if (escalation := escalations.reason_to_escalate(message.content, agent)) is not None:
            opened_by, reason = escalation
            is_by_user = opened_by == escalations.OpenedBy.USER
            return run.escalate("the user asks for one" if is_by_user else "a rule", reason)
        handover = handovers.match_handover_rule(message.content, agent)
        if handover is None:
            reply = _ask(run, message, without, purpose)
            if isinstance(reply, str):
                return reply
            handover = reply
        to_agent, reason = handover
        next_agent, refusal = handovers.next_agent(to_agent, agents_so_far)
        if next_agent is None:
            return run.escalate("a rule", handovers.refusal_reason(agent, refusal, reason))
        run.steps.append(f"{agent.name} would hand the conversation to {next_agent.name}. {reason}")
        agents_so_far.add(next_agent.id)
        run.agent = next_agent


def _ask(
    run: DryRun, message: KonstructMessage, without: Collection[UUID], purpose: str
) -> str | tuple[UUID, str]:
    """Ask the language model of the agent.

    Returns:
        The reply, or the agent to hand the message over to and the reason.
    """
    agent = run.agent
    window = handovers.with_window(message, agent, ())
    left_out = set(map(str, without))
    turns = [turn for turn in window.turns if turn.get("message_id") not in left_out]
    session = replace(window, turns=turns)
    gathered = gather_context(message, agent, session, exclude=without)
    run.prompt = build_prompt(agent, gathered, session)
    tools = [
        *tool_descriptions(agent.tools),
        *handovers.handover_tools(agent, can_hand_back=False),
    ]
    meter = {"purpose": purpose, "agent_id": message.agent_id}
    asked = AgentForReply(agent, tools=tools, meter=meter)
    completion = runner.complete(message, asked, run.prompt.messages)
    run.usage = completion.usage
    if completion.finish_reason == "length":
        run.steps.append("The answer was cut at the limit of tokens.")
    calls = tool_calls.validated_calls(message, agent, completion, round_number=0)
    targets = handovers.handover_targets(agent) if calls else {}
    for call in calls:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        target = targets.get(str(arguments.get("agent")))
        if call.name == handovers.HAND_TO_AGENT and target is not None:
            return target.id, str(arguments.get("reason") or "Its language model asks for it.")
        description = f"{call.name} with {json.dumps(call.arguments, ensure_ascii=False)}"
        outcome = call.question or call.result
        run.steps.append(f"The language model asks for {description}. It is not run: {outcome}")
    if completion.text and agent.id != message.agent_id:
        return f"{write.INTRODUCTION.format(name=agent.name)}\n\n{completion.text}"
    return completion.text
