"""The addresses of the views below /api/v1/."""

from collections.abc import Callable
from typing import Final, TypeVar

from django.urls import URLPattern, path
from django.views import View

ROUTES: Final[list[URLPattern]] = []
ViewClass = TypeVar("ViewClass", bound=type[View])


def route(address: str, *, name: str) -> Callable[[ViewClass], ViewClass]:
    """Declare the address of a view below /api/v1/.

    Args:
        address: as in `django.urls.path`.
        name: of the route.
    """

    def declare(view: ViewClass) -> ViewClass:
        ROUTES.append(path(address, view.as_view(), name=name))
        return view

    return declare
