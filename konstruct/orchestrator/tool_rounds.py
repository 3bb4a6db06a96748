"""Asking a language model that may use tools: rounds of calls and their results, up to an answer.

Nothing is kept between two rounds but the rows of the calls, so that a message that has waited for
consent goes on where it was, in whichever worker.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from konstruct.orchestrator import tool_calls
from konstruct.orchestrator.llm import language_model
from konstruct.orchestrator.messages import KonstructMessage
from konstruct.orchestrator.models import Agent, ToolCall
from konstruct.orchestrator.tools import described

# So often a language model may ask for tools before it has to answer in words.
MOST_ROUNDS: Final = 4


def ask_with_tools(
    message: KonstructMessage, agent: Agent, prompt: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the agent's answer; None if a call waits for the user's consent first.

    An agent without tools is asked once, as ever. Raises an LLMError if there is no usable answer.
    """
    model = language_model()
    offered = described(agent.tools)
    while True:
        calls = list(ToolCall.objects.of_message(message.id))
        round_number = calls[-1].round + 1 if calls else 0
        said = model.converse(
            [*prompt, *exchanges(calls)],
            model=agent.model,
            tier=agent.model_tier,
            tools=offered,
            may_call=round_number < MOST_ROUNDS,
        )
        if not said.requested:
            return said.text
        if tool_calls.record(message, agent, said.requested, round_number=round_number):
            return None


def exchanges(calls: Iterable[ToolCall]) -> Iterator[dict[str, Any]]:
    """What was called and what came of it, as OpenAI's API has it."""
    for _, group in groupby(calls, key=lambda call: call.round):
        together = list(group)
        yield {
            "role": "assistant",
            "content": "",
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
            yield {"role": "tool", "tool_call_id": call.call_id, "content": call.result}
