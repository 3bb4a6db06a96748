"""What a proof of isolation says. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Wall(StrEnum):
    """What stands between two tenants."""

    SCHEMA = "schema"
    POLICY = "row-level security"
    ROLE = "role"
    PIN = "pinned tenant"
    KEYS = "keys of cache and broker"
    DOOR = "hosts, cookies and API keys"


# How the outcome of an attack begins that could not be made: it proves nothing.
NOT_TRIED = "not tried: "


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attack, or one look at how Postgres is configured."""

    wall: Wall
    """The wall that is to stop it."""
    via: str
    what: str
    got_through: bool
    outcome: str


@dataclass(slots=True)
class Proof:
    """All attempts, in their order."""

    attempts: list[Attempt] = field(default_factory=list)

    @property
    def breaches(self) -> list[Attempt]:
        """What should have been stopped."""
        return [attempt for attempt in self.attempts if attempt.got_through]

    @property
    def not_tried(self) -> list[Attempt]:
        """Attacks that could not be made."""
        return [each for each in self.attempts if each.outcome.startswith(NOT_TRIED)]

    @property
    def walls_gone(self) -> list[Wall]:
        """Walls that did not stop something that is theirs to stop."""
        gone = {attempt.wall for attempt in self.breaches}
        return [wall for wall in Wall if wall in gone]

    @property
    def held(self) -> Counter[Wall]:
        """How much each wall has stopped."""
        return Counter(attempt.wall for attempt in self.attempts if not attempt.got_through)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "attempts": len(self.attempts),
            "breaches": len(self.breaches),
            "not_tried": len(self.not_tried),
            "walls": {wall: "gone" if wall in self.walls_gone else "holds" for wall in Wall},
            "each": [
                {
                    "wall": attempt.wall,
                    "via": attempt.via,
                    "what": attempt.what,
                    "got_through": attempt.got_through,
                    "outcome": attempt.outcome,
                }
                for attempt in self.attempts
            ],
        }
