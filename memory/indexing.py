"""Writes the index rows of a message: vectors of its sentences, weights of its words, and features
for recall.

A worker does it in batches, from the queue of embeddings. A batch has three steps: a transaction
leases its jobs, the model computes outside of any, and a transaction writes the vectors and words
of the messages that are still leased, and removes their jobs. A killed worker leaves all of a batch
or nothing, and its leases end like those of other jobs. After a failure, or the death of a worker,
a message is tried alone from then on, so that it fails no other message.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Case, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Least, Now

from memory import exceptions, models
from memory.conf import OUTBOX_BATCH, OUTBOX_TASK_LIMIT
from memory.conversations.transcript import EMBEDDINGS
from memory.embedding.embedder import Embedder, Vectors, get_embedder
from memory.fields import array_literal, vectors_literal
from memory.models import IndexedMessage, Message, PendingEmbedding, Role, scope_number
from memory.text import lexical, sentences
from tenants import metrics, traces, transaction
from tenants.audit.people import NO_LOCALE, locales_of
from tenants.context import connection, execute, known_tenant, required_tenant_id, tenant_scope
from tenants.exceptions import detail_of, reason_of
from tenants.jobs import Lease
from tenants.models import JobQuerySet

logger = logging.getLogger(__name__)

Piece = tuple[Message, int, str]
"""A message, the position of one of its pieces, and the text of that."""

# The number of turns that decide the language of a message that does not show it.
TURNS_BEFORE = 6
# The maximum number of vectors of one statement.
MAX_VECTORS = 1024
# The names of speakers without a name.
UNNAMED = {"user": "User", "assistant": "Assistant"}


def subject_of(name: str, role: str) -> str:
    """Return the name of the speaker of a message."""
    return " ".join(name.split()) or UNNAMED[role]


def subject_word(subject: str) -> str:
    """Return the word with which a question names a speaker: the first word of the name."""
    return next(iter(lexical.words(subject)), "")


def lexemes_of(
    name: str, role: str, content: str, created_at: datetime, latin: lexical.Language | None = None
) -> list[str]:
    """Return the lexemes of a message, with repetitions: of its text, speaker and date.

    The date is that of the time zone of `created_at`.
    """
    return [
        *lexical.lexemes(f"{subject_of(name, role)} {content}", latin),
        lexical.SPEAKER_TERMS[role],
        *lexical.date_lexemes(created_at),
    ]


class Embedded(NamedTuple):
    """The pieces of messages with their vectors."""

    pieces: list[Piece]
    batches: list[tuple[list[int], Vectors]]
    """Positions in `pieces`, and their vectors."""
    version: str


def embed_messages(messages: Iterable[Message], embedder: Embedder) -> Embedded:
    """Return the vectors of messages. Call it outside of a transaction: it can take seconds."""
    pieces = [
        (message, position, piece)
        for message in messages
        for position, piece in enumerate(
            sentences.cut_pieces(
                message.content,
                subject_of(message.name, message.role),
                count_tokens=embedder.count_tokens,
                max_tokens=embedder.max_tokens,
            )
        )
    ]
    batches = embedder.encode_batches([piece for _, _, piece in pieces])
    return Embedded(pieces, list(batches), embedder.version)


def index_messages(messages: Sequence[Message], embedded: Embedded | None = None) -> None:
    """Index messages of the current tenant, inside the caller's transaction.

    It can be repeated. Rows of scopes and words are written in the order of their keys, so that
    writers in the same scope do not deadlock. Vectors belong to these messages only, which the
    caller has locked.

    Args:
        messages: the messages.
        embedded: vectors of these and other messages; None: they are computed.
    """
    messages = sorted(messages, key=lambda message: message.number)
    index_words(messages)
    _write_vectors(messages, embedded or embed_messages(messages, get_embedder()))


def index_words(messages: Sequence[Message]) -> None:
    """Index the words of messages, sorted by number, inside the caller's transaction."""
    agents = lexical.locales_of_agents({message.agent_id for message in messages})
    users = locales_of({message.user_id for message in messages})
    times: list[datetime] = []
    lexemes: list[list[str]] = []
    for message in messages:
        language, time_zone = agents.get(message.agent_id, NO_LOCALE)
        user = users.get(message.user_id, NO_LOCALE)
        latin = lexical.latin_by_tag(language or user.language) or _language_before(message)
        times.append(message.created_at.astimezone(user.zone(time_zone)))
        lexemes.append(lexemes_of(message.name, message.role, message.content, times[-1], latin))
    _write_scopes(messages)
    IndexedMessage.objects.bulk_create(
        (
            IndexedMessage(
                message_number=message.number,
                scope_id=scope_number(message.agent_id, message.user_id),
                message_id=message.id,
                session=models.session_number(message.thread_id, time),
                created_at=message.created_at,
                subject=lexical.lexeme_hash(subject_word(subject_of(message.name, message.role))),
                by_user=message.role == Role.USER,
                words=sentences.count_words(message.content),
                has_time=lexical.has_time_word(message.content),
                asks=sentences.only_asks(message.content),
                lexemes=len(of_message),
            )
            for message, time, of_message in zip(messages, times, lexemes, strict=True)
        ),
        ignore_conflicts=True,
    )
    _write_postings(messages, lexemes)


