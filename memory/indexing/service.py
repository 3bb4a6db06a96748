"""Writes the index rows of a message: vectors of its sentences, weights of its words, and features
for recall.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef

from memory.embedding.embedder import Embedder, Vectors, get_embedder
from memory.embedding.vectors import array_literal, vectors_literal
from memory.models import ConversationEmbedding, IndexedMessage, Message, PersonName, Posting, Role
from memory.models.conversations import MessageQuerySet
from memory.models.recall import scope_number, session_number
from memory.text import lexical
from memory.text.languages import Language, fold, latin_by_tag, locales_of_agents
from memory.text.sentences import count_words, cut_pieces, only_asks
from tenants import transaction
from tenants.audit.people import NO_LOCALE, locales_of
from tenants.context import execute, known_tenant

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
    name: str, role: str, content: str, created_at: datetime, latin: Language | None = None
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
            cut_pieces(
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
    agents = locales_of_agents({message.agent_id for message in messages})
    users = locales_of({message.user_id for message in messages})
    times: list[datetime] = []
    lexemes: list[list[str]] = []
    for message in messages:
        language, time_zone = agents.get(message.agent_id, NO_LOCALE)
        user = users.get(message.user_id, NO_LOCALE)
        latin = latin_by_tag(language or user.language) or _language_before(message)
        times.append(message.created_at.astimezone(user.zone(time_zone)))
        lexemes.append(lexemes_of(message.name, message.role, message.content, times[-1], latin))
    _write_scopes(messages)
    IndexedMessage.objects.bulk_create(
        (
            IndexedMessage(
                message_number=message.number,
                scope_id=scope_number(message.agent_id, message.user_id),
                message_id=message.id,
                session=session_number(message.thread_id, time),
                created_at=message.created_at,
                subject=lexical.lexeme_hash(subject_word(subject_of(message.name, message.role))),
                by_user=message.role == Role.USER,
                words=count_words(message.content),
                has_time=lexical.has_time_word(message.content),
                asks=only_asks(message.content),
                lexemes=len(of_message),
            )
            for message, time, of_message in zip(messages, times, lexemes, strict=True)
        ),
        ignore_conflicts=True,
    )
    _write_postings(messages, lexemes)


def _language_before(message: Message) -> Language | None:
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
            for model in (Posting, IndexedMessage)
        ]


# Messages that are embedded and written in one transaction.
BATCH = 128


@dataclass(frozen=True, slots=True)
class ReembedProgress:
    """The number of a tenant's embedded messages."""

    done: int
    total: int


def reembed(tenant_id: UUID | str, embedder: Embedder) -> Iterator[ReembedProgress]:
    """Embed every message of a tenant that the model has not embedded yet, oldest first.

    It can be interrupted and repeated; existing rows are not embedded again. New messages are
    embedded by the queue with the current model: run it again after the switch.

    Yields:
        The progress, before the first batch and after each.
    """
    with known_tenant(tenant_id):
        total = Message.objects.count()
        missing = without_vectors(embedder.version).count()
    done = total - missing
    yield ReembedProgress(done, total)
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
        yield ReembedProgress(done, max(total, done))


def reindex_words(tenant_id: UUID | str) -> Iterator[ReembedProgress]:
    """Write the words of every indexed message of a tenant again, oldest first, and folded names.

    For words that another version of the product folds, stems or cuts otherwise. It runs beside
    service: a reader sees the old or the new words of a message. It can be interrupted and
    repeated. Needs the owner's role.

    Yields:
        The progress, before the first batch and after each.
    """
    with known_tenant(tenant_id):
        total = Message.objects.count()
        for name in PersonName.objects.iterator(chunk_size=1000):
            if name.folded != (folded := fold(name.name)):
                PersonName.objects.filter(pk=name.pk).update(folded=folded)
    done = after = 0
    yield ReembedProgress(done, total)
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
        yield ReembedProgress(done, max(total, done))


def without_vectors(version: str) -> MessageQuerySet:
    """Return the tenant's messages with text but without a vector of the model."""
    embedded = ConversationEmbedding.objects.filter(message=OuterRef("pk"), embedding_model=version)
    return Message.objects.filter(~Exists(embedded), content__regex=r"\S")
