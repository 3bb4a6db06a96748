"""Calls of the client's tools: as it is asked for them, and the results that it sends.

A client knows a call by an id of ours, so that a result is of one call, whatever the language model
has called it, and of nobody else's.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from konstruct.api.auth.caller import Caller
from konstruct.api.http.errors.problems import Refusal
from konstruct.interfaces.openai.errors import refused
from konstruct.interfaces.openai.requests import ChatRequest
from konstruct.llm.completions import storable
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import ToolCall
from konstruct.orchestrator.tools import program_calls
from memory.models import Message

PREFIX: Final = "call_"


@dataclass(frozen=True, slots=True)
class Results:
    """What came of calls that one message has led to."""

    message: Message
    texts: dict[UUID, str]
    rounds: int
    """How many answers with calls these and those before them were."""


def document(call: ToolCall) -> dict[str, Any]:
    """Return a call as the client is asked for it."""
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": call.name, "arguments": text}
    return {"id": f"{PREFIX}{call.pk.hex}", "type": "function", "function": function}


def results_in(chat: ChatRequest, thread: Thread, caller: Caller) -> Iterator[Results]:
    """Yield the results that a request has of calls in its thread, for each message."""
    texts = {key: text for each, text in chat.results.items() if (key := _key(each)) is not None}
    if not texts:
        return
    calls = caller.rows(ToolCall.objects.filter(pk__in=texts, **thread.named))
    ordered = calls.select_related("message").order_by("message_id", "round")
    for message, group in groupby(ordered, key=lambda call: call.message):
        of_message = list(group)
        told = {call.pk: storable(texts[call.pk]) for call in of_message}
        yield Results(message, told, of_message[-1].round + 1)


def continued(chat: ChatRequest, results: Iterable[Results]) -> Results:
    """Return the results with which the request goes on.

    Raises Refusal if they are none that can be known here, or not all of them.
    """
    keys = {each: _key(each) for each in chat.continues}
    found = next((each for each in results if set(keys.values()) & each.texts.keys()), None)
    strange = [each for each, key in keys.items() if found is None or key not in found.texts]
    if found is None or strange:
        why = (
            f"There is no call {strange[0][:100]!r} in this conversation. Send the ids of the "
            "tool_calls that you were given, with the same user and thread."
        )
        raise Refusal(refused("messages", why, code="tool_call_not_found"))
    for call in program_calls.out_of(found.message.pk):
        if call.pk not in found.texts:
            why = f"The result of the call {document(call)['id']} is missing."
            raise Refusal(refused("messages", why, code="tool_result_missing"))
    return found


def _key(call_id: str) -> UUID | None:
    try:
        return UUID(hex=call_id.removeprefix(PREFIX))
    except ValueError:
        return None
