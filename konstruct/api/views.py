"""The base of every view of the API."""

from collections.abc import Mapping
from typing import Any, ClassVar

from konstruct.api.audited import write_down
from konstruct.api.caller import Caller, caller_of
from konstruct.api.throttling import RateLimited


class ApiView(RateLimited):
    """A view of the API. What it says here is enforced by konstruct/api/permissions.py.

    `scopes`: the scope that a method needs where it is not the usual one.
    `keeps_to_binding`: whether it shows and changes only what a bound key is bound to, by
    `self.caller`; True, or the methods that do. Those that do not are refused to bound keys.
    """

    scopes: ClassVar[Mapping[str, str]] = {}
    keeps_to_binding: ClassVar[bool | tuple[str, ...]] = False
    request: Any

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Once the request is allowed, and before it is answered, write it down."""
        super().initial(request, *args, **kwargs)
        write_down(request)

    @property
    def caller(self) -> Caller:
        """Who asks."""
        return caller_of(self.request)
