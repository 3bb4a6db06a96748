"""Which message a request is: a new one, or one that was accepted before and is sent again.

A client sends its whole history with each message. Only the last message of the user can be new. It
is not if it was sent in this place before: a client's library repeats what has failed, and people
ask for an answer to be given again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from konstruct.interfaces.openai.requests import ChatRequest
from konstruct.orchestrator.messages import Thread
from memory.models import Message, Role

# A client's library gives up its repetitions by then: it waits ten minutes for each answer.
REPEATED_WITHIN = timedelta(minutes=35)
RETRY_COUNT = "X-Stainless-Retry-Count"


@dataclass(frozen=True, slots=True)
class Recognised:
    """The message that stands, if the request is one again; and the key of a new one."""

    standing: Message | None
    idempotency_key: str
    """The same for two requests that are the same and come at once."""


def recognise(
    chat: ChatRequest,
    instructions: Sequence[str],
    *,
    caller: str,
    thread: Thread,
    is_repetition: bool,
) -> Recognised:
    """Look for the message that the request is, in its thread.

    A request with other instructions or options is still a repetition of the same message. Two
    requests that arrive at the same time and differ in them are two messages.

    Args:
        chat: the request.
        instructions: those of its instructions that are followed.
        caller: the id of the API key or the person.
        thread: where the message is.
        is_repetition: the client says that it has sent this before.
    """
    spoken = Message.objects.filter(role=Role.USER, **thread.named).order_by(
        "-created_at", "-number"
    )
    latest, before = [*spoken[:2], None, None][:2]
    same = f"{caller}/{_digest(chat, thread)}/"
    is_latest = latest is not None and same in (latest.idempotency_key or "")
    # Where it stands is known by what the user has said before, by the client and by us.
    if is_latest and before is not None and chat.said_before == before.content:
        standing = latest
    elif is_repetition:
        recent = spoken.filter(created_at__gt=Now() - REPEATED_WITHIN)
        standing = recent.filter(idempotency_key__contains=same).first()
    else:
        standing = None
    key = f"{same}{latest.id.hex if latest is not None else ''}"
    if instructions or chat.options:
        key += f"/{_digest_of([instructions, chat.options])[:16]}"
    return Recognised(standing, key)


def is_repetition(retry_count: str) -> bool:
    """Whether the header of a client's library says that it has sent the request before."""
    return retry_count.isdecimal() and retry_count.strip("0") != ""


def _digest(chat: ChatRequest, thread: Thread) -> str:
    """What tells a request from others: where it is, and all that was said."""
    said = [str(thread.agent_id), thread.user_id, thread.thread_id, chat.said]
    return _digest_of(said)


def _digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
