"""Asking that a person be forgotten: noted here, done by a process with the owner's role."""

from django.db import IntegrityError, transaction

from konstruct.audit.access_log import Actor, record_access
from konstruct.audit.models import Action, ErasureRequest
from tenants.exceptions import KonstructError


class AlreadyRequested(KonstructError):
    """The erasure of this user is asked for already, and not done yet."""


def request_erasure(
    user_id: str, *, by: Actor, reason: str = "", request_id: str = ""
) -> ErasureRequest:
    """Note that the user is to be forgotten, and who asked for it.

    Raises AlreadyRequested while an earlier request is still open.
    """
    try:
        with transaction.atomic():
            request = ErasureRequest.objects.create(
                user_id=user_id, reason=reason, requested_by=by.name
            )
            record_access(
                Action.ERASE,
                "person",
                by=by,
                subject_id=request.pk,
                user_id=user_id,
                request_id=request_id,
            )
    except IntegrityError as error:
        raise AlreadyRequested(
            f"The erasure of {user_id!r} is asked for already, and not done yet."
        ) from error
    return request
