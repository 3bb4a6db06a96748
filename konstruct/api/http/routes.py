"""The addresses of the views below /api/v1/."""

from collections.abc import Callable
from typing import Final, TypeVar

from django.urls import URLPattern, path

from konstruct.api.http.views import ApiView

ROUTES: Final[list[URLPattern]] = []
ViewClass = TypeVar("ViewClass", bound=type[ApiView])


def route(address: str, *, name: str) -> Callable[[ViewClass], ViewClass]:
    """Declare the address of a view below /api/v1/.

    Its first part is the view's tag, if the view has none: "tool calls" of "tool-calls/".

    Args:
        address: as in `django.urls.path`.
        name: of the route.
    """

    def declare(view: ViewClass) -> ViewClass:
        view.tag = view.tag or address.partition("/")[0].replace("-", " ")
        ROUTES.append(path(address, view.as_view(), name=name))
        return view

    return declare
