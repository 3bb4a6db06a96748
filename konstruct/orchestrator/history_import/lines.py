"""History import: validates the lines of a request or a file one by one, and stores them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.utils.dateparse import parse_datetime

from konstruct.orchestrator import messages, usage
from konstruct.orchestrator.agents import find_agents
from konstruct.orchestrator.extraction.runs import enqueue as enqueue_extraction
from konstruct.orchestrator.models import Agent
from memory import arguments, models, tasks
from memory.conversations import transcript
from memory.exceptions import InvalidArgument
from memory.text.sentences import estimated_pieces
from tenants import jobs, transaction

REQUIRED = ("role", "content")
# Required unless they have a default.
OWNER_FIELDS = ("agent", "user_id")
OPTIONAL = ("external_id", "thread_id", "created_at", "name", "metadata")
FIELDS = (*REQUIRED, *OWNER_FIELDS, *OPTIONAL)
LINE_FORMAT = (
    f"{' and '.join(REQUIRED)}; {' and '.join(OWNER_FIELDS)}, if not said for all lines; and, if"
    f" known, {', '.join(OPTIONAL)}"
)
# Maximum number of reported errors of one line, and their length.
MAX_ERRORS = 10
MAX_DETAIL_CHARACTERS = 200


class ImportStatus(StrEnum):
    """The result of a line."""

    CREATED = "created"
    EXISTS = "exists"
    INVALID = "invalid"


@dataclass(frozen=True)
class LineError:
    """An error of one field of a line; `field` is empty for the line as a whole."""

    field: str
    detail: str


@dataclass(frozen=True)
class LineResult:
    """The result of one line: the stored message, or the errors."""

    index: int
    status: ImportStatus
    external_id: str | None = None
    message: models.Message | None = None
    """The stored message, unless the line is invalid."""
    error: str = ""
    """All errors in one text."""
    errors: tuple[LineError, ...] = ()

    @classmethod
    def invalid(cls, index: int, line: Any, errors: Sequence[LineError]) -> Self:
        """Return the result of an invalid line."""
        reported = tuple(
            LineError(_cut(error.field), _cut(error.detail)) for error in errors[:MAX_ERRORS]
        )
        has_wrong_fields = any(
            error.detail.startswith(("missing:", "unknown:")) for error in reported
        )
        hint = f" (a line has {LINE_FORMAT})" if has_wrong_fields else ""
        sent_id = line.get("external_id") if isinstance(line, Mapping) else None
        return cls(
            index,
            ImportStatus.INVALID,
            external_id=sent_id[: transcript.MAX_EXTERNAL_ID]
            if isinstance(sent_id, str) and arguments.is_unicode(sent_id)
            else None,
            error="; ".join(error.detail for error in reported) + hint,
            errors=reported,
        )


def import_history(
    lines: Sequence[Any],
    *,
    tenant_id: UUID,
    defaults: Mapping[str, str | None] = MappingProxyType({}),
    ids: transcript.DerivedIds | None = None,
    seen: dict[str, str] | None = None,
) -> list[LineResult]:
    """Store every valid line in the transcript; return a result for each line, in order.

    Invalid lines are skipped. The embeddings are computed in the background.

    Args:
        lines: the lines, from JSON.
        tenant_id: the current tenant.
        defaults: values for lines that lack a field, of agent (name or id), user_id and thread_id;
            None: no default. Without a thread, the lines of a user are in one with the user's id.
        ids: computes the ids of lines without `external_id`. Default: from their positions in
            threads.
        seen: see `import_turns`.

    Raises:
        PersonBeingErased: an erasure of a user is requested and not done, or was done since.
    """
    common = {name: value for name, value in defaults.items() if value is not None}
    lines = [{**common, **line} if isinstance(line, Mapping) else line for line in lines]
    named = [line.get("agent") for line in lines if isinstance(line, Mapping)]
    agents = find_agents(
        {
            name
            for name in named
            if isinstance(name, str) and arguments.is_unicode(name) and "\0" not in name
        }
    )
    turns: dict[int, transcript.ImportedTurn] = {}
    results: dict[int, LineResult] = {}
    for index, line in enumerate(lines):
        turn = _turn(line, agents)
        if isinstance(turn, transcript.ImportedTurn):
            turns[index] = turn
        else:
            results[index] = LineResult.invalid(index, line, turn)
    with transaction.atomic():
        usage.require_room(usage.MEMORY_QUOTAS, memories=sum(map(_pieces_of, turns.values())))
        imported = transcript.import_turns(tenant_id, list(turns.values()), ids=ids, seen=seen)
        usage.count(memories=sum(_pieces_of(item.message) for item in imported if item.created))
        new = [item.message for item in imported if item.created]
        extracting = {agent.id for agent in agents.values() if agent.extracts_facts}
        newest: dict[messages.Thread, datetime] = {}
        for message in sorted(new, key=lambda message: message.created_at):
            if message.agent_id in extracting:
                newest[messages.Thread.of(message)] = message.created_at
        enqueue_extraction(tenant_id, newest.keys(), newest)
        if new:
            transaction.on_commit(partial(jobs.enqueue_task, tasks.embed_and_store, str(tenant_id)))
    for index, item in zip(turns, imported, strict=True):
        status = ImportStatus.CREATED if item.created else ImportStatus.EXISTS
        results[index] = LineResult(index, status, item.message.external_id, item.message)
    return [results[index] for index in range(len(lines))]


def _turn(line: Any, agents: Mapping[str, Agent]) -> transcript.ImportedTurn | list[LineError]:
    """Validate a line; return a turn, or all errors."""
    if not isinstance(line, Mapping):
        return [LineError("", f"the line is not an object with {LINE_FORMAT}")]
    errors = [
        LineError(name, f"missing: {name}, which is required")
        for name in (*REQUIRED, *OWNER_FIELDS)
        if name not in line
    ]
    errors += [
        LineError(str(name), f"unknown: {_cut(str(name))}") for name in line if name not in FIELDS
    ]
    values: dict[str, Any] = {}
    for name, check in _CHECKS.items():
        if name in line:
            try:
                values[name] = check(name, line[name])
            except InvalidArgument as error:
                errors.append(LineError(name, str(error)))
    if "agent" in values and values["agent"] not in agents:
        errors.append(
            LineError(
                "agent", f"no agent has the name or id {_cut(values['agent'])!r}; make it first"
            )
        )
    if errors:
        return errors
    return transcript.ImportedTurn(
        agent_id=agents[values.pop("agent")].id,
        **{"external_id": None, "thread_id": values["user_id"], "created_at": None, **values},
    )


def _content(name: str, value: Any) -> str:
    if len(arguments.text_argument(name, value)) > settings.MAX_MESSAGE_CHARACTERS:
        raise InvalidArgument(
            f"{name} has {len(value)} characters, more than {settings.MAX_MESSAGE_CHARACTERS}:"
            " split it"
        )
    return arguments.content_argument(value)


def _moment(name: str, value: Any) -> datetime:
    text = arguments.text_argument(name, value)
    try:
        moment = parse_datetime(text)
        if moment is not None and moment.tzinfo is not None:
            moment = moment.astimezone(UTC)  # Postgres does not support all zones
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise InvalidArgument(f"{name}={text[:80]!r} is not a time such as 2026-03-14T09:30:00Z")
    return arguments.time_argument(name, moment)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "external_id": transcript.external_id_argument,
    "agent": arguments.text_argument,
    "user_id": arguments.new_id_argument,
    "thread_id": arguments.new_id_argument,
    "role": lambda name, value: arguments.role_argument(arguments.text_argument(name, value)),
    "name": arguments.name_argument,
    "content": _content,
    "created_at": _moment,
    "metadata": lambda name, value: transcript.metadata_argument(value),
}


def _cut(text: str) -> str:
    """Return the text, cut to MAX_DETAIL_CHARACTERS, as valid UTF-8."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= MAX_DETAIL_CHARACTERS else f"{text[:MAX_DETAIL_CHARACTERS]}…"


def _pieces_of(turn: transcript.ImportedTurn | models.Message) -> int:
    return estimated_pieces(turn.content, turn.name)
