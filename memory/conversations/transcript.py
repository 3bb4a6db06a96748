"""The transcript: every turn, verbatim. A turn is written before anything else happens with it.

With it are written the speaker's name, the values of its metadata, and its embedding job. If the
channel shares threads, the turn is appended to the window of its thread. A history is imported in
bulk, as turns with their own ids and times.
"""

import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

from django.db import IntegrityError
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils.timezone import now as time_now

from memory import arguments, conf
from memory.arguments import uuid_argument
from memory.conversations import short_term, window_store
from memory.exceptions import InvalidArgument
from memory.models import Conversation, ConversationItem, Message, MessageAttribute, Role
from memory.models.attributes import attributes_of, metadata_values, with_metadata
from memory.text.lexical import fold
from tenants import traces, transaction
from tenants.audit.people import hold_people
from tenants.context import asynchronous, execute, fetch_all, known_tenant, tenant_scope
from tenants.jobs import JobKind

# Postgres' clock may have been set back since the last turn of the conversation, or since its last
# clear: then this turn gets the time of that one, so that it is after it.
_NOW = """greatest(
    now(),
    (SELECT max(created_at) FROM memory_message
     WHERE ((agent_id = %s AND user_id = %s) OR thread_id = %s)
       AND created_at > now() AND created_at < now() + interval '1 day'),
    (SELECT max(created_at) FROM memory_windowclear
     WHERE agent_id = %s AND user_id = %s
       AND created_at > now() AND created_at < now() + interval '1 day')
)"""


def record_message(
    *,
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    thread_id: str,
    channel: str,
    role: str,
    content: str,
    name: str = "",
    idempotency_key: str | None = None,
    external_id: str | None = None,
    in_reply_to: UUID | str | None = None,
    answered_by: UUID | str | None = None,
    created_at: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
    usage: Mapping[str, int] | None = None,
    finish_reason: str = "",
    appended: bool = False,
    may_exist: bool = True,
    job: tuple[JobKind, UUID] | None = None,
) -> tuple[Message, bool]:
    """Write a turn, and its embedding job, in one transaction.

    It can be repeated: if a message with this idempotency key, this external id (of this agent and
    user) or this `in_reply_to` exists, that message is returned and nothing is written.

    Args:
        answered_by: the agent that wrote this reply, which may be in another agent's thread.
        created_at: the original time, for imported turns; by default now(), by Postgres,
            or the time of the last turn or clear of the conversation if that is later.
        metadata: labels of the program, up to the size in memory.conf.
        usage: tokens that the language model reports for this reply.
        finish_reason: why the language model ended this reply: "stop", "length" or
            "content_filter"; empty if it wrote none.
        appended: True if the caller appends the turn to the window (`short_term.append_turns`).
            Otherwise a window in the cache is refreshed after a reply.
        may_exist: False if the caller has checked that there is no such message: it is written
            without a savepoint, and an error ends the caller's transaction.
        job: the kind and the lane of another job of the turn; None: there is no other.

    Returns:
        The message, and whether it is new.

    Raises:
        InvalidArgument: a value cannot be stored; the message names it.
        PersonBeingErased: an erasure of the user is requested, and not done yet.
        UnknownTenant: no such tenant.
    """
    message = Message(
        agent_id=uuid_argument("agent_id", agent_id),
        user_id=arguments.new_id_argument("user_id", user_id),
        thread_id=arguments.new_id_argument("thread_id", thread_id),
        channel=arguments.new_id_argument("channel", channel),
        role=arguments.role_argument(role),
        name=arguments.text_argument("name", name),
        content=arguments.text_argument("content", content),
        idempotency_key=_key_argument("idempotency_key", idempotency_key),
        external_id=_key_argument("external_id", external_id),
        in_reply_to_id=None if in_reply_to is None else uuid_argument("in_reply_to", in_reply_to),
        answered_by_id=None if answered_by is None else uuid_argument("answered_by", answered_by),
        metadata=metadata_argument(metadata),
        usage=None if usage is None else dict(usage),
        finish_reason=arguments.text_argument("finish_reason", finish_reason),
    )
    if created_at is not None:
        message.created_at = arguments.time_argument("created_at", created_at)
    else:
        scope = (message.agent_id, message.user_id)
        now: Any = RawSQL(_NOW, (*scope, message.thread_id, *scope))  # noqa: S611
        message.created_at = now
    unique = (message.idempotency_key, message.external_id, message.in_reply_to_id)
    try:
        is_repeatable = may_exist and unique != (None, None, None)
        with known_tenant(tenant_id, savepoint=is_repeatable), transaction.atomic(savepoint=False):
            hold_people([message.user_id], agent_ids=[message.agent_id])
            message.save(force_insert=True)
            write_attributes([message])
            record_names([message])
            enqueue_embeddings([message.pk], delay=conf.OUTBOX_GRACE, job=job)
            if message.role == Role.ASSISTANT and not appended:
                transaction.on_commit(
                    partial(short_term.refresh_window, tenant_id, message.agent_id, message.user_id)
                )
            if message.channel in window_store.shared_channels():
                transaction.on_commit(partial(window_store.append_to_thread, tenant_id, message))
    except IntegrityError:
        if not may_exist:
            raise
        with tenant_scope(tenant_id):
            existing = _existing(message)
        if existing is None:
            raise
        return existing, False
    return message, True


