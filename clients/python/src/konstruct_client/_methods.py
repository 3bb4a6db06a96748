"""Methods of resources, each made of the description of a call.

A resource describes its calls once, by functions that return a `Call`. The decorators make methods
of them, which send it: at once for `Client`, when awaited for `AsyncClient`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from konstruct_client._calls import Call, Page
from konstruct_client._pages import AsyncPages, Pages
from konstruct_client._sending import AsyncSender, Sender
from konstruct_client._streams import AsyncStream, Stream

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S")


class Resource(Generic[S]):
    """The calls of one resource."""

    def __init__(self, sender: S) -> None:
        self._sender = sender


class Method(Generic[P, T]):
    """Makes a method of the description of a call."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    def bound(self, resource: Any, use: Callable[[Any, Call[T]], Any]) -> Any:
        """Return the method of a resource, which uses the call with the resource's sender."""
        if resource is None:
            return self

        @functools.wraps(self.describe)
        def method(*args: P.args, **options: P.kwargs) -> Any:
            return use(resource._sender, self.describe(resource, *args, **options))

        return method


class call(Method[P, T]):  # noqa: N801  (a decorator)
    """Make a method of the description of a call."""

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
        return self.bound(resource, lambda sender, call: sender.send(call))


class pages(Method[P, Page[T]]):  # noqa: N801  (a decorator)
    """Make a method of the description of a list, which is iterated over page by page."""

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
        return self.bound(resource, _pages)


class stream(Method[P, Any]):  # noqa: N801  (a decorator)
    """Make a method of the description of a call with a streamed reply."""

    @overload
    def __get__(self, resource: None, owner: Any) -> stream[P]: ...
    @overload
    def __get__(self, resource: Resource[Sender], owner: Any) -> Callable[P, Stream]: ...
    @overload
    def __get__(self, resource: Resource[AsyncSender], owner: Any) -> Callable[P, AsyncStream]: ...
    def __get__(self, resource: Any, owner: Any) -> Any:
        """Return the method."""
        return self.bound(resource, _stream)


def _pages(sender: Sender | AsyncSender, first: Call[Page[Any]]) -> Any:
    return Pages(sender, first) if isinstance(sender, Sender) else AsyncPages(sender, first)


def _stream(sender: Sender | AsyncSender, call: Call[Any]) -> Any:
    return Stream(sender, call) if isinstance(sender, Sender) else AsyncStream(sender, call)
