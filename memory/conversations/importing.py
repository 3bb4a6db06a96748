"""Import of history: turns with their own ids and times, written in bulk."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.utils.timezone import now as time_now

from memory import arguments
from memory.arguments import new_id_argument
from memory.conf import IMPORT_CHANNEL
from memory.conversations import transcript
from memory.conversations.short_term import refresh_window
from memory.exceptions import InvalidArgument
from memory.models import Message
from tenants import transaction
from tenants.audit.people import hold_people
from tenants.context import fetch_all, known_tenant

PREFIX: Final = "derived:"

# The last `most` messages of each thread, newest first.
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


MAX_EXTERNAL_ID = 255


class Thread(NamedTuple):
    """The thread of a turn, with its agent and user."""

    agent_id: UUID
    user_id: str
    thread_id: str


class DerivedIds:
    """Derives external ids for the turns of a history that is imported in several parts.

    Args:
        seed: identifies the whole history, such as its name; "": its threads identify it.
    """

    def __init__(self, seed: str = "") -> None:
        self._seed = seed
        self._last: dict[Thread, str] = {}
        self._seen: Counter[str] = Counter()

    def derive(self, turns: "Sequence[ImportedTurn]") -> list[str]:
        """Return ids for turns of the current tenant without an id, in their order."""
        keys: dict[int, str] = {}
        untimed: dict[Thread, list[int]] = defaultdict(list)
        for index, turn in enumerate(turns):
            words = [turn.thread_id, turn.role, turn.name, turn.content]
            if turn.created_at is not None:
                key = _digest(turn.created_at.astimezone(UTC).isoformat(), *words)
                keys[index] = _digest(key, str(self._seen[key]))
                self._seen[key] += 1
            else:
                thread = Thread(turn.agent_id, turn.user_id, turn.thread_id)
                before = self._last.get(thread, "")
                keys[index] = self._last[thread] = _digest(before, *words)
                untimed[thread].append(index)
        chains = {thread: [keys[index] for index in indexes] for thread, indexes in untimed.items()}
        anchors = dict.fromkeys(chains, self._seed) if self._seed else _find_anchors(chains)
        for thread, indexes in untimed.items():
            for index in indexes:
                keys[index] = _digest(anchors[thread], keys[index])
        return [f"{PREFIX}{keys[index]}" for index in range(len(turns))]


def _find_anchors(chains: Mapping[Thread, Sequence[str]]) -> dict[Thread, str]:
    """Return for each thread the number of the message after which its chain of keys begins.

    If the chain was imported before, it is the message before it; otherwise the thread's last one.
    """
    last = _last_messages((thread, len(chain) + 1) for thread, chain in chains.items())
    return {thread: _find_anchor(chain, last[thread]) for thread, chain in chains.items()}


def _find_anchor(chain: Sequence[str], last: Sequence[tuple[int, str]]) -> str:
    """Return the number of the message after which a chain begins.

    Args:
        chain: the keys of the turns.
        last: numbers and external ids of the thread's last messages, newest first.
    """
    numbers = [str(number) for number, _ in last] + ["0"]
    # The newest message may be any turn of the chain.
    for length in range(min(len(chain), len(last)), 0, -1):
        if last[0][1] == f"{PREFIX}{_digest(numbers[length], chain[length - 1])}":
            return numbers[length]
    return numbers[0]


def _last_messages(limits: Iterable[tuple[Thread, int]]) -> dict[Thread, list[tuple[int, str]]]:
    """Return numbers and external ids of the last messages of threads, newest first."""
    rows = [(*thread, limit) for thread, limit in limits]
    messages: dict[Thread, list[tuple[int, str]]] = {Thread(*row[:3]): [] for row in rows}
    if rows:
        threads = list(messages)
        columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
        for place, number, external_id in fetch_all(_LAST, columns):
            messages[threads[place - 1]].append((number, external_id or ""))
    return messages


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def external_id_argument(name: str, value: str) -> str:
    """Return the id of a message in another system."""
    if len(new_id_argument(name, value)) > MAX_EXTERNAL_ID:
        raise InvalidArgument(f"{name}={value[:80]!r}… is longer than {MAX_EXTERNAL_ID} characters")
    return value


@dataclass(frozen=True, slots=True)
class ImportedTurn:
    """One turn of a history.

    Raises:
        InvalidArgument: a value is invalid; the message names it.
    """

    external_id: str | None
    """Its id in the other system, unique for one agent and user. None: an id is derived."""
    agent_id: UUID
    user_id: str
    thread_id: str
    role: str
    content: str
    created_at: datetime | None
    """Time of the turn; None: now."""
    name: str = ""
    metadata: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("user_id", "thread_id"):
            new_id_argument(name, getattr(self, name))
        if self.external_id is not None:
            external_id_argument("external_id", self.external_id)
        arguments.uuid_argument("agent_id", self.agent_id)
        arguments.role_argument(self.role)
        arguments.name_argument("name", self.name)
        transcript.metadata_argument(self.metadata)
        arguments.content_argument(self.content)
        if self.created_at is not None:
            arguments.time_argument("created_at", self.created_at)

    @property
    def identity(self) -> tuple[UUID, str, str | None]:
        """The values by which a repeated turn is recognized."""
        return self.agent_id, self.user_id, self.external_id


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The message of an imported turn, and whether this import wrote it."""

    message: Message
    created: bool


