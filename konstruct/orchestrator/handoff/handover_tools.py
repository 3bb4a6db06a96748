"""The two tools by which a language model hands a conversation over, or back. They ask nobody.

They are offered where they can be used, whatever tools the agent has beside them. What one of them
did is kept as a tool call, so that people see who asked for it.
"""

from collections.abc import Sequence
from typing import Any, Final

from konstruct.llm.completions import Completion, Requested
from konstruct.orchestrator.handoff import handovers
from konstruct.orchestrator.messages import KonstructMessage, Thread
from konstruct.orchestrator.models import Agent, Escalation
from konstruct.orchestrator.tools import tool_calls
from tenants import transaction

HAND_TO_AGENT: Final = "hand_to_agent"
HAND_BACK: Final = "hand_back"
NAMES: Final = frozenset({HAND_TO_AGENT, HAND_BACK})
LONGEST_REASON = 500


def offered(agent: Agent, *, can_hand_back: bool) -> list[dict[str, Any]]:
    """The tools of this kind that the agent can use, in OpenAI's words."""
    tools = []
    if agent.hands_to and (names := _targets(agent)):
        tools.append(
            _tool(
                HAND_TO_AGENT,
                "Hand this conversation to another agent, who answers the user from now on. Use it"
                " when the user needs that agent. Do not answer the message yourself then.",
                {
                    "agent": {"type": "string", "enum": sorted(names)},
                    "reason": {"type": "string", "description": "Why, for the record."},
                },
                required=["agent"],
            )
        )
    if can_hand_back:
        tools.append(
            _tool(
                HAND_BACK,
                "Hand this conversation back to the agent that had it before you, when the user is"
                " done with what you are for. Do not answer the message yourself then.",
                {},
            )
        )
    return tools


def follow(message: KonstructMessage, agent: Agent, said: Completion, *, round_number: int) -> bool:
    """Do what the first call of this kind asks for; True if another answers the message now.

    Other calls of the same answer are not done, for they were this agent's. False if there is no
    such call, or it cannot be done: then the call is kept with the reason, for the language model.
    """
    requested = said.requested
    place = next((n for n, each in enumerate(requested) if each.name in NAMES), None)
    if place is None:
        return False
    with transaction.atomic():
        done, what = _done(message, agent, requested[place])
        results = ["Error: not done, for the conversation was to be handed over."] * len(requested)
        results[place] = what
        tool_calls.note(
            message,
            agent,
            said,
            round_number=round_number,
            done=place if done else None,
            results=results,
        )
    return done


def _done(message: KonstructMessage, agent: Agent, asked: Requested) -> tuple[bool, str]:
    """Whether it was done, and what the record says of it."""
    arguments = asked.arguments if isinstance(asked.arguments, dict) else {}
    if asked.name == HAND_BACK:
        if handovers.hand_back(Thread.of(message), agent):
            return True, "Handed back."
        return False, "Error: this conversation was not handed to you."
    names = _targets(agent)
    wanted, reason = arguments.get("agent"), arguments.get("reason")
    if not isinstance(wanted, str) or wanted not in names:
        known = ", ".join(sorted(names)) or "none"
        return False, f"Error: there is no agent {wanted!r} to hand to; there are: {known}"
    opened = handovers.pass_on(
        message,
        agent,
        names[wanted].id,
        opened_by=Escalation.OpenedBy.AGENT,
        reason=str(reason)[:LONGEST_REASON] if reason else f"{agent.name} asked for {wanted}.",
    )
    if opened is None:
        return True, "Not done: somebody else has decided about this conversation."
    if opened.to_agent_id is None:
        return True, "A person was asked for instead."
    return True, f"Handed to {wanted}."


def _targets(agent: Agent) -> dict[str, Agent]:
    """The active agents that it may hand a conversation to, by their names."""
    return {each.name: each for each in Agent.objects.active().filter(pk__in=agent.hands_to)}


def _tool(
    name: str, description: str, properties: dict[str, Any], required: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(required),
                "additionalProperties": False,
            },
        },
    }
