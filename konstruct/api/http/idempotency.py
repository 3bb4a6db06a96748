"""Idempotency-Key: a POST with the same key creates its row once.

A key belongs to its caller: the API key or the person, with the agent and the user that the API key
is bound to. Two callers may send the same text.
"""

import hashlib
import json
import re
from collections.abc import Callable
from uuid import UUID

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from konstruct.api.auth.permissions import caller_of
from konstruct.api.http.schema import header
from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator.exceptions import IdempotencyKeyInUse, IdempotencyKeyReused
from tenants import transaction
from tenants.context import fetch_value

HEADER = "Idempotency-Key"
# Visible ASCII characters.
KEY = re.compile(r"^[\x21-\x7e]{1,255}$")
IDEMPOTENCY_KEY = header(
    HEADER,
    "A text that you choose, such as a UUID. The same request with the same key creates nothing "
    "again and returns the first result. Keys are separate for each caller: another API key, or "
    "the same key bound to another user, may use the same text.",
    pattern=KEY.pattern,
)


def idempotency_key(request: Request) -> str | None:
    """Return the Idempotency-Key of a request, or None. Raises ValidationError if it is invalid."""
    key = request.headers.get(HEADER)
    if key is not None and KEY.fullmatch(key) is None:
        raise ValidationError({HEADER: "Give 1 to 255 visible ASCII characters, such as a UUID."})
    return key


def key_of_caller(request: Request, key: str) -> str:
    """Return the stored form of an Idempotency-Key: the caller's id, and a digest of the key.

    The digest includes the agent and the user that the API key is bound to: an API key that is
    bound to another user is another caller.
    """
    caller = caller_of(request)
    scope = [str(caller.agent_id or ""), caller.user_id, key]
    return f"{caller.id}/{hashlib.sha256(json.dumps(scope).encode()).hexdigest()}"


def create_once(request: Request, create: Callable[[], UUID]) -> tuple[UUID, bool]:
    """Call `create` in a transaction, once for each Idempotency-Key of a caller and a path.

    A failed request leaves no record, so that it can be sent again. A request without a key always
    calls `create`.

    Args:
        request: the request.
        create: creates a row, and returns its id.

    Returns:
        The id of the row, and whether it is new: the same request may have created it before.

    Raises:
        IdempotencyKeyReused: the key belongs to a request with another body.
        IdempotencyKeyInUse: the first request still runs. The second is refused at once, because
            waiting would occupy a thread and a transaction.
    """
    sent = idempotency_key(request)
    with transaction.atomic():
        if sent is None:
            return create(), True
        operation, key = f"{request.method} {request.path}", key_of_caller(request, sent)
        # Sorted, so that the order of the fields does not change the digest.
        body = json.dumps(request.data, sort_keys=True)
        digest = hashlib.sha256(body.encode()).hexdigest()
        if not fetch_value("SELECT public.try_tenant_lock(%s)", [f"{operation} {key}"]):
            raise IdempotencyKeyInUse(
                f"A request with the {HEADER} {sent!r} is in progress. Repeat it in a second."
            )
        record = IdempotencyRecord.objects.filter(operation=operation, key=key).first()
        if record is None:
            created_id = create()
            IdempotencyRecord.objects.create(
                operation=operation, key=key, digest=digest, made=created_id
            )
            return created_id, True
    if record.digest != digest:
        raise IdempotencyKeyReused(
            f"You have sent {HEADER} {sent!r} with another request. "
            "Send a new key with a new request."
        )
    return record.made, False
