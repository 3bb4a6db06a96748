"""A test case of a route: a real request, and its status for other callers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.konstruct.api.seed_data import SeedData


@dataclass(frozen=True)
class Case:
    """A request for objects of a tenant.

    `foreign` is the status if its ids belong to another tenant: not found; or 200, if the request
    names no object of one tenant and returns the caller's own. `messages` is the number of messages
    to Postgres, equal for any number of rows.
    """

    path: Callable[[SeedData], str]
    foreign: int
    messages: int
    body: Callable[[SeedData], Any] | None = None
    # The status for a key of the same tenant that is bound to an unknown user.
    narrow: int = 403


def ada(seed: SeedData) -> str:
    return str(seed.program.agent.id)
