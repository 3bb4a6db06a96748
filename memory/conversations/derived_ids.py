"""External ids of turns that come without one: what makes a turn the same when it comes again.

A turn with a time is known by its time and its words. A turn without is known by its words, by the
turns without a time before it in its thread, and by where these begin: after a message of the
thread, or at what the caller says. So the same turns again, and the same turns with others after
them, are the same; and so is nobody's second "yes", once something was said in between.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from tenants.context import connection

PREFIX: Final = "derived:"

# The last messages of each thread that is asked for, the newest first; `most` of them.
_LAST: Final = """
    SELECT place, message.number, message.external_id
    FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::int[]) WITH ORDINALITY
        AS asked (agent_id, user_id, thread_id, most, place),
    LATERAL (
        SELECT created_at, number, external_id FROM memory_message AS said
        WHERE said.agent_id = asked.agent_id AND said.user_id = asked.user_id
          AND said.thread_id = asked.thread_id
        ORDER BY said.created_at DESC, said.number DESC LIMIT asked.most
    ) AS message
    ORDER BY place, message.created_at DESC, message.number DESC
"""


class Place(NamedTuple):
    """A thread of a user with an agent."""

    agent_id: UUID
    user_id: str
    thread_id: str


class Said(NamedTuple):
    """A turn without an external id. `at` is its time as text, empty where it has none."""

    place: Place
    role: str
    name: str
    content: str
    at: str


class DerivedIds:
    """Gives external ids to the turns of one history, of which a part comes after the other."""

    def __init__(self, seed: str = "") -> None:
        """`seed`: what stands for the whole history, such as a name; '': its place in threads."""
        self._seed = seed
        self._last: dict[Place, str] = {}
        self._seen: Counter[str] = Counter()

    def of(self, turns: Sequence[Said]) -> list[str]:
        """The ids of turns, in their order, in the tenant that we are in."""
        keys: dict[int, str] = {}
        untimed: dict[Place, list[int]] = defaultdict(list)
        for index, turn in enumerate(turns):
            words = [turn.place.thread_id, turn.role, turn.name, turn.content]
            if turn.at:
                key = _digest(turn.at, *words)
                keys[index] = _digest(key, str(self._seen[key]))
                self._seen[key] += 1
            else:
                before = self._last.get(turn.place, "")
                keys[index] = self._last[turn.place] = _digest(before, *words)
                untimed[turn.place].append(index)
        chains = {place: [keys[index] for index in of] for place, of in untimed.items()}
        begins = dict.fromkeys(chains, self._seed) if self._seed else _begins(chains)
        for place, of in untimed.items():
            for index in of:
                keys[index] = _id_at(begins[place], keys[index])
        return [f"{PREFIX}{keys[index]}" for index in range(len(turns))]


def _begins(chains: Mapping[Place, Sequence[str]]) -> dict[Place, str]:
    """After which message each chain begins: where it stands already, else after the last one."""
    last = _last_messages((place, len(chain) + 1) for place, chain in chains.items())
    return {place: _begin(chain, last[place]) for place, chain in chains.items()}


def _begin(chain: Sequence[str], last: Sequence[tuple[int, str]]) -> str:
    """`last`: numbers and external ids of the thread's last messages, the newest first."""
    numbers = [str(number) for number, _ in last] + ["0"]
    for stand in range(min(len(chain), len(last)), 0, -1):
        if last[0][1] == f"{PREFIX}{_id_at(numbers[stand], chain[stand - 1])}":
            return numbers[stand]
    return numbers[0]


def _last_messages(asked: Iterable[tuple[Place, int]]) -> dict[Place, list[tuple[int, str]]]:
    wanted = [(*place, most) for place, most in asked]
    found: dict[Place, list[tuple[int, str]]] = {Place(*each[:3]): [] for each in wanted}
    if wanted:
        places = list(found)
        columns: list[Any] = [list(column) for column in zip(*wanted, strict=True)]
        with connection.cursor() as cursor:
            cursor.execute(_LAST, columns)
            for place, number, external_id in cursor.fetchall():
                found[places[place - 1]].append((number, external_id or ""))
    return found


def _id_at(begin: str, key: str) -> str:
    return _digest(begin, key)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