def _language_before(message: Message) -> lexical.Language | None:
    """Return the language of the turns before a message that does not show its own."""
    if lexical.shows_language(message.content):
        return None
    earlier = Message.objects.filter(
        agent_id=message.agent_id,
        user_id=message.user_id,
        thread_id=message.thread_id,
        created_at__lte=message.created_at,
    ).exclude(pk=message.pk)
    texts = earlier.order_by("-created_at", "-number").values_list("content", flat=True)
    words = lexical.analyse(" ".join(texts[:TURNS_BEFORE]))
    return lexical.language_of_latin_words(words)


def _write_scopes(messages: Iterable[Message]) -> None:
    scopes = {
        scope_number(message.agent_id, message.user_id): (message.agent_id, message.user_id)
        for message in messages
    }
    rows = [(number, *pair) for number, pair in sorted(scopes.items())]
    _insert(
        "INSERT INTO memory_scope (id, agent_id, user_id) SELECT * FROM"
        " unnest(%s::bigint[], %s::uuid[], %s::text[]) ON CONFLICT (agent_id, user_id) DO NOTHING",
        [list(column) for column in zip(*rows, strict=True)],
    )


def _write_postings(messages: Iterable[Message], lexemes: Iterable[Sequence[str]]) -> None:
    rows = sorted(
        (
            scope_number(message.agent_id, message.user_id),
            lexical.lexeme_hash(lexeme),
            message.number,
            weight,
        )
        for message, message_lexemes in zip(messages, lexemes, strict=True)
        for lexeme, weight in lexical.term_weights(message_lexemes).items()
    )
    _insert(
        "INSERT INTO memory_posting (scope_id, lexeme_hash, message_number, weight) SELECT * FROM"
        " unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::real[])"
        " ON CONFLICT DO NOTHING",
        [array_literal(column) for column in zip(*rows, strict=True)],
    )


def _write_vectors(messages: Iterable[Message], embedded: Embedded) -> None:
    """Write the vectors of these messages, which may have moved to another user meanwhile."""
    current = {message.id: message for message in messages}
    rows = [
        (current[message.id], position, piece, vector)
        for positions, vectors in embedded.batches
        for (message, position, piece), vector in zip(
            (embedded.pieces[position] for position in positions), vectors, strict=True
        )
        if message.id in current
    ]
    for start in range(0, len(rows), MAX_VECTORS):
        found, positions, pieces, vectors = zip(*rows[start : start + MAX_VECTORS], strict=True)
        _insert(
            "INSERT INTO memory_conversationembedding (agent_id, user_id, message_id, piece,"
            " content, role, embedding, embedding_model) SELECT *, %s FROM unnest(%s::uuid[],"
            " %s::text[], %s::uuid[], %s::int[], %s::text[], %s::text[], %s::vector[])"
            " ON CONFLICT DO NOTHING",
            [
                embedded.version,
                [message.agent_id for message in found],
                [message.user_id for message in found],
                [message.id for message in found],
                list(positions),
                list(pieces),
                [message.role for message in found],
                vectors_literal(vectors),
            ],
        )


