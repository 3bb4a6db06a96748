"""Import of a file of another system: its people are assigned, and its lines are stored.

A job previews or imports an uploaded file, and deletes it after a day.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone

from konstruct.orchestrator import usage
from konstruct.orchestrator.agents import find_agents
from konstruct.orchestrator.exceptions import ImportRefused, WrongState
from konstruct.orchestrator.history_import import assistants, chats, files, lines
from konstruct.orchestrator.messages import attachment_note
from konstruct.orchestrator.models import HISTORY_IMPORTS, HistoryImport
from memory.arguments import time_zones
from memory.conversations.transcript import DerivedIds
from memory.exceptions import InvalidArgument
from memory.facts import LongTermMemory, embed_facts, rows
from memory.models import MemoryEntry
from tenants import context, exceptions, jobs, transaction
from tenants.audit import access_log, changes
from tenants.audit.models import Action, ActorKind
from tenants.audit.people import PersonBeingErased, hold_people
from tenants.limits.quotas import QuotaExceeded
from tenants.outbox import events, models as outbox

FORMATS: Final[dict[str, Callable[..., files.Found]]] = {
    "slack": chats.slack,
    "whatsapp": chats.whatsapp,
    "telegram": chats.telegram,
    "chatgpt": assistants.chatgpt,
    "sharegpt": assistants.sharegpt,
    "mem0": assistants.mem0,
    "zep": assistants.zep,
    "csv": assistants.table,
    "transcript": assistants.transcript,
}
BATCH: Final = 500
# A document of a report lists so many conversations, authors and problems.
MAX_LISTED: Final = 1000
# Lines that are read to recognize a format.
_FIRST_LINES: Final = 20


@dataclass(frozen=True)
class Options:
    """How a source is read, and who is who in it.

    Raises:
        ImportRefused: a value is not one of the possible ones.
    """

    format: str = ""
    """One of FORMATS; "": recognized from the content."""
    agent: str = ""
    """Name or id of the agent that has written what agents wrote, and has the memory."""
    user_id: str = ""
    """The user of texts without a user in the source, such as a chat with an assistant."""
    thread_id: str = ""
    """The conversation of what has none. Default: the file's name; of JSON lines the user's id."""
    people: Mapping[str, str] = field(default_factory=dict)
    """Ids of users by names, or ids, of the source."""
    agent_names: Sequence[str] = ()
    """Names, or ids, of the source that are the agent's."""
    time_zone: str = ""
    """Of times without one."""
    date_order: str = ""
    """One of ORDERS, for dates that can be read in two ways."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Names of columns of CSV, by the keys of COLUMNS."""

    def __post_init__(self) -> None:
        checks: list[tuple[str, str, Mapping[str, Any]]] = [
            ("format", self.format, FORMATS),
            ("date order", self.date_order, chats.ORDERS),
            *(("column", column, assistants.COLUMNS) for column in self.columns),
        ]
        for name, value, known in checks:
            if value and value not in known:
                raise ImportRefused(f"The {name} {value!r} is none of {', '.join(known)}.")
        if self.time_zone and self.time_zone not in time_zones():
            raise ImportRefused(
                f"The time zone {self.time_zone!r} is unknown: give one such as Europe/Berlin."
            )


@dataclass
class Report:
    """What was imported, or would be."""

    format: str
    say: Callable[[files.Problem], object] = lambda problem: None
    """Called with each part that is left out."""
    counts: Counter[str] = field(default_factory=Counter)
    threads: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By conversation: number of messages, first and last time."""
    authors: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: number of messages, and the user that they are assigned to; "": none."""
    problems: list[files.Problem] = field(default_factory=list)

    def leave_out(self, problem: files.Problem, kind: str = "left_out") -> None:
        """Note a part that is not imported."""
        self.counts[kind] += 1
        if len(self.problems) < MAX_LISTED:
            self.problems.append(problem)
        self.say(problem)

    def add(self, line: files.Line, result: lines.LineResult) -> None:
        """Note the result of a line."""
        if result.status is lines.ImportStatus.INVALID:
            self.leave_out(files.Problem(line.place, result.error), lines.ImportStatus.INVALID)
            return
        self.counts[result.status] += 1
        if result.message is not None:
            at = result.message.created_at
            thread = self.threads.setdefault(
                result.message.thread_id, {"messages": 0, "first": at, "last": at}
            )
            thread["messages"] += 1
            thread |= {"first": min(thread["first"], at), "last": max(thread["last"], at)}

    def document(self) -> dict[str, Any]:
        """Return the report as JSON. Of each list it has the first MAX_LISTED rows."""
        return {
            "format": self.format,
            "counts": dict(self.counts),
            "conversations": _rows("thread_id", self.threads),
            "authors": _rows("name", self.authors),
            "left_out": [
                {
                    "place": changes.storable(problem.place),
                    "reason": changes.storable(problem.reason),
                }
                for problem in self.problems
            ],
        }


