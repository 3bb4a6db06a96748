"""Descriptions of calls: the request, and the meaning of its response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


def _document(response: httpx.Response) -> Any:
    return response.json() if response.content else None


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    """Below /api/v1/."""
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    """Whether the request, sent twice, does no more than sent once."""
    seconds: float = 0
    """How long the server was asked to wait."""
    parse: Callable[[httpx.Response], T] = _document


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list."""

    results: list[T]
    cursor: str | None
    """Where the next page begins; None after the last."""


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that the caller has given: those that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def segment(value: Any) -> str:
    """Return a value as one segment of a path."""
    return quote(str(value), safe="")


def once(idempotency_key: str | None) -> dict[str, str]:
    """Return the header by which a request is done once, however often it is sent."""
    return {"Idempotency-Key": idempotency_key or str(uuid4())}


def matching(etag: str | None) -> dict[str, str]:
    """Return the header that refuses a change if the object has changed in the meantime."""
    return {"If-Match": etag} if etag else {}


def listing(path: str, **query: Any) -> Call[Page[Any]]:
    """Describe a list, from its first page."""
    return Call("GET", path, query=given(**query), parse=_page)


def tagged(response: httpx.Response) -> tuple[Any, str]:
    """Return the document and its ETag."""
    return response.json(), response.headers["ETag"]


def _page(response: httpx.Response) -> Page[Any]:
    document = response.json()
    # The cursor alone: the key is for the address that it was given for.
    following = parse_qs(urlsplit(document.get("next") or "").query)
    return Page(document["results"], following.get("cursor", [None])[0])
