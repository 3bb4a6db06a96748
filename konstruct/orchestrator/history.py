"""History import: lines as programs and files have them, each checked by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.dateparse import parse_datetime

from konstruct.orchestrator.agents import find_agent
from konstruct.orchestrator.bell import ring
from konstruct.orchestrator.exceptions import AgentNotFound
from memory.exceptions import InvalidArgument
from memory.importing import ImportedTurn, import_turns
from memory.tasks import embed_and_store

REQUIRED = ("external_id", "agent", "user_id", "thread_id", "role", "content", "created_at")
OPTIONAL = ("name",)


class Outcome(StrEnum):
    """What became of a line."""

    CREATED = "created"
    EXISTS = "exists"
    INVALID = "invalid"


@dataclass(frozen=True)
class LineResult:
    """The answer to one line: where it stands, or why it could not be taken."""

    index: int
    status: Outcome
    external_id: str | None = None
    message_id: UUID | None = None
    error: str = ""


def import_history(lines: Sequence[Any], *, tenant_id: UUID) -> list[LineResult]:
    """Write every line that is right into the transcript; answer for each of them, in order.

    A line that is wrong keeps no other from being written. The embeddings follow in bulk.
    """
    agents: dict[str, UUID] = {}
    turns: dict[int, ImportedTurn] = {}
    results: dict[int, LineResult] = {}
    for index, line in enumerate(lines):
        try:
            turns[index] = _turn(line, agents)
        except (InvalidArgument, AgentNotFound) as error:
            results[index] = LineResult(
                index, Outcome.INVALID, external_id=_external_id(line), error=str(error)
            )
    with transaction.atomic():
        imported = import_turns(tenant_id, list(turns.values()))
        if any(each.created for each in imported):
            transaction.on_commit(partial(ring, embed_and_store, str(tenant_id)))
    for (index, turn), each in zip(turns.items(), imported, strict=True):
        status = Outcome.CREATED if each.created else Outcome.EXISTS
        results[index] = LineResult(index, status, turn.external_id, each.message_id)
    return [results[index] for index in range(len(lines))]


def _turn(line: Any, agents: dict[str, UUID]) -> ImportedTurn:
    """Check a line. `agents` remembers the ids of those that were looked up."""
    if not isinstance(line, Mapping):
        raise InvalidArgument(f"the line is not an object with {', '.join(REQUIRED)}")
    missing = [name for name in REQUIRED if name not in line]
    unknown = [str(name) for name in line if name not in (*REQUIRED, *OPTIONAL)]
    if missing or unknown:
        known = ", ".join((*REQUIRED, *OPTIONAL))
        what = "; ".join(
            f"{words}: {', '.join(names)}"
            for words, names in (("missing", missing), ("unknown", unknown))
            if names
        )
        raise InvalidArgument(f"{what} (a line has {known})")
    for name, value in line.items():
        if not isinstance(value, str):
            raise InvalidArgument(f"{name}={value!r} is not text")
    if len(line["content"]) > settings.MAX_MESSAGE_CHARACTERS:
        raise InvalidArgument(
            f"content has {len(line['content'])} characters, more than "
            f"{settings.MAX_MESSAGE_CHARACTERS}: split it"
        )
    agent = line["agent"]
    if agent not in agents:
        agents[agent] = find_agent(agent).id
    return ImportedTurn(
        external_id=line["external_id"],
        agent_id=agents[agent],
        user_id=line["user_id"],
        thread_id=line["thread_id"],
        role=line["role"],
        name=line.get("name", ""),
        content=line["content"],
        created_at=_moment(line["created_at"]),
    )


def _moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
        if moment is not None and moment.tzinfo is not None:
            moment = moment.astimezone(UTC)  # Postgres does not know all zones
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise InvalidArgument(
            f"created_at={text[:80]!r} is not a time such as 2026-03-14T09:30:00Z"
        )
    return moment


def _external_id(line: Any) -> str | None:
    value = line.get("external_id") if isinstance(line, Mapping) else None
    return value if isinstance(value, str) else None