def _insert(statement: str, columns: Sequence[Any]) -> None:
    """Run an INSERT … SELECT FROM unnest(…): one statement for any number of rows."""
    if columns:
        execute(statement, columns)


def remove_from_word_index(numbers: Sequence[int], *, scopes: Sequence[int] = ()) -> list[int]:
    """Remove messages from the index of words. Needs the owner's role.

    Args:
        numbers: the numbers of the messages.
        scopes: their scopes. Without scopes, all postings of the tenant are read.

    Returns:
        The numbers of removed postings and messages.
    """
    conditions = {"message_number__in": numbers} | ({"scope_id__in": scopes} if scopes else {})
    with transaction.atomic():
        return [
            model._default_manager.filter(**conditions).delete()[0]
            for model in (models.Posting, IndexedMessage)
        ]


# Messages that are embedded and written in one transaction.
BATCH = 128


def reembed(tenant_id: UUID | str, embedder: Embedder) -> Iterator[tuple[int, int]]:
    """Embed every message of a tenant that the model has not embedded yet, oldest first.

    It can be interrupted and repeated; existing rows are not embedded again. New messages are
    embedded by the queue with the current model: run it again after the switch.

    Yields:
        How many messages are done, and how many there are: before the first batch and after each.
    """
    with known_tenant(tenant_id):
        total = Message.objects.count()
        missing = without_vectors(embedder.version).count()
    done = total - missing
    yield done, total
    after = 0
    # Ends: each batch begins after the last one.
    while True:
        # The tenant is entered again each time: between two batches the caller is in its own scope.
        with known_tenant(tenant_id):
            following = without_vectors(embedder.version).filter(number__gt=after)
            batch = list(following.order_by("number")[:BATCH])
        if not batch:
            return
        embedded = embed_messages(batch, embedder)
        with known_tenant(tenant_id), transaction.atomic():
            # Without those that were deleted meanwhile.
            _write_vectors(Message.objects.filter(pk__in=[row.pk for row in batch]), embedded)
        after = batch[-1].number
        done += len(batch)
        yield done, max(total, done)


def reindex_words(tenant_id: UUID | str) -> Iterator[tuple[int, int]]:
    """Write the words of every indexed message of a tenant again, oldest first, and folded names.

    For words that another version of the product folds, stems or cuts otherwise. It runs beside
    service: a reader sees the old or the new words of a message. It can be interrupted and
    repeated. Needs the owner's role.

    Yields:
        How many messages are done, and how many there are: before the first batch and after each.
    """
    with known_tenant(tenant_id):
        total = Message.objects.count()
        for name in models.PersonName.objects.iterator(chunk_size=1000):
            if name.folded != (folded := lexical.fold(name.name)):
                models.PersonName.objects.filter(pk=name.pk).update(folded=folded)
    done = after = 0
    yield done, total
    # Ends: each batch begins after the last one.
    while True:
        with known_tenant(tenant_id), transaction.atomic():
            following = Message.objects.filter(number__gt=after).order_by("number")
            # Moving and erasing messages locks these rows too.
            batch = list(following.select_for_update(of=("self",))[:BATCH])
            if not batch:
                return
            numbers = [message.number for message in batch]
            indexed = set(
                IndexedMessage.objects.filter(message_number__in=numbers).values_list(
                    "message_number", flat=True
                )
            )
            # The queue indexes the others.
            messages = [message for message in batch if message.number in indexed]
            scopes = {scope_number(message.agent_id, message.user_id) for message in messages}
            remove_from_word_index(sorted(indexed), scopes=sorted(scopes))
            index_words(messages)
        after = batch[-1].number
        done += len(batch)
        yield done, max(total, done)


