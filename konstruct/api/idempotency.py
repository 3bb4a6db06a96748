"""Idempotency-Key: a POST that creates does so once, however often it is sent."""

import hashlib
import json
from collections.abc import Callable
from uuid import UUID

from django.db import connection, transaction
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from konstruct.api.fields import StrictSerializer, VisibleAsciiField
from konstruct.api.models import Creation
from konstruct.api.schema import header
from konstruct.orchestrator.exceptions import IdempotencyKeyReused

HEADER = "Idempotency-Key"
IDEMPOTENCY_KEY = header(
    HEADER,
    "Any text of yours, such as a UUID. The same request with the same key again creates nothing "
    "and returns what was created.",
    pattern=r"^[\x21-\x7e]{1,255}$",
)


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


def create_once(request: Request, create: Callable[[], UUID]) -> UUID:
    """Do `create` in a transaction, and return the id of what it made.

    The same request with the same Idempotency-Key again returns that id without doing anything; one
    that comes while the first is at work waits for it. What failed leaves no trace and may be
    sent again. The keys of a tenant are apart for each address of the API.

    Raises IdempotencyKeyReused if the key stands for a request with another body.
    """
    key = idempotency_key(request)
    with transaction.atomic():
        if key is None:
            return create()
        operation, digest = f"{request.method} {request.path}", _digest(request)
        # Waits for whoever is about to create the same.
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
                [f"{connection.schema_name} {operation} {key}"],  # type: ignore[attr-defined]
            )
        standing = Creation.objects.filter(operation=operation, key=key).first()
        if standing is None:
            made = create()
            Creation.objects.create(operation=operation, key=key, digest=digest, made=made)
            return made
    if standing.digest != digest:
        raise IdempotencyKeyReused(
            f"{HEADER} {key!r} stands for another request, which made {standing.made}. "
            "Send a new key with a new request."
        )
    return standing.made


def _digest(request: Request) -> str:
    """Return what tells one body from another, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(request.data, sort_keys=True).encode()).hexdigest()
