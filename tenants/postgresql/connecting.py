"""Connecting to a server: what is called before, and not trying one that is down again at once."""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import psycopg
from django.conf import settings
from django.utils.module_loading import import_string

from tenants.postgresql.exceptions import ServerDown

# After a server has refused a connection, how long the next one is not tried.
DOWN_SECONDS = 2.0
_down_until: dict[str, float] = {}


def call_before_connect() -> None:
    """Call what settings.DATABASE_BEFORE_CONNECT names, if anything."""
    if dotted_path := getattr(settings, "DATABASE_BEFORE_CONNECT", None):
        _imported(dotted_path)()


def connect_unless_down(alias: str, connect: Callable[[], Any]) -> Any:
    """Connect; after a failure nobody in this process tries again, or waits, for a moment.

    Raises:
        ServerDown: the server does not answer, or did not a moment ago.
    """
    if time.monotonic() < _down_until.get(alias, 0.0):
        raise ServerDown(alias)
    try:
        return connect()
    except psycopg.OperationalError as error:
        _down_until[alias] = time.monotonic() + DOWN_SECONDS
        raise ServerDown(alias, detail=str(error)) from error


@cache
def _imported(dotted_path: str) -> Callable[[], None]:
    hook: Callable[[], None] = import_string(dotted_path)
    return hook
