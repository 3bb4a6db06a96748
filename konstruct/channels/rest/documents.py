"""Documents of messages in the REST API, with the conditions that held messages wait for."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.reverse import reverse

from konstruct.api.http.views import agent_names
from konstruct.orchestrator.models.escalations import Escalation
from konstruct.orchestrator.models.tool_calls import ToolCall
from konstruct.orchestrator.replies.status import Status, progress_of
from memory.models import Message

DETAILS = {
    Status.AWAITING_CONSENT: "The agent wants to use a tool and needs the user's consent. Ask the "
    "user each call's question and send the answer to its decision_url.",
    Status.WITH_PERSON: "A person answers in this conversation instead of the agent.",
    Status.WITH_PROGRAM: "The program that sent it has to send the results of its tools.",
}
_WAITS_FOR = {
    Status.AWAITING_CONSENT: "user",
    Status.WITH_PERSON: "person",
    Status.WITH_PROGRAM: "program",
}


def message_documents(messages: list[Message], request: Request) -> list[dict[str, Any]]:
    """Return the documents of messages, with one query for the names of their agents."""
    names = agent_names(message.agent_id for message in messages)
    address = reverse("messages", request=request)
    waiting = wait_conditions(messages, request)
    return [
        message_document(
            message, names.get(message.agent_id, ""), f"{address}{message.id}/", waiting
        )
        for message in messages
    ]


def message_document(
    message: Message, agent_name: str, url: str, waiting: Mapping[UUID, dict[str, Any]]
) -> dict[str, Any]:
    """Return the document that MessageSerializer describes.

    The serializer itself would take a fifth of the time of a page of messages.
    """
    progress = progress_of(message)
    reply = progress.reply
    return {
        "id": message.id,
        "status": progress.status.value,
        "url": url,
        "agent": agent_name,
        "agent_id": message.agent_id,
        "user_id": message.user_id,
        "thread_id": message.thread_id,
        "channel": message.channel,
        "name": message.name,
        "content": message.content,
        "metadata": message.metadata or {},
        "created_at": message.created_at,
        "reply": reply
        and {
            name: getattr(reply, name) for name in ("id", "content", "created_at", "finish_reason")
        },
        "waits_for": waiting.get(message.id),
        "answered_by": reply.name if reply else "",
        "answered_by_id": reply and reply.answered_by_id,
        "error": {
            "code": progress.error_code,
            "detail": progress.last_error,
            "attempts": progress.attempts,
            "next_attempt_at": progress.next_attempt_at,
        }
        if progress.last_error or progress.status in (Status.FAILED, Status.CLOSED)
        else None,
    }


def wait_conditions(messages: Sequence[Message], request: Request) -> dict[UUID, dict[str, Any]]:
    """Return the field `waits_for` of each held message, with one query for each kind."""
    held = {
        message.id: (status, message)
        for message in messages
        if (status := progress_of(message).status) in DETAILS
    }
    calls = _tool_calls(
        [key for key, (status, _) in held.items() if status is Status.AWAITING_CONSENT], request
    )
    escalations = _escalations(
        [message for status, message in held.values() if status is Status.WITH_PERSON], request
    )
    return {
        key: {
            "who": _WAITS_FOR[status],
            "detail": DETAILS[status],
            "tool_calls": calls.get(key, []),
            "escalation": escalations.get(_thread(message)),
        }
        for key, (status, message) in held.items()
    }


def _tool_calls(message_ids: Sequence[UUID], request: Request) -> dict[UUID, list[dict[str, Any]]]:
    if not message_ids:
        return {}
    found: dict[UUID, list[dict[str, Any]]] = {}
    waiting = ToolCall.objects.waiting().filter(message_id__in=message_ids)
    for call in waiting.order_by("round", "position"):
        found.setdefault(call.message_id, []).append(
            {
                "id": call.id,
                "name": call.name,
                "question": call.question,
                "expires_at": call.expires_at,
                "url": reverse("tool-call", args=[call.id], request=request),
                "decision_url": reverse("decision", args=[call.id], request=request),
            }
        )
    return found


def _escalations(
    messages: Sequence[Message], request: Request
) -> dict[tuple[UUID, str, str], dict[str, Any]]:
    if not messages:
        return {}
    opened = (
        Escalation.objects.open()
        .to_people()
        .filter(
            agent_id__in={message.agent_id for message in messages},
            user_id__in={message.user_id for message in messages},
            thread_id__in={message.thread_id for message in messages},
        )
    )
    return {
        _thread(escalation): {
            "id": escalation.id,
            "reason": escalation.reason,
            "opened_at": escalation.opened_at,
            "url": reverse("escalation", args=[escalation.id], request=request),
        }
        for escalation in opened
    }


def _thread(row: Message | Escalation) -> tuple[UUID, str, str]:
    return row.agent_id, row.user_id, row.thread_id
