"""Requests to erase a person or messages. The owner's worker carries them out."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from konstruct.orchestrator.identities.linked_ids import linked_ids
from konstruct.orchestrator.identities.person_threads import threads_of
from konstruct.orchestrator.notifications import notify
from memory.arguments import text_argument
from memory.ids import refuse_pseudonym
from tenants import transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ErasureRequest, MessageErasure
from tenants.exceptions import KonstructError
from tenants.jobs import owner_kind

ERASURES = owner_kind("erasure")
MESSAGE_ERASURES = owner_kind("message erasure")


class AlreadyRequested(KonstructError):
    """The same erasure is requested already, and not done yet."""


class ThreadOfOthers(KonstructError):
    """A thread in a request for an erasure has messages or a session of another user."""


def request_erasure(
    user_id: str,
    *,
    by: Actor,
    agent_id: UUID | None = None,
    threads: Sequence[str] = (),
    reason: str = "",
    request_id: str = "",
    by_bound_key: bool = False,
    **detail: Any,
) -> ErasureRequest:
    """Request the erasure of a person, with all ids that are linked to this one.

    Args:
        user_id: one id of the person.
        by: the person or program that requests it.
        agent_id: the agent that forgets the person. None: all agents.
        threads: ids of further threads with sessions of the person. They are needed if neither the
            transcript nor the metadata of the sessions name the person.
        reason: a text for the receipt.
        request_id: the id of the HTTP request, for the access log.
        by_bound_key: whether an API key that is bound to an agent or a user requests it. Such a key
            cannot claim a session by the id of its thread alone.
        detail: further fields of the entry in the access log.

    Raises:
        ThreadOfOthers: another user spoke in one of these threads, or its session is another's.
        AlreadyRequested: the same erasure is requested already, and not done yet.
    """
    refuse_pseudonym("user_id", user_id)
    if threads:
        _refuse_threads_of_others(
            linked_ids(user_id), threads, agent_id=agent_id, by_bound_key=by_bound_key
        )
    try:
        with transaction.atomic():
            request = ErasureRequest.objects.create(
                user_id=user_id,
                agent_id=agent_id,
                threads=list(threads),
                reason=text_argument("reason", reason),
                requested_by=by.name,
                by_bound_key=by_bound_key,
            )
            ERASURES.enqueue(request.pk)
            notify(request.pk)
            record_access(
                Action.ERASE,
                "person",
                by=by,
                subject_id=request.pk,
                agent_id=agent_id,
                user_id=user_id,
                request_id=request_id,
                **detail,
            )
    except IntegrityError as error:
        raise AlreadyRequested(
            f"The erasure of {user_id!r} is requested already, and not done yet."
        ) from error
    return request


def request_message_erasure(
    *,
    agent_id: UUID,
    user_id: str,
    thread_id: str,
    message_id: UUID | None = None,
    by: Actor,
    reason: str = "",
) -> MessageErasure:
    """Request the erasure of a message or of a whole conversation.

    The caller writes the access log, in the same transaction.

    Args:
        message_id: the message. None: the whole conversation.
        by: the person or program that requests it.
        reason: a text for the receipt.

    Returns:
        The new request, or the open request for the same messages.
    """
    target = {
        "agent_id": agent_id,
        "user_id": user_id,
        "thread_id": thread_id,
        "message_id": message_id,
    }
    details = {"reason": text_argument("reason", reason), "requested_by": by.name}
    try:
        with transaction.atomic():
            request = MessageErasure.objects.create(**target, **details)
            MESSAGE_ERASURES.enqueue(request.pk)
            notify(request.pk)
    except IntegrityError:
        existing = MessageErasure.objects.filter(**target, done_at__isnull=True).first()
        if existing is None:
            raise
        return existing
    return request


def _refuse_threads_of_others(
    user_ids: Sequence[str],
    threads: Sequence[str],
    *,
    agent_id: UUID | None,
    by_bound_key: bool,
) -> None:
    """Raise ThreadOfOthers unless the session of each thread belongs to the person."""
    wrong = [
        thread.thread_id
        for thread in threads_of(user_ids, agent_id=agent_id, requested=threads)
        if thread.is_requested and not thread.session_belongs_to_person(strict=by_bound_key)
    ]
    if wrong:
        listed = ", ".join(repr(thread) for thread in wrong[:5])
        raise ThreadOfOthers(
            f"Not of {user_ids[0]!r} alone: {listed}. Nothing was noted; leave these threads out."
        )
