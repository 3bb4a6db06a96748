"""The base of every view of the API."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model
from django.http import HttpResponseBase
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from konstruct.api.auth.permissions import Caller, caller_of
from konstruct.api.auth.throttling import RateLimited
from konstruct.api.http.access_log import READS, Noted, record_refusal, record_request, recorded_as
from konstruct.api.http.schema import header
from konstruct.orchestrator.models import Agent
from tenants import transaction
from tenants.audit.changes import RowState
from tenants.audit.models import Action
from tenants.context import tenant_connection
from tenants.exceptions import KonstructError
from tenants.outages import is_outage
from tenants.postgresql.entering import Queued


def agent_names(agent_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the names of these agents."""
    return dict(Agent.objects.filter(pk__in=set(agent_ids)).values_list("pk", "name"))


IF_MATCH = header(
    "If-Match", "The ETag that you read: the change is refused if somebody was faster."
)

_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e]*")')


class ChangedSince(KonstructError):
    """What is to be changed is not what the caller saw."""


def etag_of(document: Any) -> str:
    """Return the tag of a resource's state, from its JSON."""
    text = json.dumps(document, cls=JSONEncoder, sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def tagged(request: Request, document: Any) -> Response:
    """Answer a GET with the document and its tag; with 304 alone if the caller has this state."""
    etag = etag_of(document)
    if _matches(request.headers.get("If-None-Match"), etag):
        return Response(status=304, headers={"ETag": etag})
    return Response(document, headers={"ETag": etag})


def require_match(request: Request, document: Any) -> None:
    """Raise ChangedSince if the request's If-Match is of another state than the document.

    The caller has locked the rows, so that the state stays what it is until the change is made.
    A weak tag is taken, too: gzip makes tags weak, and ours are of the state and not of bytes.
    """
    given = request.headers.get("If-Match")
    if given is not None and not _matches(given, etag_of(document)):
        raise ChangedSince("It was changed since you read it. Read it again and decide anew.")


def _matches(header: str | None, etag: str) -> bool:
    if header is None:
        return False
    return header.strip() == "*" or etag in _TAG.findall(header)


Handler = Callable[..., HttpResponseBase]


class ApiView(RateLimited):
    """A view of the API. What it says here is enforced by konstruct/api/auth/permissions.py.

    `scopes`: the scope that a key needs for a method, where it is not the usual one; or a tuple of
    scopes, one of which is enough. A document can be read, at its own address, with the scope that
    creates it.
    `permissions`: those that a person needs for each method, which are the admin's own.
    `keeps_to_binding`: whether it shows and changes only what a bound key is bound to, by
    `self.caller`; True, or the methods that do. Those that do not are refused to bound keys.

    Every request is in the access log: what was answered with what the view says of it by `note`,
    what was refused as refused. A change and its record are one transaction.
    `own_transactions`: methods that make it themselves, since they wait for somebody or change what
    is not in this database, and call `record` in it.
    """

    scopes: ClassVar[Mapping[str, str | tuple[str, ...]]] = {}
    permissions: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    keeps_to_binding: ClassVar[bool | tuple[str, ...]] = False
    own_transactions: ClassVar[tuple[str, ...]] = ()
    request: Any

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._noted = Noted()
        self._is_recorded = False
        self._on_its_way: Queued | None = None

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Once the request is allowed, see to it that its answer is recorded."""
        super().initial(request, *args, **kwargs)
        name = str(request.method).lower()
        handler = getattr(self, name, None)
        if handler is not None and name != "options":
            setattr(self, name, self._recorded(handler))

    def handle_exception(self, exc: Exception) -> Any:
        """Answer an error, and record that the request was refused."""
        waiting = tenant_connection().queued
        if self._on_its_way in waiting:
            waiting.remove(self._on_its_way)
        response = super().handle_exception(exc)
        if is_outage(exc):  # the access log cannot be written either
            return response
        try:
            caller = self.caller if self.request.user else None
        except APIException:  # It was refused before anybody asked who sent it, and nobody has.
            caller = None
        record_refusal(self.request, caller, response.status_code)
        return response

    @cached_property
    def caller(self) -> Caller:
        """Who asks."""
        return caller_of(self.request)

    def note(
        self,
        row: Model | None = None,
        *,
        action: Action | None = None,
        before: RowState | None = None,
        after: RowState | None = None,
        **detail: Any,
    ) -> None:
        """Say what the request is about, for its record.

        Args:
            row: what was shown or changed, with the agent and the user whose it is.
            action: what was done, if it is not what requests of this method usually do.
            before: the row as it was before a change.
            after: the row after it.
        """
        noted = self._noted
        noted.row, noted.action = row or noted.row, action or noted.action
        noted.before, noted.after = before or noted.before, after or noted.after
        noted.detail |= detail

    def record(self) -> None:
        """Write the request down: in the transaction that we are in, else at once."""
        record_request(self.request, self.caller, self._noted)
        self._is_recorded = True

    def about_to_read(self) -> None:
        """Let the request be recorded with what is read next: all that is to be noted is."""
        if not self._is_recorded and self._is_read():
            self._on_its_way = record_request(
                self.request, self.caller, self._noted, with_next=True
            )
            self._is_recorded = True

    def is_recorded(self) -> None:
        """Say that what the request does has been written down by whoever does it."""
        self._is_recorded = True

    def _recorded(self, handler: Handler) -> Handler:
        def answer(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if self._is_read() or request.method in self.own_transactions:
                return self._answered(handler(request, *args, **kwargs))
            with transaction.atomic():
                return self._answered(handler(request, *args, **kwargs))

        return answer

    def _is_read(self) -> bool:
        known = recorded_as(self.request)
        return known is None or known[0] in READS

    def _answered(self, response: HttpResponseBase) -> HttpResponseBase:
        if not self._is_recorded:
            self.record()
        connection = tenant_connection()
        if self._on_its_way is not None and not connection.in_atomic_block:
            connection.send_queued()
            if not self._on_its_way.is_done:  # what it went with has failed
                self.record()
        return response
