"""What held messages wait for, as the REST channel tells it: a user, a person, or a program."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.reverse import reverse

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
_WHO = {
    Status.AWAITING_CONSENT: "user",
    Status.WITH_PERSON: "person",
    Status.WITH_PROGRAM: "program",
}


def waits_for(messages: Sequence[Message], request: Request) -> dict[UUID, dict[str, Any]]:
    """What each held message among these waits for; one query for each kind that there is."""
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
            "who": _WHO[status],
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
        _thread(each): {
            "id": each.id,
            "reason": each.reason,
            "opened_at": each.opened_at,
            "url": reverse("escalation", args=[each.id], request=request),
        }
        for each in opened
    }


def _thread(row: Message | Escalation) -> tuple[UUID, str, str]:
    return row.agent_id, row.user_id, row.thread_id
