"""Repeated requests, and results of the client's tool calls: matching them with messages.

A client sends its whole history with each request. Only the user's last message can be new. It is
not new if the same request was sent before: a client's library retries failed requests, and users
ask for an answer again. A client knows a tool call by an id of ours, not by the language model's.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Now

from konstruct.api.auth.permissions import Caller
from konstruct.api.http.problems import Refusal
from konstruct.interfaces.openai.errors import invalid_parameter
from konstruct.interfaces.openai.requests import ChatRequest
from konstruct.llm.completions import make_storable
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import ToolCall
from konstruct.orchestrator.tools import tool_calls
from memory.models import Message, Role

CALL_PREFIX: Final = "call_"
# A client's library stops its retries within this time: it waits ten minutes for each answer.
RETRIES_END_AFTER = timedelta(minutes=35)
RETRY_COUNT = "X-Stainless-Retry-Count"


@dataclass(frozen=True, slots=True)
class Match:
    """The existing message that a request repeats, and the idempotency key of a new one."""

    existing: Message | None
    idempotency_key: str
    """The same for equal requests that arrive at the same time."""


def find_match(
    chat: ChatRequest,
    instructions: Sequence[str],
    *,
    caller: str,
    thread: Thread,
    is_retry: bool,
) -> Match:
    """Find the message that a request repeats, in its thread.

    A request with other instructions or options still repeats the same message. Two requests that
    arrive at the same time and differ in them are two messages.

    Args:
        chat: the request.
        instructions: the instructions that are followed.
        caller: the id of the API key or the person.
        thread: the message's thread.
        is_retry: whether the client says that it is a retry.
    """
    user_messages = Message.objects.filter(role=Role.USER, **thread.as_filter).order_by(
        "-created_at", "-number"
    )
    latest, previous = [*user_messages[:2], None, None][:2]
    turns = [str(thread.agent_id), thread.user_id, thread.thread_id, chat.turns]
    key_prefix = f"{caller}/{_digest(turns)}/"
    is_latest = latest is not None and key_prefix in (latest.idempotency_key or "")
    existing = None
    # The client's history and ours agree on the user's text before.
    if is_latest and previous is not None and chat.previous_user_text == previous.content:
        existing = latest
    elif is_retry:
        recent = user_messages.filter(created_at__gt=Now() - RETRIES_END_AFTER)
        existing = recent.filter(idempotency_key__contains=key_prefix).first()
    key = f"{key_prefix}{latest.id.hex if latest is not None else ''}"
    if instructions or chat.options:
        key += f"/{_digest([instructions, chat.options])[:16]}"
    return Match(existing, key)


def is_retry(retry_count: str) -> bool:
    """Return whether the header of a client's library marks the request as a retry."""
    return retry_count.isdecimal() and retry_count.strip("0") != ""


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Results:
    """Results of the tool calls of one message."""

    message: Message
    texts: dict[UUID, str]
    rounds: int
    """The number of answers with tool calls, up to these calls."""


def call_document(call: ToolCall) -> dict[str, Any]:
    """Return a tool call as OpenAI's clients read it."""
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": call.name, "arguments": text}
    return {"id": f"{CALL_PREFIX}{call.pk.hex}", "type": "function", "function": function}


def find_results(chat: ChatRequest, thread: Thread, caller: Caller) -> Iterator[Results]:
    """Yield the results in a request, for each message of its thread that has such calls."""
    texts = {
        key: text
        for call_id, text in chat.results.items()
        if (key := _call_key(call_id)) is not None
    }
    if not texts:
        return
    calls = caller.rows(ToolCall.objects.filter(pk__in=texts, **thread.as_filter))
    ordered = calls.select_related("message").order_by("message_id", "round")
    for message, group in groupby(ordered, key=lambda call: call.message):
        calls_of_message = list(group)
        stored = {call.pk: make_storable(texts[call.pk]) for call in calls_of_message}
        yield Results(message, stored, calls_of_message[-1].round + 1)


def results_to_continue(chat: ChatRequest, results: Iterable[Results]) -> Results:
    """Return the results with which the request continues an answer.

    Raises Refusal if a call is unknown, or a result is missing.
    """
    call_keys = {call_id: _call_key(call_id) for call_id in chat.continues}
    found = next((item for item in results if set(call_keys.values()) & item.texts.keys()), None)
    unknown = [
        call_id for call_id, key in call_keys.items() if found is None or key not in found.texts
    ]
    if found is None or unknown:
        detail = (
            f"There is no call {unknown[0][:100]!r} in this conversation. Send the ids of the "
            "tool_calls that you were given, with the same user and thread."
        )
        raise Refusal(invalid_parameter("messages", detail, code="tool_call_not_found"))
    for call in tool_calls.calls_awaiting_program(found.message.pk):
        if call.pk not in found.texts:
            detail = f"The result of the call {call_document(call)['id']} is missing."
            raise Refusal(invalid_parameter("messages", detail, code="tool_result_missing"))
    return found


def _call_key(call_id: str) -> UUID | None:
    try:
        return UUID(hex=call_id.removeprefix(CALL_PREFIX))
    except ValueError:
        return None