arecord_message = asynchronous(record_message)


def _key_argument(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    arguments.id_argument(name, value)
    if len(value) > 255:
        raise InvalidArgument(f"{name}={value[:80]!r}… is longer than 255 characters")
    return value


def _existing(message: Message) -> Message | None:
    """Return the message that has a unique value of this one already."""
    has_same_value = Q(pk__in=[])
    if message.in_reply_to_id is not None:
        has_same_value |= Q(in_reply_to=message.in_reply_to_id)
    if message.idempotency_key is not None:
        has_same_value |= Q(idempotency_key=message.idempotency_key)
    if message.external_id is not None:
        has_same_value |= Q(
            agent_id=message.agent_id, user_id=message.user_id, external_id=message.external_id
        )
    return Message.objects.filter(has_same_value).first()


# --- Names of people, by which they are searched --------------------------------------------------

# Longer texts are no names of people, and do not fit into the index.
MAX_NAME_CHARACTERS: Final = 200
_RECORD_NAMES: Final = """
INSERT INTO memory_personname (user_id, name, folded, first_seen)
SELECT DISTINCT ON (user_id, name) user_id, name, folded, coalesce(sent_at, now())
FROM unnest(
    %(users)s::text[], %(names)s::text[], %(folded)s::text[], %(times)s::timestamptz[]
) AS said (user_id, name, folded, sent_at)
ORDER BY user_id, name, sent_at
ON CONFLICT DO NOTHING
"""


def record_names(messages: Iterable[Message]) -> None:
    """Write the names of the users of messages of the current tenant, each once.

    Call it in the transaction that writes the messages. The statement is sent with the next one.
    """
    rows = [
        # Postgres sets the time of a message that has an expression instead.
        (
            *(message.user_id, message.name, fold(message.name)),
            message.created_at if isinstance(message.created_at, datetime) else None,
        )
        for message in messages
        if message.role == Role.USER
        and not arguments.is_blank(message.name)
        and len(message.name) <= MAX_NAME_CHARACTERS
    ]
    if rows:
        columns = zip(*rows, strict=True)
        values = dict(zip(("users", "names", "folded", "times"), map(list, columns), strict=True))
        execute(_RECORD_NAMES, values)


# --- Metadata: labels of programs, by which lists and recall are filtered -------------------------


def metadata_argument(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a small JSON object, by the rules of facts' metadata; None if it is empty."""
    if metadata is None:
        return None
    metadata_values(metadata)
    size = len(json.dumps(metadata, ensure_ascii=False, default=list).encode())
    if size > conf.MAX_MESSAGE_METADATA_BYTES:
        raise InvalidArgument(
            f"metadata has {size} bytes as JSON, more than {conf.MAX_MESSAGE_METADATA_BYTES}; leave"
            " some out"
        )
    return dict(metadata) or None


def filter_by_metadata(messages: "QuerySet[Message]", filters: Mapping[str, Any]) -> Any:
    """Return the messages with metadata that match: see `memory.models.attributes`."""
    return with_metadata(messages, filters, MessageAttribute, "message_id")


def write_attributes(messages: Iterable[Message]) -> None:
    """Write the values of new messages' metadata into the table with b-tree indexes."""
    MessageAttribute.objects.bulk_create(
        attribute
        for message in messages
        if message.metadata
        for attribute in attributes_of(MessageAttribute, message.metadata, message_id=message.pk)
    )


# --- Copies of turns for another agent that has answered in an agent's thread ---------------------

# A scope of memory belongs to one agent and one user. If an agent has answered in another's thread,
# the exchange becomes its own memory as a copy, of the channel `handover`: recall finds it, the
# agent's window has it, and it is erased, moved and exported like any message.


_COPIED: Final = (
    *("user_id", "thread_id", "role", "name", "content", "created_at"),
    *("answered_by_id", "metadata"),
)


def copy_id(message_id: UUID | str, agent_id: UUID) -> UUID:
    """Return the id of an agent's copy of a message."""
    return uuid5(agent_id, str(message_id))


def copy_for_agent(message_ids: Iterable[UUID], agent_id: UUID) -> list[Message]:
    """Copy messages of the current tenant for an agent, each once; return the new copies.

    They are queued for embedding like every message. Call it in the transaction that makes the
    originals count.
    """
    originals = Message.objects.filter(pk__in=list(message_ids)).order_by("number")
    with transaction.atomic():
        copies = [
            Message(
                id=copy_id(original.pk, agent_id),
                agent_id=agent_id,
                channel=conf.HANDOVER_CHANNEL,
                external_id=f"{conf.HANDOVER_CHANNEL}:{original.pk}",
                **{name: getattr(original, name) for name in _COPIED},
            )
            for original in originals
        ]
        existing = set(
            Message.objects.filter(pk__in=[copy.pk for copy in copies]).values_list("pk", flat=True)
        )
        new = [copy for copy in copies if copy.pk not in existing]
        Message.objects.bulk_create(new)
        write_attributes(new)
        enqueue_embeddings([copy.pk for copy in new])
    return new


# --- The queue of embeddings ----------------------------------------------------------------------

# An embedding is retried until it succeeds: otherwise recall would never find the message.
EMBEDDINGS = JobKind(
    "embedding",
    do="memory.indexing.embed_claimed",
    queue="embeddings",
    max_attempts=sys.maxsize,
    first_backoff=10.0,
    max_backoff=3600.0,
)

_ENQUEUE_EMBEDDINGS = """
WITH queued AS (
    INSERT INTO tenants_job (kind, key, lane, due_at, sweep_at, traceparent)
    SELECT kind, id, lane, statement_timestamp() + delay, statement_timestamp() + delay,
           %(traceparent)s::text
    FROM unnest(%(ids)s::uuid[]) AS id, unnest(
        %(kinds)s::text[], %(lanes)s::uuid[], %(delays)s::interval[]
    ) AS job (kind, lane, delay)
    ON CONFLICT DO NOTHING
)
INSERT INTO memory_pendingembedding (message_id)
SELECT id FROM unnest(%(ids)s::uuid[]) AS id
ON CONFLICT DO NOTHING
"""


def enqueue_embeddings(
    message_ids: Collection[UUID],
    *,
    delay: timedelta = timedelta(0),
    job: tuple[JobKind, UUID] | None = None,
) -> None:
    """Enqueue the embeddings of messages of the current tenant that are not queued yet.

    Call it in the transaction that writes the messages. It wakes no worker for embeddings.

    Args:
        message_ids: of the messages.
        delay: time until the sweep wakes a worker. The caller sends its own task before that.
        job: the kind and the lane of another job of each message. It is due immediately.
    """
    if not message_ids:
        return
    jobs: list[tuple[JobKind, UUID | None, timedelta]] = [(EMBEDDINGS, None, delay)]
    if job is not None:
        jobs.append((*job, timedelta(0)))
        job[0].wake_on_commit()
    kinds, lanes, delays = zip(*jobs, strict=True)
    values = {
        "ids": list(message_ids),
        "kinds": [kind.name for kind in kinds],
        "lanes": list(lanes),
        "delays": list(delays),
        "traceparent": traces.traceparent(),
    }
    execute(_ENQUEUE_EMBEDDINGS, values)


# --- What programs keep of a conversation ---------------------------------------------------------

# Beside its title and metadata these are items: the data of a framework's runs, lossless, in the
# order of adding. A framework reads them before a run, adds to them after it, and removes the
# newest. Messages to be remembered are turns too, and stay when an item is removed.


def add_items(
    agent_id: UUID,
    user_id: str,
    thread_id: str,
    items: Iterable[tuple[Mapping[str, Any], UUID | None]],
) -> None:
    """Add items to a conversation of the current tenant, all or none.

    Args:
        items: each with the id of its message in the transcript, if it has one.

    Raises:
        InvalidArgument: an item is no JSON.
        PersonBeingErased: an erasure of the user is requested, and not done yet.
    """
    items = list(items)
    # Whoever wrote the message of an item in this transaction holds the user already.
    if not any(message_id for _, message_id in items):
        hold_people([user_id], agent_ids=[agent_id])
    conversation = {"agent_id": agent_id, "user_id": user_id, "thread_id": thread_id}
    ConversationItem.objects.bulk_create(
        ConversationItem(**conversation, item=_json_text(item), message_id=message_id)
        for item, message_id in items
    )


def lock_conversation(agent_id: UUID, user_id: str, thread_id: str) -> Conversation:
    """Return the row of a conversation, which is made if there is none, locked until the
    transaction ends.

    Raises PersonBeingErased if an erasure of the user is requested, and not done yet.
    """
    hold_people([user_id], agent_ids=[agent_id])
    conversation = {"agent_id": agent_id, "user_id": user_id, "thread_id": thread_id}
    Conversation.objects.bulk_create([Conversation(**conversation)], ignore_conflicts=True)
    return Conversation.objects.select_for_update(no_key=True).get(**conversation)


def _json_text(item: Mapping[str, Any]) -> str:
    """Return JSON without raw NUL characters; UTF-8 unless it contains lone surrogates."""
    try:
        text = json.dumps(item, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise InvalidArgument(
            "an item holds a number that no float can hold, such as 1e400: send it as text"
        ) from error
    return text if arguments.is_unicode(text) else json.dumps(item)


# --- Import of a history -------------------------------------------------------------------------

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
    # Numbers and external ids of the last messages, newest first.
    last: dict[Thread, list[tuple[int, str]]] = {thread: [] for thread in chains}
    threads = [(*thread, len(chain) + 1) for thread, chain in chains.items()]
    columns: list[Any] = [list(column) for column in zip(*threads, strict=True)]
    for place, number, external_id in fetch_all(_LAST, columns) if columns else ():
        last[Thread(*threads[place - 1][:3])].append((number, external_id or ""))
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


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def external_id_argument(name: str, value: str) -> str:
    """Return the id of a message in another system."""
    if len(arguments.new_id_argument(name, value)) > MAX_EXTERNAL_ID:
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
            arguments.new_id_argument(name, getattr(self, name))
        if self.external_id is not None:
            external_id_argument("external_id", self.external_id)
        uuid_argument("agent_id", self.agent_id)
        arguments.role_argument(self.role)
        arguments.name_argument("name", self.name)
        metadata_argument(self.metadata)
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
        write_attributes(written)
        record_names(written)
        enqueue_embeddings(new)
        for agent_id, user_id in {(row.agent_id, row.user_id) for row in written}:
            transaction.on_commit(partial(short_term.refresh_window, tenant_id, agent_id, user_id))
    results = []
    for turn in turns:
        message = existing[turn.identity]
        results.append(ImportResult(message, created=message.pk in new))
        new.discard(message.pk)
    return results


def _message(turn: ImportedTurn, created_at: datetime) -> Message:
    values = {field.name: getattr(turn, field.name) for field in fields(turn)}
    values |= {"created_at": created_at, "metadata": metadata_argument(turn.metadata)}
    return Message(channel=conf.IMPORT_CHANNEL, **values)
