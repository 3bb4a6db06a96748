"""Asking that a person or a message be forgotten: noted here, done by a process of the owner's."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from konstruct.audit.access_log import Actor, record_access
from konstruct.audit.models import Action, ErasureRequest, MessageErasure
from memory.arguments import id_argument, text_argument
from tenants import transaction
from tenants.exceptions import KonstructError
from tenants.outbox import kind_of_owner

ERASURES = kind_of_owner("erasure")
MESSAGE_ERASURES = kind_of_owner("message erasure")


class AlreadyRequested(KonstructError):
    """The erasure of this user is asked for already, and not done yet."""


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
    """Note that the user is to be forgotten, and who asked for it.

    Args:
        agent_id: the one agent that is to forget; by default all of them.
        threads: sessions of graphs that are the user's, which the transcript does not know of.
        by_bound_key: a key of one agent or one user asks for it.
        detail: what else the access log is to have of it.

    Raises AlreadyRequested while an earlier request is still open.
    """
    try:
        with transaction.atomic():
            request = ErasureRequest.objects.create(
                user_id=id_argument("user_id", user_id),
                agent_id=agent_id,
                threads=list(threads),
                reason=text_argument("reason", reason),
                requested_by=by.name,
                by_bound_key=by_bound_key,
            )
            ERASURES.put(request.pk)
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
            f"The erasure of {user_id!r} is asked for already, and not done yet."
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
    """Note that a message, or all of a conversation, is to be erased; what stands if it is noted.

    The caller writes it into the access log, in the same transaction.
    """
    what = {
        "agent_id": agent_id,
        "user_id": user_id,
        "thread_id": thread_id,
        "message_id": message_id,
    }
    asked = {"reason": text_argument("reason", reason), "requested_by": by.name}
    try:
        with transaction.atomic():
            request = MessageErasure.objects.create(**what, **asked)
            MESSAGE_ERASURES.put(request.pk)
    except IntegrityError:
        standing = MessageErasure.objects.filter(**what, done_at__isnull=True).first()
        if standing is None:
            raise
        return standing
    return request
