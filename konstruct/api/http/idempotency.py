"""Idempotency-Key: a POST that creates does so once, however often it is sent.

A key belongs to its caller: the API key or the person, and the agent and user that the API key is
bound to. Two callers may send the same text without learning of each other.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.db.models.functions import Now
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from konstruct.api.auth.permissions import Caller, caller_of
from konstruct.api.http.bodies import StrictSerializer, VisibleAsciiField
from konstruct.api.http.schema import header
from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator.exceptions import IdempotencyKeyInUse, IdempotencyKeyReused
from tenants import transaction
from tenants.context import connection

HEADER = "Idempotency-Key"
IDEMPOTENCY_KEY = header(
    HEADER,
    "Any text of yours, such as a UUID. The same request with the same key again creates nothing "
    "and returns what was created. Keys belong to the caller: another API key, or the same one "
    "bound to another user, may use the same text for something else.",
    pattern=r"^[\x21-\x7e]{1,255}$",
)
# Records of requests from before keys belonged to callers count for so long, for their retries.
UNSCOPED_FOR = timedelta(hours=24)


class IdempotencyKeySerializer(StrictSerializer):
    """The Idempotency-Key header, checked like a field."""

    key = VisibleAsciiField(max_length=255)


def idempotency_key(request: Request) -> str | None:
    """Return the request's key, None without one. One that cannot be is the caller's error."""
    given = request.headers.get(HEADER)
    if given is None:
        return None
    serializer = IdempotencyKeySerializer(data={"key": given})
    if not serializer.is_valid():
        raise ValidationError({HEADER: serializer.errors["key"]})
    return str(serializer.validated_data["key"])


def key_of_caller(request: Request, key: str) -> str:
    """Return the key as it is stored: who it belongs to, and a digest of it.

    What a key is bound to is part of the digest: bound to another user, it is another caller.
    """
    caller = caller_of(request)
    scope = [str(caller.agent_id or ""), caller.user_id, key]
    return f"{caller.id}/{hashlib.sha256(json.dumps(scope).encode()).hexdigest()}"


def create_once(request: Request, create: Callable[[], UUID]) -> UUID:
    """Do `create` in a transaction, and return the id of what it made.

    The same request of the same caller with the same Idempotency-Key again returns that id without
    doing anything. What failed leaves no trace and may be sent again. The keys of a caller are
    apart for each address of the API.

    Raises:
        IdempotencyKeyReused: the key belongs to a request with another body.
        IdempotencyKeyInUse: the first request still runs. The second is refused at once, because
            waiting would occupy a thread and a transaction.
    """
    sent = idempotency_key(request)
    with transaction.atomic():
        if sent is None:
            return create()
        operation, digest = f"{request.method} {request.path}", _digest(request)
        key = key_of_caller(request, sent)
        if not _try_lock(operation, key):
            raise IdempotencyKeyInUse(
                f"A request with the {HEADER} {sent!r} is still at work. Send it again in a second."
            )
        standing = _standing(operation, key, sent, digest, caller_of(request))
        if standing is None:
            made = create()
            IdempotencyRecord.objects.create(operation=operation, key=key, digest=digest, made=made)
            return made
    if standing.digest != digest:
        raise IdempotencyKeyReused(
            f"You have sent {HEADER} {sent!r} with another request. "
            "Send a new key with a new request."
        )
    return standing.made


def _try_lock(operation: str, key: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT public.try_tenant_lock(%s)",
            [f"{operation} {key}"],
        )
        return bool(cursor.fetchone()[0])


def _standing(
    operation: str, key: str, sent: str, digest: str, caller: Caller
) -> IdempotencyRecord | None:
    """Return what the caller's key stands for.

    A record from before keys belonged to callers may be another's. It counts only for the same
    request, of a caller for whom there is all of the tenant.
    """
    records = IdempotencyRecord.objects.filter(operation=operation)
    standing = records.filter(key=key).first()
    if standing is not None or caller.is_bound:
        return standing
    return records.filter(key=sent, digest=digest, created_at__gt=Now() - UNSCOPED_FOR).first()


def _digest(request: Request) -> str:
    """Return what tells one body from another, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(request.data, sort_keys=True).encode()).hexdigest()
