"""Asks a language model with tools: rounds of calls and their results, until there is an answer.

Between two rounds, only the rows of the calls are kept, so that a message that has waited for
consent, or for a program, continues in any worker.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from konstruct.llm.completions import Completion, OnText, total
from konstruct.orchestrator import runner
from konstruct.orchestrator.handoff import handovers
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Agent, ToolCall
from konstruct.orchestrator.pipeline import write
from konstruct.orchestrator.pipeline.decisions import Held
from konstruct.orchestrator.pipeline.snapshot import Snapshot
from konstruct.orchestrator.tool_catalog import described
from memory.context import WorkingContextCompiler
from memory.context.tokens import count_up_to, cut, even_cut
from tenants.jobs import Lease

# The maximum number of rounds before the language model must answer in words.
MAX_ROUNDS: Final = 4
# The same for tools of the program, which limits its rounds itself.
MAX_PROGRAM_ROUNDS: Final = 50


def ask_with_tools(
    snapshot: Snapshot,
    agent: Agent,
    prompt: Sequence[Mapping[str, Any]],
    of_all: Sequence[ToolCall],
    lease: Lease,
    on_text: OnText | None = None,
) -> Completion | Held | Snapshot:
    """Return the agent's answer with the usage of all rounds, or the state after its calls.

    Args:
        of_all: the tool calls of the message so far, in their order.
        lease: of the reply.
        on_text: called with the text of each answer as it comes, including answers with calls.

    Returns:
        The answer; or that the message is held; or a snapshot, if its thread was handed over.

    Raises:
        LLMError: there is no usable answer.
    """
    own = [
        *described(agent.tools),
        *handovers.offered(agent, can_hand_back=snapshot.may_hand_back),
    ]
    names = {_name(tool) for tool in own}
    options = dict(snapshot.options)
    # If both have a tool with the same name, the agent's is used.
    of_program = [tool for tool in options.pop("tools", ()) if _name(tool) not in names]
    program_names = {_name(tool) for tool in of_program}
    max_tokens = WorkingContextCompiler.TOKEN_BUDGETS[agent.model_tier]
    usages: list[Mapping[str, int] | None] = []
    # Ends: every round stores tool calls, and after MAX_PROGRAM_ROUNDS the model may make none.
    while True:
        # Calls of another agent, before it handed the message over, are left out.
        calls = [call for call in of_all if (call.asked_by_id or call.agent_id) == agent.id]
        round_number = of_all[-1].round + 1 if of_all else 0
        rounds = {call.round for call in calls}
        own_rounds = {call.round for call in calls if call.name not in program_names}
        messages = [*prompt, *exchanges(calls, max_tokens)]
        asked = runner.RunOptions(
            tools=[*own, *of_program],
            may_call=len(own_rounds) < MAX_ROUNDS and len(rounds) < MAX_PROGRAM_ROUNDS,
            options=options,
            on_text=on_text,
            agent_id=agent.id,
        )
        completion = runner.complete(snapshot.message, agent, messages, asked)
        usages.append(completion.usage)
        if not completion.requested:
            return replace(completion, usage=total(usages))
        outcome = write.carry_out_request(
            snapshot,
            agent,
            completion,
            lease,
            round_number=round_number,
            of_program=program_names,
        )
        if isinstance(outcome, Held | Snapshot):
            return outcome
        of_all = outcome


def may_use_tools(agent: Agent, thread: Thread) -> bool:
    """Return whether there is any tool for the agent in the thread."""
    return bool(agent.tools or agent.hands_to or agent.id != thread.agent_id)


def exchanges(calls: Sequence[ToolCall], max_tokens: int) -> Iterator[dict[str, Any]]:
    """Yield the calls and their results in the format of OpenAI's API.

    All results, and the messages before the calls, together have at most this many tokens: the
    longest are cut.
    """
    texts = [text for call in calls for text in (call.content, call.result)]
    sizes = [count_up_to(text, max_tokens) for text in texts]
    longest = even_cut(sizes, max_tokens) if sizes else 0
    for _, group in groupby(calls, key=lambda call: call.round):
        together = list(group)
        yield {
            "role": "assistant",
            "content": cut(together[0].content, longest),
            "tool_calls": [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for call in together
            ],
        }
        for call in together:
            result = cut(call.result, longest)
            yield {"role": "tool", "tool_call_id": call.call_id, "content": result}


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool["function"]["name"])