def without_vectors(version: str) -> models.MessageQuerySet:
    """Return the tenant's messages with text but without a vector of the model."""
    embedded = models.ConversationEmbedding.objects.filter(
        message=OuterRef("pk"), embedding_model=version
    )
    return Message.objects.filter(~Exists(embedded), content__regex=r"\S")


# --- The queue of embeddings ----------------------------------------------------------------------

MESSAGES: Final = metrics.counter(
    "konstruct_embedded_messages_total", "Messages that were embedded and indexed."
)
BATCH_SECONDS: Final = metrics.histogram(
    "konstruct_embedding_batch_seconds", "How long a batch of messages took to embed and write."
)


@dataclass(frozen=True)
class DrainResult:
    """The result of one run."""

    stored: int
    more: bool
    """Whether there may be more jobs that no worker has."""


def drain(
    tenant_id: UUID | str,
    message_ids: Iterable[UUID | str] | None = None,
    *,
    limit: int = OUTBOX_TASK_LIMIT,
) -> DrainResult:
    """Embed and store messages with a queued job, in batches, each once.

    Jobs that other workers have are skipped. The error of a failed message is recorded, and
    it is retried later; it fails no other message.

    Args:
        tenant_id: the tenant.
        message_ids: these, and overdue ones that fit into their last batch: if tasks of single
            messages wait in a long queue, the first of them do the work of the others. By default
            all queued ones.
        limit: maximum number of messages.

    Raises:
        EmbeddingModelError: the model does not load; it is recorded as the error of the jobs.
        UnknownTenant: no such tenant.
    """
    keys = None if message_ids is None else [UUID(str(message_id)) for message_id in message_ids]
    stored = taken = 0
    with tenant_scope(tenant_id):
        # Ends: at the limit, or when other workers have all remaining jobs.
        while taken < limit:
            leases, messages, has_more = _lease(min(OUTBOX_BATCH, limit - taken), keys)
            stored += _store_leased(leases, messages)
            taken += len(leases)
            if not has_more:
                return DrainResult(stored, more=False)
    return DrainResult(stored, more=True)


def embed_claimed(lease: Lease) -> None:
    """Embed and store a claimed message, and a batch of overdue ones."""
    _require_model()
    _store_leased([lease], _messages([lease]))
    leases, messages, _ = _lease(OUTBOX_BATCH, [])
    _store_leased(leases, messages)


def retry_now(message_id: UUID) -> bool:
    """Make a failed message due at once; return False if it has not failed."""
    failed = EMBEDDINGS.jobs([message_id]).exclude(last_error="")
    return bool(failed.update(due_at=Now(), sweep_at=Now()))


def _claimable() -> JobQuerySet:
    """Return jobs that a worker may do: due ones, and ones without an error before they are due."""
    is_free = Q(leased_until=None) | Q(leased_until__lte=Now())
    return EMBEDDINGS.jobs().filter(is_free, Q(last_error="") | Q(due_at__lte=Now()))


def _require_model() -> None:
    """Load the model, and record an error on the jobs.

    Only the model of this host failed: the jobs stay due for other hosts.
    """
    try:
        get_embedder()
    except exceptions.EmbeddingModelError as error:
        reason = reason_of(error)
        waiting = _claimable().exclude(last_error=reason)
        waiting.update(last_error=reason, due_at=Least(F("due_at"), Now()))
        raise


def _lease(
    size: int, keys: Collection[UUID] | None
) -> tuple[list[Lease], dict[UUID, Message], bool]:
    """Lease jobs, those that are due longest.

    Args:
        size: the maximum number of jobs.
        keys: these first, and then ones that the sweep wakes workers for: their tasks wait, or were
            lost. None: all.

    Returns:
        The leases, their messages, and whether there may be more.
    """
    is_other: Any = Value(False)
    jobs = _claimable()
    if keys is not None:
        is_other = Case(When(key__in=keys, then=False), default=True)
        jobs = jobs.filter(Q(key__in=keys) | Q(sweep_at__lte=Now(), failed_at=None))
    _require_model()
    with known_tenant(required_tenant_id()):
        found = jobs.annotate(is_other=is_other).order_by("is_other", "sweep_at")
        batch = list(found.values_list("key", "attempts", "is_other")[:size])
        if not batch:
            PendingEmbedding.objects.exists()  # a table of the tenant, if it has tables
        # Messages that failed, or whose worker died, are tried alone, and leased alone.
        fresh = [key for key, attempts, _ in batch if not attempts]
        leases = EMBEDDINGS.lease_many(fresh or [key for key, *_ in batch[:1]])
        is_rest = len(leases) == len(batch) < size or any(is_other for *_, is_other in batch)
        return leases, _messages(leases), bool(leases) and not is_rest


