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


def graph(seed: SeedData) -> str:
    """Return the thread of a LangGraph graph. Its name is the tenant's own."""
    return f"graph-{ada(seed)}"


def template(address: str) -> Callable[[SeedData], str]:
    """Return a function that formats the address with ids of the fixture, as `{fact}`."""
    return lambda seed: address.format(ada=ada(seed), graph=graph(seed), **vars(seed))
