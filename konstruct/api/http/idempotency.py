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
from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator.exceptions import IdempotencyKeyInUse, IdempotencyKeyReused
from tenants import transaction
from tenants.context import fetch_value

HEADER = "Idempotency-Key"
# Visible ASCII characters.
KEY = re.compile(r"^[\x21-\x7e]{1,255}$")


class Idempotency:
    """The Idempotency-Key of a request. Raises ValidationError if it is invalid.

    Args:
        request: the request.
        place: an id, for which keys are separate; by default they are the caller's.

    Attributes:
        sent: the key as it was sent; None: the request has none.
        key: its stored form: the caller's id, and a digest of the key and the binding of the API
            key, because an API key that is bound to another user is another caller.
    """

    def __init__(self, request: Request, place: object = "") -> None:
        self.request, self.sent = request, request.headers.get(HEADER)
        self.key: str | None = None
        if self.sent is None:
            return
        if KEY.fullmatch(self.sent) is None:
            hint = "Give 1 to 255 visible ASCII characters, such as a UUID."
            raise ValidationError({HEADER: hint})
        caller = caller_of(request)
        text = f"{place} {self.sent}" if place else self.sent
        self.key = f"{caller.id}/{_digest([str(caller.agent_id or ''), caller.user_id, text])}"

    def once(self, create: Callable[[], UUID]) -> tuple[UUID, bool]:
        """Call `create` in a transaction, once for each key and path.

        A failed request leaves no record, so that it can be sent again. A request without a key
        always calls `create`.

        Args:
            create: creates a row, and returns its id.

        Returns:
            The id of the row, and whether it is new: the same request may have created it before.

        Raises:
            IdempotencyKeyReused: the key belongs to a request with another body.
            IdempotencyKeyInUse: the first request still runs. The second is refused at once,
                because waiting would occupy a thread and a transaction.
        """
        operation = f"{self.request.method} {self.request.path}"
        with transaction.atomic():
            if self.key is None:
                return create(), True
            digest = _digest(self.request.data)
            if not fetch_value("SELECT public.try_tenant_lock(%s)", [f"{operation} {self.key}"]):
                raise IdempotencyKeyInUse(
                    f"A request with the {HEADER} {self.sent!r} is in progress. "
                    "Repeat it in a second."
                )
            record = IdempotencyRecord.objects.filter(operation=operation, key=self.key).first()
            if record is None:
                created_id = create()
                IdempotencyRecord.objects.create(
                    operation=operation, key=self.key, digest=digest, made=created_id
                )
                return created_id, True
        if record.digest != digest:
            raise IdempotencyKeyReused(
                f"You have sent {HEADER} {self.sent!r} with another request. "
                "Send a new key with a new request."
            )
        return record.made, False


def _digest(document: object) -> str:
    """Return a digest of JSON. The order of fields does not change it."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