def _rows(key: str, values: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    listed = islice(values.items(), MAX_LISTED)
    return [{key: changes.storable(name), **row} for name, row in listed]


def import_source(
    source: files.Source,
    options: Options,
    *,
    tenant_id: UUID,
    import_id: UUID,
    is_dry_run: bool = False,
    atomic: Callable[[], AbstractContextManager[object]] = transaction.atomic,
    record: Callable[[dict[str, int]], object] = lambda counts: None,
    finish: Callable[[Report], object] = lambda report: None,
    say: Callable[[files.Problem], object] = lambda problem: None,
) -> Report:
    """Store what is valid and assigned in a source, in batches; a repeated import adds the rest.

    Args:
        source: the file.
        options: how it is read.
        tenant_id: the current tenant.
        import_id: the subject of the event `import.done`.
        is_dry_run: each batch is rolled back: the report says what an import would do.
        atomic: opens the transaction of a batch.
        record: logs the results of a batch, in its transaction.
        finish: called in the last transaction, which writes the event, unless it is a dry run.
        say: called with each part that is left out.

    Raises:
        ImportRefused: the source cannot be read, or an option is missing.
        PersonBeingErased: an erasure of a user is requested and not done, or was done since.
        QuotaExceeded: the tenant has no room for more memories.
    """
    report = Report(options.format or recognize(source), say)
    agents = find_agents({options.agent} - {""})
    if options.agent and options.agent not in agents:
        raise ImportRefused(f"No agent has the name or id {options.agent!r}: create it first.")
    agent_id = agents[options.agent].id if options.agent else None
    defaults = {
        "agent": options.agent or None,
        "user_id": options.user_id or None,
        "thread_id": options.thread_id or None,
    }
    ids = DerivedIds(f"file {source.name}")
    # A dry run adds no people, so that it cannot know them again.
    seen: dict[str, str] | None = None if is_dry_run else {}
    assigned = _assign(_parse(source, report.format, options), source, options, report)
    while batch := list(islice(assigned, BATCH)):
        with atomic():
            results: list[lines.LineResult] = []
            for is_fact, same_kind in groupby(batch, key=attrgetter("is_fact")):
                fields = [line.fields for line in same_kind]
                results += (
                    _store_facts(fields, tenant_id=tenant_id, agent_id=agent_id, seen=seen)
                    if is_fact
                    else lines.import_history(
                        fields, tenant_id=tenant_id, defaults=defaults, ids=ids, seen=seen
                    )
                )
            record(dict(Counter(result.status.value for result in results)))
            if is_dry_run:
                transaction.set_rollback(True)
        for line, result in zip(batch, results, strict=True):
            report.add(line, result)
    if not report.counts:
        raise ImportRefused(f"{source.name} has no lines that can be read as {report.format}.")
    with atomic():
        finish(report)
        if not is_dry_run:
            events.record_event(outbox.EventType.IMPORT_DONE, import_id, agent_id=agent_id)
    return report


def recognize(source: files.Source) -> str:
    """Return the format of a source.

    Raises:
        ImportRefused: it is none of FORMATS, or of a part of a format.
    """
    by_name = {PurePosixPath(name).name: name for name in source.texts}
    if "users.json" in by_name:
        return "slack"
    first = by_name.get("conversations.json") or by_name.get("result.json")
    first = first or next(iter(source.texts))
    if source.is_json(first):
        item = next(source.items(first), ("", None))[1]
        if found := _recognize_item(item):
            return found
    else:
        begin = [line for _, line in islice(source.lines(first), _FIRST_LINES)]
        if any(map(chats.is_whatsapp, begin)):
            return "whatsapp"
        if begin and begin[0].lower().startswith("<!doctype html"):
            return "telegram"
        cells = set(re.split(r"[,;\t|]", begin[0].lower())) if begin else set()
        if first.lower().endswith(".csv") or cells & set(assistants.COLUMNS["text"]):
            return "csv"
    raise ImportRefused(
        f"{first} is none of the known formats: name the format ({', '.join(FORMATS)})."
    )


def _recognize_item(item: Any) -> str:
    """Return the format of the first object of a JSON document, or of JSON lines; else ""."""
    if not isinstance(item, dict):
        return ""
    lists = (part for part in item.values() if isinstance(part, list) and part)
    inner: Any = next(lists, [{}])[0]
    messages = item.get("messages")
    message = messages[0] if isinstance(messages, list) and messages else {}
    message = message if isinstance(message, dict) else {}
    if "mapping" in item:
        return "chatgpt"
    if "chats" in item or "date" in message:
        return "telegram"
    if files.text_of(item, "memory") or files.text_of(inner, "memory"):
        return "mem0"
    if {"conversations", "conversation"} & item.keys():
        return "sharegpt"
    if {"fact", "facts", "edges", "sessions", "threads", "session_id"} & item.keys() or (
        {"uuid", "role_type"} & set(message)
    ):
        return "zep"
    if "messages" in item:
        return "sharegpt"
    return "transcript" if {"role", "content"} & item.keys() else ""


def pairs_of(texts: Iterable[str]) -> dict[str, str]:
    """Return texts like NAME=VALUE as a mapping. A name may have an equals sign."""
    pairs = {text: text.rpartition("=") for text in texts if text.strip()}
    if wrong := [text for text, (name, _, value) in pairs.items() if not name or not value]:
        raise ImportRefused(f"{wrong[0]!r} is not NAME=VALUE.")
    return {name.strip(): value.strip() for name, _, value in pairs.values()}


def _parse(source: files.Source, format: str, options: Options) -> files.Found:
    if format == "whatsapp":
        return chats.whatsapp(source, date_order=options.date_order)
    if format == "csv":
        return assistants.table(source, columns=options.columns)
    return FORMATS[format](source)


# --- Who is who -----------------------------------------------------------------------------------


def _assign(
    found: files.Found, source: files.Source, options: Options, report: Report
) -> Iterator[files.Line]:
    """Yield lines for rows with a user; leave the others out, with the reason.

    What an agent says belongs to the person who has spoken last in the conversation.
    """
    last: dict[str, str] = {}
    for row in found:
        if isinstance(row, files.Line):
            yield row
            continue
        result = (
            row if isinstance(row, files.Problem) else _line(row, source, options, last, report)
        )
        if isinstance(result, files.Problem):
            report.leave_out(result)
        else:
            yield result


def _line(
    row: files.Row, source: files.Source, options: Options, last: dict[str, str], report: Report
) -> files.Line | files.Problem:
    """Return the line of a row, or why its user is unsure.

    Args:
        last: the user who has spoken last, by conversation; "": one who is not assigned.
    """
    author = row.author.strip(files.MARKS).strip()
    names = [name for name in (row.author_id, author) if name]
    is_agent = row.role == "assistant" or any(name in options.agent_names for name in names)
    owner = options.people.get(row.user_id, row.user_id) if row.user_id else ""
    known = next((options.people[name] for name in names if name in options.people), owner)
    thread = row.thread or options.thread_id or source.title
    problem = ""
    if is_agent:
        user = owner or last.get(thread, options.user_id)
        if not user:
            problem = "the agent answers somebody who is not assigned, or nobody"
    else:
        user = known or ("" if names else options.user_id)
        last[thread] = user
        if not user and names:
            problem = f"{author!r} is neither assigned to a user nor a name of the agent"
        elif not user:
            problem = "its user is not named, and none is given for such texts"
    label = author or ("the agent" if is_agent else row.user_id or "the user")
    assigned = "" if problem else "agent" if is_agent else f"user {user}"
    entry = report.authors.setdefault(label, {"messages": 0, "assigned": ""})
    entry |= {"messages": entry["messages"] + 1, "assigned": entry["assigned"] or assigned}
    content = "\n".join(filter(None, (row.text, attachment_note(row.media))))
    if problem or not content.strip():
        return files.Problem(row.place, problem or "it has no text")
    if not row.is_fact and not options.agent:
        raise ImportRefused("Its messages need an agent: choose one.")
    fields = {
        "content": content,
        "user_id": user,
        "external_id": row.external_id,
        "metadata": dict(row.metadata) or None,
        "created_at": _time(row, options),
    }
    if not row.is_fact:
        role = "assistant" if is_agent else "user"
        fields |= {"role": role, "thread_id": thread, "name": author or None}
    return files.Line(
        row.place, {name: value for name, value in fields.items() if value is not None}, row.is_fact
    )


def _time(row: files.Row, options: Options) -> str | None:
    if row.time is None:
        return None
    if row.time.tzinfo is not None:
        return row.time.isoformat()
    if not options.time_zone:
        raise ImportRefused(
            f"{row.place}: the time {row.time:%Y-%m-%d %H:%M} has no time zone: give one,"
            " such as Europe/Berlin."
        )
    return row.time.replace(tzinfo=ZoneInfo(options.time_zone)).isoformat()


# --- Storing --------------------------------------------------------------------------------------


def _store_facts(
    facts: Sequence[Mapping[str, Any]],
    *,
    tenant_id: UUID,
    agent_id: UUID | None,
    seen: dict[str, str] | None,
) -> list[lines.LineResult]:
    """Store facts with their ids in the other system; return a result for each."""
    results: dict[int, lines.LineResult] = {}
    entries: dict[int, MemoryEntry] = {}
    for index, fields in enumerate(facts):
        try:
            entry = MemoryEntry(
                tenant_id=tenant_id,
                agent_id=agent_id,
                user_id=fields["user_id"],
                content=fields["content"],
                external_id=fields.get("external_id"),
                metadata=fields.get("metadata", {}),
            )
            if "created_at" in fields:
                entry.valid_from = datetime.fromisoformat(fields["created_at"])
            rows.check_entry(entry)
            if rows.existing_entry(entry) is None:
                entries[index] = entry
            else:
                results[index] = lines.LineResult(
                    index, lines.ImportStatus.EXISTS, entry.external_id
                )
        except InvalidArgument as error:
            results[index] = lines.LineResult.invalid(
                index, fields, [lines.LineError("", str(error))]
            )
    if new := list(entries.values()):
        usage.require_room(usage.MEMORY_QUOTAS, memories=len(new))
        embed_facts(new)
        held = hold_people({entry.user_id for entry in new}, agent_ids={agent_id}, since=seen)
        if seen is not None:
            seen.update(held)
        stored = LongTermMemory().remember_all(new)
        usage.count(memories=sum(fact.created for fact in stored))
        for (index, entry), fact in zip(entries.items(), stored, strict=True):
            status = lines.ImportStatus.CREATED if fact.created else lines.ImportStatus.EXISTS
            results[index] = lines.LineResult(index, status, entry.external_id)
    return [results[index] for index in range(len(facts))]


# --- Uploaded files -------------------------------------------------------------------------------

# How long a file that is not imported, and a report, are kept.
KEPT: Final = timedelta(days=1)
MAX_FILE_BYTES: Final = 2_400_000
# The lease of a job ends after TASK_TIME_LIMIT.
MAX_SECONDS: Final = settings.TASK_TIME_LIMIT * 0.8
# Files of a tenant that are not imported yet.
MAX_FILES: Final = 50


def request_import(
    content: bytes, file_name: str, options: Options, *, by: access_log.Actor, is_dry_run: bool
) -> HistoryImport:
    """Store a file, and enqueue its import or its preview. Call it in a transaction.

    Raises:
        ImportRefused: the file is too large, or the tenant has too many files.
        PersonBeingErased: a user of the options is being erased.
        QuotaExceeded: the storage of the tenant is full.
    """
    if len(content) > MAX_FILE_BYTES:
        raise ImportRefused(
            f"The file has more than {MAX_FILE_BYTES:,} bytes: pack it as zip, or let an operator"
            " use manage.py import_history."
        )
    if HistoryImport.objects.exclude(content=b"").count() >= MAX_FILES:
        raise ImportRefused(f"{MAX_FILES} files wait already: import them, or wait for a day.")
    usage.require_storage()
    if not is_dry_run:
        hold_people({options.user_id, *options.people.values()} - {""})
    upload = HistoryImport.objects.create(
        file_name=file_name,
        content=content,
        options=asdict(options),
        is_dry_run=is_dry_run,
        requested_by=by.name,
        actor_kind=by.kind,
        actor_id=by.id,
    )
    HISTORY_IMPORTS.enqueue(upload.pk)
    return upload


def confirm(import_id: UUID) -> None:
    """Enqueue the import of a file whose preview is shown. Call it in a transaction.

    Raises:
        WrongState: it has no preview, or is imported or deleted.
    """
    previewed = HistoryImport.objects.filter(
        pk=import_id, is_dry_run=True, finished_at__isnull=False, error=""
    )
    if not previewed.update(is_dry_run=False, finished_at=None):
        raise WrongState("The file has no preview, or is imported already: send it again.")
    HISTORY_IMPORTS.finish(import_id)
    HISTORY_IMPORTS.enqueue(import_id)


def run(job: UUID | jobs.Lease) -> None:
    """Preview or import a file of the current tenant, or delete one that is a day old.

    After a kill another worker begins anew, and adds what is missing.
    """
    HISTORY_IMPORTS.run(job, _run, on_failure=partial(_record_failure, jobs.key_of(job)))


def _run(lease: jobs.Lease) -> None:
    stored = HistoryImport.objects.filter(pk=lease.key)
    upload = stored.first()
    if upload is None or upload.finished_at is not None:
        with lease.transaction():
            if upload and (left := upload.created_at + KEPT - timezone.now()) > timedelta(0):
                HISTORY_IMPORTS.postpone(lease.key, left)
                return
            stored.delete()
            HISTORY_IMPORTS.finish(lease.key)
        return
    actor = access_log.Actor(ActorKind(upload.actor_kind), upload.actor_id, upload.requested_by)
    is_dry_run, ends_at = upload.is_dry_run, time.monotonic() + MAX_SECONDS

    def check_time() -> None:
        if time.monotonic() > ends_at:
            raise ImportRefused(
                f"It takes more than {MAX_SECONDS / 60:.0f} minutes: divide the file, or let an"
                " operator use manage.py import_history."
            )

    def record(counts: dict[str, int]) -> None:
        # After the users are held, as an erasure does it.
        if stored.select_for_update().values_list("pk").first() is None:
            raise ImportRefused("An erasure has deleted the file: send it again.")
        check_time()
        if not is_dry_run:
            access_log.record_access(Action.IMPORT, "messages", by=actor, counts=counts)

    def finish(report: Report) -> None:
        kept = {} if is_dry_run else {"content": b""}
        stored.update(report=report.document(), finished_at=Now(), **kept)
        HISTORY_IMPORTS.postpone(lease.key, KEPT)

    with files.Source.open(bytes(upload.content), upload.file_name, check_time) as source:
        import_source(
            source,
            Options(**upload.options),
            tenant_id=context.required_tenant_id(),
            import_id=lease.key,
            is_dry_run=is_dry_run,
            atomic=lease.transaction,
            record=record,
            finish=finish,
        )


def _record_failure(import_id: UUID, error: Exception) -> bool:
    """Let the import be tried again; after the last attempt, and if it is refused, end it."""
    is_final = isinstance(error, ImportRefused | PersonBeingErased | QuotaExceeded)
    if (
        not is_final
        and HISTORY_IMPORTS.jobs([import_id]).get().attempts < HISTORY_IMPORTS.max_attempts
    ):
        return HISTORY_IMPORTS.record_failure(import_id, error)
    HistoryImport.objects.filter(pk=import_id).update(
        error=exceptions.reason_of(error), finished_at=Now(), content=b""
    )
    HISTORY_IMPORTS.postpone(import_id, KEPT)
    return True