def import_turns(
    tenant_id: UUID | str,
    turns: Sequence[ImportedTurn],
    *,
    ids: DerivedIds | None = None,
    seen: dict[str, str] | None = None,
) -> list[ImportResult]:
    """Write turns into the transcript, all or none, and queue their embeddings.

    Idempotent by external id: a turn that exists already, or that is repeated, is written once and
    is not changed.

    Args:
        ids: derives ids for turns without one; by default `DerivedIds()`.
        seen: the users of earlier parts of one import, to which these are added. A user that was
            erased meanwhile is refused.

    Returns:
        A result per turn, in their order.

    Raises:
        PersonBeingErased: an erasure of a user is requested and not done, or was done since.
        UnknownTenant: no such tenant.
    """
    with known_tenant(tenant_id), transaction.atomic():
        held = hold_people(
            {turn.user_id for turn in turns},
            agent_ids={turn.agent_id for turn in turns},
            since=seen,
        )
        if seen is not None:
            seen.update(held)
        without_id = [turn for turn in turns if turn.external_id is None]
        derived = iter((ids or DerivedIds()).derive(without_id))
        turns = [
            replace(turn, external_id=next(derived)) if turn.external_id is None else turn
            for turn in turns
        ]
        now = time_now()
        rows: dict[tuple[UUID, str, str | None], Message] = {}
        for turn in turns:
            rows.setdefault(turn.identity, _message(turn, turn.created_at or now))
        # In one order for all imports, so that two imports of the same history cannot deadlock;
        # numbers follow it, so that turns with the same time keep the order of the history.
        by_time = sorted(rows.values(), key=lambda row: row.created_at)
        Message.objects.bulk_create(by_time, ignore_conflicts=True)
        existing = {
            (row.agent_id, row.user_id, row.external_id): row
            for row in Message.objects.filter(
                agent_id__in={row.agent_id for row in by_time},
                user_id__in={row.user_id for row in by_time},
                external_id__in={row.external_id for row in by_time},
            ).only("agent_id", "user_id", "thread_id", "external_id", "created_at")
        }
        new = {row.pk for row in by_time} & {row.pk for row in existing.values()}
        written = [row for row in by_time if row.pk in new]
        transcript.write_attributes(written)
        transcript.record_names(written)
        transcript.enqueue_embeddings(new)
        for agent_id, user_id in {(row.agent_id, row.user_id) for row in written}:
            transaction.on_commit(partial(refresh_window, tenant_id, agent_id, user_id))
    results = []
    for turn in turns:
        message = existing[turn.identity]
        results.append(ImportResult(message, created=message.pk in new))
        new.discard(message.pk)
    return results


def _message(turn: ImportedTurn, created_at: datetime) -> Message:
    return Message(
        agent_id=turn.agent_id,
        user_id=turn.user_id,
        thread_id=turn.thread_id,
        channel=IMPORT_CHANNEL,
        role=turn.role,
        name=turn.name,
        metadata=transcript.metadata_argument(turn.metadata),
        content=turn.content,
        created_at=created_at,
        external_id=turn.external_id,
    )
