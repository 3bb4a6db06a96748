"""Attempts to reach another tenant, and the layers that stop them."""

from dataclasses import dataclass, field
from enum import StrEnum


class Layer(StrEnum):
    """A layer of protection between two tenants."""

    SCHEMA = "schema"
    POLICY = "row-level security"
    ROLE = "role"
    PIN = "pinned tenant"
    KEYS = "keys of cache and broker"
    HTTP = "hosts, cookies and API keys"


# The outcome of an attack that could not be made begins with this. Such an attack proves nothing.
NOT_TRIED = "not tried: "


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attack with its outcome."""

    layer: Layer
    """The layer that must stop it."""
    via: str
    what: str
    got_through: bool
    outcome: str


@dataclass(slots=True)
class Proof:
    """All attempts of a run, in order."""

    attempts: list[Attempt] = field(default_factory=list)

    @property
    def breaches(self) -> list[Attempt]:
        """Attempts that got through."""
        return [attempt for attempt in self.attempts if attempt.got_through]

    @property
    def not_tried(self) -> list[Attempt]:
        """Attacks that could not be made."""
        return [attempt for attempt in self.attempts if attempt.outcome.startswith(NOT_TRIED)]

    @property
    def broken_layers(self) -> list[Layer]:
        """Layers that let at least one attempt through."""
        broken = {attempt.layer for attempt in self.breaches}
        return [layer for layer in Layer if layer in broken]
