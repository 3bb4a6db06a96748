"""What a route is tried with: a real request, and what becomes of it for those whose it is not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.konstruct.api.said import Said


@dataclass(frozen=True)
class Case:
    """A request that concerns what a tenant has.

    `foreign` is the status if the ids of it are another tenant's: there is no such thing; or 200,
    where the request names nothing that a tenant could own alone, and shows the caller's own.
    `messages` is how many it costs to Postgres, the same for any number of rows.
    """

    path: Callable[[Said], str]
    foreign: int
    messages: int
    body: Callable[[Said], Any] | None = None
    # What a key of the same tenant that is bound to an unknown user is told.
    stranger: int = 403


def ada(said: Said) -> str:
    return str(said.program.agent.id)
