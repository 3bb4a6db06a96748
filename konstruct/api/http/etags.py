"""ETag and If-Match: who edits says which state they saw, so that no change is lost."""

import hashlib
import json
import re
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from konstruct.api.http.schema import header
from tenants.exceptions import KonstructError

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
