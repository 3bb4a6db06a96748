"""One description of each call: the request, and what its answer means.

A resource describes its calls once, by functions that return a `Call`. The decorators make methods
of them, which send it: at once for `Client`, when awaited for `AsyncClient`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4

from konstruct_client._pages import AsyncPages, Page, Pages
from konstruct_client._streams import AsyncStream, Stream

if TYPE_CHECKING:
    import httpx

    from konstruct_client._sending import AsyncSender, Sender

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S")


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


class Resource(Generic[S]):
    """What the API has of one kind."""

    def __init__(self, sender: S) -> None:
        self._sender = sender


class call(Generic[P, T]):  # noqa: N801  (a decorator)
    """Make a method of the description of a call."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, resource: None, owner: Any) -> call[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Sender], owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, resource: Resource[AsyncSender], owner: Any
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Any, owner: Any) -> Any:
        """Return the method."""
        if resource is None:
            return self

        @functools.wraps(self.describe)
        def send(*args: P.args, **options: P.kwargs) -> Any:
            return resource._sender.send(self.describe(resource, *args, **options))

        return send


class pages(Generic[P, T]):  # noqa: N801  (a decorator)
    """Make a method of the description of a list, which is iterated over page by page."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[Page[T]]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, resource: None, owner: Any) -> pages[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Sender], owner: Any) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(
        self, resource: Resource[AsyncSender], owner: Any
    ) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, resource: Any, owner: Any) -> Any:
        """Return the method."""
        if resource is None:
            return self

        @functools.wraps(self.describe)
        def listed(*args: P.args, **options: P.kwargs) -> Any:
            return resource._sender.pages(self.describe(resource, *args, **options))

        return listed


class stream(Generic[P]):  # noqa: N801  (a decorator)
    """Make a method of the description of a call whose reply is read while it is written."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[Any]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, resource: None, owner: Any) -> stream[P]: ...
    @overload
    def __get__(self, resource: Resource[Sender], owner: Any) -> Callable[P, Stream]: ...
    @overload
    def __get__(self, resource: Resource[AsyncSender], owner: Any) -> Callable[P, AsyncStream]: ...
    def __get__(self, resource: Any, owner: Any) -> Any:
        """Return the method."""
        if resource is None:
            return self

        @functools.wraps(self.describe)
        def streamed(*args: P.args, **options: P.kwargs) -> Any:
            return resource._sender.stream(self.describe(resource, *args, **options))

        return streamed


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
    """Return the header by which a change is refused if somebody else was faster."""
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
    following = parse_qs(urlsplit(document["next"] or "").query)
    return Page(document["results"], following.get("cursor", [None])[0])