def _messages(leases: Iterable[Lease]) -> dict[UUID, Message]:
    """Return the messages of jobs that still wait."""
    keys = [lease.key for lease in leases]
    pending = PendingEmbedding.objects.filter(pk__in=keys).select_related("message")
    return {row.pk: row.message for row in pending} if keys else {}


def _store_leased(leases: Sequence[Lease], messages: Mapping[UUID, Message]) -> int:
    try:
        return _store_batch(leases, messages) if leases else 0
    except BaseException:
        for lease in leases:
            lease.abandon()
        raise


def _store_batch(
    leases: Sequence[Lease], messages: Mapping[UUID, Message], *, is_half: bool = False
) -> int:
    """Store these together; if that fails, in halves. Return the number of stored messages."""
    if len(leases) == 1:
        return _store_alone(leases[0], messages)
    try:
        return _store(leases, messages)
    except Exception as error:
        if not is_half:
            logger.warning(
                "A batch of %s messages failed, and is stored in halves: %s",
                *(len(leases), detail_of(error)),
            )
        if not connection.is_usable():
            raise
        half = len(leases) // 2
        halves = (leases[:half], leases[half:])
        return sum(_store_batch(part, messages, is_half=True) for part in halves)


def _store_alone(lease: Lease, messages: Mapping[UUID, Message]) -> int:
    """Store this one, or record its failure; return 1, or 0 if it failed or is gone."""
    stored = 0

    def store(lease: Lease) -> None:
        nonlocal stored
        stored = _store([lease], messages)

    EMBEDDINGS.run(lease, store)
    return stored


def _store(leases: Sequence[Lease], messages: Mapping[UUID, Message]) -> int:
    """Compute vectors of the messages; then write them and remove their jobs, in one transaction.

    Returns:
        The number of stored messages: without those that another transaction has locked, and those
        of ended leases.
    """
    tokens = {lease.key: lease.token for lease in leases}
    parents = [lease.traceparent for lease in leases if lease.key in messages]
    waiting = [messages[key] for key in tokens.keys() & messages.keys()]
    with (
        BATCH_SECONDS.of().time(),
        traces.batch_span("embed", parents, tenant_id=required_tenant_id(), messages=len(waiting)),
    ):
        embedded = embed_messages(waiting, get_embedder())
        with transaction.atomic():
            jobs = EMBEDDINGS.jobs(list(tokens)).filter(leased_until__isnull=False)
            locked = jobs.select_for_update(skip_locked=True).values_list("key", "lease")
            finished = {key for key, token in locked if token == tokens[key]}
            pending = PendingEmbedding.objects.filter(pk__in=finished)
            # Moving and erasing messages locks these rows, and waits for the locks of the others.
            unlocked = pending.select_related("message").select_for_update(
                skip_locked=True, of=("self",)
            )
            rows = {row.pk: row.message for row in unlocked if row.pk in messages}
            index_messages(list(rows.values()), embedded)
            execute("DELETE FROM memory_pendingembedding WHERE message_id = ANY(%s)", [list(rows)])
            if others := finished - rows.keys():
                finished -= set(pending.filter(pk__in=others).values_list("pk", flat=True))
            EMBEDDINGS.finish_many(finished)
    MESSAGES.of().inc(len(rows))
    for lease in leases:
        if lease.key not in finished:
            lease.abandon()
    return len(rows)
