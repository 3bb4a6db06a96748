"""Asks a language model with tools: rounds of calls and their results, until there is an answer.

Only the rows of the calls are kept between two rounds. So a message that was held for consent, or
for a program, can continue in any worker.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from konstruct.llm.completions import Completion, OnText, total_usage
from konstruct.orchestrator import runner
from konstruct.orchestrator.handoff import handovers
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Agent, ToolCall
from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.decisions import Hold
from konstruct.orchestrator.pipeline.snapshot import Snapshot
from konstruct.orchestrator.tool_catalog import tool_descriptions
from memory.context import WorkingContextCompiler
from memory.context.tokens import count_up_to, cut, even_limit
from tenants.jobs import Lease

# The maximum number of rounds before the language model must answer in words.
MAX_ROUNDS: Final = 4
# The same for tools of the program, which limits its rounds itself.
MAX_PROGRAM_ROUNDS: Final = 50


def ask_with_tools(
    snapshot: Snapshot,
    agent: Agent,
    prompt: Sequence[Mapping[str, Any]],
    message_calls: Sequence[ToolCall],
    lease: Lease,
    on_text: OnText | None = None,
) -> Completion | Hold | Snapshot:
    """Ask the language model until it answers without tool calls.

    Args:
        snapshot: the message.
        agent: the agent that answers.
        prompt: the messages of the prompt.
        message_calls: the tool calls of the message so far, in their order.
        lease: of the reply.
        on_text: called with the text of each answer as it comes, including answers with calls.

    Returns:
        The answer with the tokens of all rounds; or Hold if the message is held; or a new snapshot
        if the thread was handed over.

    Raises:
        LLMError: there is no usable answer.
    """
    agent_tools = [
        *tool_descriptions(agent.tools),
        *handovers.handover_tools(agent, can_hand_back=snapshot.can_hand_back),
    ]
    agent_names = {_name(tool) for tool in agent_tools}
    options = dict(snapshot.options)
    # If both have a tool with the same name, the agent's is used.
    program_tools = [tool for tool in options.pop("tools", ()) if _name(tool) not in agent_names]
    program_names = {_name(tool) for tool in program_tools}
    max_tokens = WorkingContextCompiler.TOKEN_BUDGETS[agent.model_tier]
    usages: list[Mapping[str, int] | None] = []
    # Ends: every round stores tool calls, and after MAX_PROGRAM_ROUNDS the model may make none.
    while True:
        # Calls of another agent, before it handed the message over, are left out.
        calls = [call for call in message_calls if (call.asked_by_id or call.agent_id) == agent.id]
        round_number = message_calls[-1].round + 1 if message_calls else 0
        rounds = {call.round for call in calls}
        agent_rounds = {call.round for call in calls if call.name not in program_names}
        messages = [*prompt, *exchanges(calls, max_tokens)]
        run_options = runner.RunOptions(
            tools=[*agent_tools, *program_tools],
            may_call=len(agent_rounds) < MAX_ROUNDS and len(rounds) < MAX_PROGRAM_ROUNDS,
            options=options,
            on_text=on_text,
            agent_id=agent.id,
        )
        completion = runner.complete(snapshot.message, agent, messages, run_options)
        usages.append(completion.usage)
        if not completion.requested:
            return replace(completion, usage=total_usage(usages))
        outcome = write.record_requested_calls(
            snapshot,
            agent,
            completion,
            lease,
            round_number=round_number,
            program_tools=program_names,
        )
        if isinstance(outcome, Hold | Snapshot):
            return outcome
        message_calls = outcome


def may_use_tools(agent: Agent, thread: Thread) -> bool:
    """Return whether the agent has a tool in the thread. Tools of programs do not count."""
    return bool(agent.tools or agent.hands_to or agent.id != thread.agent_id)


def exchanges(calls: Sequence[ToolCall], max_tokens: int) -> Iterator[dict[str, Any]]:
    """Yield the calls and their results in the format of OpenAI's API.

    The longest results, and texts before the calls, are cut so that all together have at most
    `max_tokens`.
    """
    texts = [text for call in calls for text in (call.content, call.result)]
    sizes = [count_up_to(text, max_tokens) for text in texts]
    longest = even_limit(sizes, max_tokens) if sizes else 0
    for _, group in groupby(calls, key=lambda call: call.round):
        round_calls = list(group)
        yield {
            "role": "assistant",
            "content": cut(round_calls[0].content, longest),
            "tool_calls": [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for call in round_calls
            ],
        }
        for call in round_calls:
            result = cut(call.result, longest)
            yield {"role": "tool", "tool_call_id": call.call_id, "content": result}


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool["function"]["name"])
