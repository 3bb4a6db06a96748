"""Streamed responses: their body is made after the view has returned, and the tenant been left."""

from collections.abc import Iterator
from typing import Any, TypeVar, cast
from uuid import UUID

from django.http import FileResponse, HttpResponseBase
from django.http.response import StreamingHttpResponse

from tenants.context import tenant_scope

R = TypeVar("R", bound=HttpResponseBase)


def streamed_inside(response: R, tenant_id: UUID) -> R:
    """Return the response; if it is streamed, each piece of it is made inside the tenant.

    A file is left as it is, for it asks the database nothing.
    """
    if (
        isinstance(response, StreamingHttpResponse)
        and not isinstance(response, FileResponse)
        and not response.is_async
    ):
        pieces = cast(Iterator[bytes], response.streaming_content)
        response.streaming_content = _inside(tenant_id, iter(pieces))
    return response


def _inside(tenant_id: UUID, pieces: Any) -> Iterator[bytes]:
    finished = object()
    # Ends: with the pieces of the answer.
    while True:
        with tenant_scope(tenant_id, pinned=True):
            piece = next(pieces, finished)
        if piece is finished:
            return
        yield cast(bytes, piece)
