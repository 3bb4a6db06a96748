"""A test case of a route: a real request, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.konstruct.api.seed_data import SeedData


@dataclass(frozen=True)
class Case:
    """A request for objects of a tenant.

    `messages` is the number of messages to Postgres, equal for any number of rows.
    """

    path: Callable[[SeedData], str]
    messages: int
    body: Callable[[SeedData], Any] | None = None


def ada(seed: SeedData) -> str:
    return str(seed.program.agent.id)
