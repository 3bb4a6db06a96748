"""Facts as rows: checked, found, and written, with a version for each change.

Messages, and statements of a corrected fact, are excluded from recall, and included again. The
agent's echoes are excluded too: replies that were written with the message or the fact, and repeat
it. What is excluded as a whole is in no window either. These functions work in the current tenant,
in the transaction of a correction.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID, uuid4

from django.db import IntegrityError
from django.db.models import Q, QuerySet
from django.db.models.expressions import DatabaseDefault
from django.utils import timezone

from memory import arguments, models
from memory.conversations import short_term, window_store
from memory.embedding.embedder import embed, model_version
from memory.exceptions import DuplicateFact, FactBusy, FactNotFound, InvalidArgument
from memory.fields import digest, nearest
from memory.models.facts import Author, FactAction, FactState, MemoryEntry, MemoryEntryQuerySet
from memory.text.lexical import lexemes
from tenants import context, transaction
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import Action, ActorKind
from tenants.audit.people import hold_people

# How often a write is tried again because another request deleted the conflicting entry.
MAX_ATTEMPTS: Final = 10


def tenant_of_entry(entry: MemoryEntry) -> UUID | str:
    """Return the tenant of an entry, or else the current one."""
    if isinstance(entry.tenant_id, UUID | str):
        return entry.tenant_id
    current = context.current_tenant_id()
    if current is None:
        raise InvalidArgument("the fact has no tenant_id, and is not stored inside a tenant")
    return current


def check_entry(entry: MemoryEntry) -> None:
    """Convert an entry's fields into their types; raise InvalidArgument for invalid ones."""
    arguments.content_argument(entry.content)
    if entry.agent_id is not None:
        entry.agent_id = arguments.uuid_argument("agent_id", entry.agent_id)
    if entry.user_id is not None:
        arguments.new_id_argument("user_id", entry.user_id)
    if entry.external_id is not None:
        arguments.new_id_argument("external_id", entry.external_id)
    entry.metadata = {} if entry.metadata is None else entry.metadata
    models.attributes.metadata_values(entry.metadata)
    for name in ("valid_from", "valid_to", "expires_at"):
        value = getattr(entry, name)
        if value is not None and not isinstance(value, DatabaseDefault):
            arguments.utc_argument(name, value)


def value_in(content: str, fact: MemoryEntry) -> str:
    """Return the value of a fact's slot in a new content of the fact; "" if it is not known.

    It is the text that replaces the value, or else the value, if the new content has its words:
    Oslo in "Ann lives in Oslo.", for "Ann lives in Rome." with the value Rome.
    """
    value = re.escape(fact.value)
    place = re.search(rf"(?<!\w){value}(?!\w)", fact.content, re.IGNORECASE) if value else None
    if place is None:
        return ""
    before, after = fact.content[: place.start()], fact.content[place.end() :]
    new = content.removeprefix(before).removesuffix(after)
    if new and before + new + after == content:
        return new
    return fact.value if re.search(rf"(?<!\w){value}(?!\w)", content, re.IGNORECASE) else ""


def merge_metadata(stored: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Merge metadata by RFC 7396 (JSON Merge Patch).

    Objects are merged at each depth, null removes a name, and other values replace the stored one.
    """
    merged = dict(stored)
    for name, value in sent.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            inner = merged.get(name)
            merged[name] = merge_metadata(inner if isinstance(inner, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged


def same_scope(entry: MemoryEntry) -> MemoryEntryQuerySet:
    """Return the facts of the entry's tenant, agent and user, without facts of all agents or
    users.
    """
    facts = MemoryEntry.objects.of_tenant(entry.tenant_id)
    return facts.filter(agent_id=entry.agent_id, user_id=entry.user_id)


def existing_entry(entry: MemoryEntry) -> MemoryEntry | None:
    """Return the entry with the same external id, or else text, of the same agent and user."""
    same = same_scope(entry).entries()
    if entry.external_id is not None:
        return same.filter(external_id=entry.external_id).first()
    return same.filter(external_id=None, content_digest=digest(entry.content)).first()


def insert(entry: MemoryEntry) -> MemoryEntry | None:
    """Write a new entry and return it; return the existing one, see `existing_entry`.

    None if that one was deleted meanwhile: call it again.
    """
    _refuse_expired_before(entry.valid_from, entry.expires_at)
    try:
        with transaction.atomic():
            entry.save(force_insert=True)
            write_attributes(entry)
    except IntegrityError as error:
        return _conflicting_entry(entry, error)
    return entry


def merge_into(
    memory_id: UUID, entry: MemoryEntry, *, revived: bool, author: Author = models.SYSTEM
) -> MemoryEntry:
    """Merge the fields of `entry` into the fact that it is. Call it in a transaction.

    Args:
        memory_id: the fact with the same external id, or else the same text.
        entry: the fields. With an external id, its text and metadata replace the stored ones.
        revived: make the fact valid from now until the end of `entry`.
        author: of a new text, and of the exclusions from recall.
    """
    given = {name: getattr(entry, name) for name in models.FactChanges.__annotations__}
    slot = {name: given.pop(name) for name in ("slot", "subject", "is_multi_valued")}
    changes = {
        name: value
        for name, value in given.items()
        if value not in (None, "") or name in entry.cleared
    }
    if entry.slot:
        changes |= slot
    if revived:
        changes |= {"valid_to": entry.valid_to, "expires_at": entry.expires_at}
    if revived or not isinstance(entry.valid_from, datetime):
        changes.pop("valid_from", None)
    return update_entry(
        memory_id,
        cast(models.FactChanges, changes),
        embedding=entry.embedding,
        replaces_metadata=entry.external_id is not None,
        from_now=revived,
        author=author,
    )


def update_entry(
    memory_id: UUID,
    changes: models.FactChanges,
    *,
    embedding: list[float] | None = None,
    replaces_metadata: bool = False,
    from_now: bool = False,
    author: Author = models.SYSTEM,
    reason: str = "",
) -> MemoryEntry:
    """Copy an entry's row as a version, and set its new values. Call it in a transaction.

    A change that alters nothing makes no version, unless it has a `valid_from`. The new version is
    valid from now if its content or value is new, and otherwise from when the old one was. With a
    new content, recall excludes statements of the old one, see `exclude_corrected`.

    Args:
        memory_id: the fact.
        changes: the new values.
        embedding: the vector of the new content.
        replaces_metadata: do not merge the metadata, see `merge_metadata`.
        from_now: make the fact active and valid from now on.
        author: of the new content, and of the exclusions from recall, with the reason.
    """
    entry = MemoryEntry.objects.select_for_update().entries().filter(memory_id=memory_id).first()
    if entry is None:
        raise FactNotFound(f"there is no fact {memory_id}")
    hold_people([entry.user_id], agent_ids=[entry.agent_id])
    values: dict[str, Any] = {**changes}
    if "metadata" in values and not replaces_metadata:
        values["metadata"] = merge_metadata(entry.metadata, values["metadata"])
        models.attributes.metadata_values(values["metadata"])
    if not from_now and all(getattr(entry, name) == value for name, value in values.items()):
        return entry
    # Read after locking: a version of a concurrent writer is older.
    now = (
        MemoryEntry.objects.filter(memory_id=memory_id).values_list(models.server_clock()).get()[0]
    )
    is_reworded = values.get("content", entry.content) != entry.content
    says_the_same = not is_reworded and values.get("value", entry.value) == entry.value
    given_from = values.get("valid_from")
    valid_from = given_from or _past_end(now, entry, values.get("valid_to")) or now
    if says_the_same and not from_now and not given_from:
        valid_from = entry.valid_from
    if given_from and not entry.valid_from < given_from <= now:
        raise InvalidArgument(
            f"valid_from={valid_from.isoformat()} is not between"
            f" {entry.valid_from.isoformat()}, since when the old version is so, and now"
        )
    expires_at = values.get("expires_at", entry.expires_at)
    if given_from or expires_at != entry.expires_at:
        _refuse_expired_before(valid_from, expires_at)
    version = keep_version(entry, until=valid_from)
    if is_reworded:
        # The evidence belongs to the old content; the new one is the caller's.
        models.FactEvidence.objects.filter(memory_id=memory_id).update(memory_id=version.memory_id)
        entry.kind, entry.asserter = models.FactKind.ENTERED, author.name
        entry.value = value_in(values["content"], entry)
        if embedding is None:  # it had this content when the caller read it
            embedding = embed([values["content"]])[0]
        entry.embedding, entry.embedding_model = embedding, model_version()
    if from_now:
        entry.state, entry.retracted_at, entry.review_reason = FactState.ACTIVE, None, ""
    values |= {"valid_from": valid_from, "updated_at": now, "supersedes": version.memory_id}
    for name, value in values.items():
        setattr(entry, name, value)
    for _ in range(MAX_ATTEMPTS):
        try:
            with transaction.atomic():
                entry.save(force_update=True)
            break
        except IntegrityError as error:
            if winner := _conflicting_entry(entry, error):
                raise DuplicateFact(winner.memory_id) from error
    else:
        raise FactBusy(MAX_ATTEMPTS)
    write_attributes(entry)
    if is_reworded:
        earlier = MemoryEntry.objects.filter(version_of=memory_id)
        include_corrected(earlier.filter(content_digest=digest(entry.content)))
        exclude_corrected(version, author=author, reason=reason, new_content=entry.content)
    return entry


def keep_version(entry: MemoryEntry, *, until: datetime) -> MemoryEntry:
    """Insert a copy of an entry's row as a version that was valid until then; return it.

    Call it in the transaction that has locked the entry and changes it.
    """
    old = MemoryEntry.objects.get(memory_id=entry.memory_id)
    old.memory_id = uuid4()
    old.version_of = entry.memory_id
    # A version that was to begin later, or had ended before, was never valid after this.
    old.valid_to = max(old.valid_from, min(until, old.valid_to or until))
    old.save(force_insert=True)
    models.MemoryAttribute.objects.filter(memory_id=entry.memory_id).update(memory_id=old.memory_id)
    return old


def _past_end(now: datetime, entry: MemoryEntry, ends: datetime | None) -> datetime | None:
    """Return the end of validity that a change sets, if it is in the past."""
    if not isinstance(ends, datetime) or ends > now:
        return None
    if ends < entry.valid_from:
        raise InvalidArgument(
            f"valid_to={ends.isoformat()} is before {entry.valid_from.isoformat()}, since when the"
            " fact is so"
        )
    return ends


def _refuse_expired_before(valid_from: Any, expires_at: datetime | None) -> None:
    """Refuse a fact that expires when its validity begins, or earlier. By default it begins now."""
    since = valid_from if isinstance(valid_from, datetime) else timezone.now()
    if expires_at is not None and expires_at <= since:
        raise InvalidArgument(
            f"expires_at={expires_at.isoformat()} is not after {since.isoformat()}, since when the"
            " fact is so; give a later time"
        )


def write_attributes(entry: MemoryEntry) -> None:
    """Write the values of the entry's metadata into the table with b-tree indexes."""
    models.MemoryAttribute.objects.bulk_create(
        models.attributes.attributes_of(
            models.MemoryAttribute, entry.metadata, memory_id=entry.memory_id
        )
    )


def _conflicting_entry(entry: MemoryEntry, error: IntegrityError) -> MemoryEntry | None:
    """Return the entry with which the unique constraint conflicts; None if it is deleted."""
    constraint = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
    if constraint in ("fact_content", "fact_external_id"):
        return existing_entry(entry)
    if constraint == "fact_valid_from_before_to":
        raise InvalidArgument(
            f"valid_to={entry.valid_to} is before valid_from, since when it is so"
        ) from error
    raise InvalidArgument(
        f"fact {entry.memory_id} cannot be stored ({constraint}); change an active fact"
        " with update()"
    ) from error


# The changes that write a version, as opposed to those of a version's state.
WRITING_ACTIONS: Final = (FactAction.ENTER, FactAction.PROPOSE, FactAction.CHANGE)


def events_by_version(facts: MemoryEntryQuerySet) -> dict[UUID, list[models.FactEvent]]:
    """Return the events of facts, oldest first, by the id of the row that each one is about.

    Events are recorded after the change, by the id of the fact. A change of the state sets
    `updated_at` too, so that it can be later than the event of the writing.

    Args:
        facts: facts with all of their versions.
    """
    versions: dict[UUID, list[MemoryEntry]] = defaultdict(list)
    for version in facts.defer("embedding").order_by("updated_at", "memory_id"):
        versions[version.fact_id].append(version)
    found: dict[UUID, list[models.FactEvent]] = defaultdict(list)
    for event in models.FactEvent.objects.filter(memory_id__in=versions).order_by("number"):
        later = versions[event.memory_id]
        earlier = found[later[0].pk]
        is_complete = bool(earlier) and earlier[-1].created_at >= later[0].updated_at
        if is_complete and event.action in WRITING_ACTIONS and len(later) > 1:
            later.pop(0)
        while len(later) > 1 and later[1].updated_at <= event.created_at:
            later.pop(0)
        found[later[0].pk].append(event)
    return found


# --- Finding facts -------------------------------------------------------------------------------


def filter_facts(
    tenant_id: UUID,
    *,
    agent_id: UUID | str | None = None,
    user_id: str | None = None,
    shared: bool = True,
    shared_only: bool = False,
    filters: Mapping[str, Any] | None = None,
    at: datetime | None = None,
    state: FactState | str = FactState.ACTIVE,
) -> MemoryEntryQuerySet:
    """Return the facts that `LongTermMemory.search` searches, as a lazy query.

    Args:
        state: for any other state than active, the facts in that state, valid or not. Proposed
            facts are those that wait for a review.

    Raises:
        InvalidArgument: a value is invalid.
    """
    rows = MemoryEntry.objects.of_tenant(tenant_id)
    if state == FactState.ACTIVE:
        rows = rows.as_of(at and arguments.utc_argument("at", at))
    elif state == FactState.PROPOSED:
        rows = rows.waiting_for_review()
    else:
        rows = rows.entries().filter(state=state)
    if agent_id is not None:
        rows = rows.visible_to_agent(arguments.uuid_argument("agent_id", agent_id))
    if shared_only:
        rows = rows.filter(user_id__isnull=True)
    elif user_id is not None:
        rows = rows.about(arguments.id_argument("user_id", user_id))
    if not shared:
        rows = rows.filter(user_id__isnull=False)
    return rows.with_metadata(filters) if filters else rows


def nearest_facts(
    rows: MemoryEntryQuerySet, vector: Sequence[float], limit: int, *, threshold: float = -1.0
) -> list[MemoryEntry]:
    """Return the facts of the current tenant that are nearest to a vector of 384 numbers.

    Best first, each with its cosine similarity as `score`, which is at least `threshold`.
    """
    found = nearest(rows.comparable(model_version()), vector, limit)
    return [entry for entry in found if entry.score >= threshold]


def recalls_with(fact: MemoryEntry) -> QuerySet[models.RecallEvent]:
    """Return the recall events of the replies with the fact in their prompt, as a lazy query."""
    others = models.PromptSource.objects.filter(source_id=fact.fact_id).values("event_id")
    of_fact = Q(user_id=fact.user_id, sources__contains=[fact.fact_id]) | Q(pk__in=others)
    return models.RecallEvent.objects.filter(of_fact)


# --- Exclusions from recall ----------------------------------------------------------------------

# Number of the newest recall events of the owners of sources that are searched for the sources.
MAX_EVENTS: Final = 10_000
# The number of its words that an echo of a whole message repeats at least: "ok" has no echoes.
MIN_REPEATED: Final = 2
SUBJECT: Final = "recall exclusions"

# The replies that answer one of these messages, or had one of these messages or facts in their
# prompt. Prompts of the users who own the sources are found by the user, others by the source.
_WRITTEN_WITH: Final = """
SELECT * FROM memory_message WHERE role = 'assistant' AND id IN (
    SELECT id FROM memory_message WHERE in_reply_to_id = ANY(%(ids)s)
    UNION ALL
    SELECT reply_id FROM (
        SELECT reply_id, sources FROM memory_recallevent WHERE user_id = ANY(%(users)s)
        ORDER BY created_at DESC LIMIT %(most)s
    ) AS newest WHERE sources && %(ids)s
    UNION ALL
    SELECT event.reply_id FROM memory_promptsource AS source
    JOIN memory_recallevent AS event ON event.id = source.event_id
    WHERE source.source_id = ANY(%(ids)s)
)
"""


def echoes(
    sources: Collection[UUID], user_ids: Collection[str], stems: set[str], *, minimum: int = 1
) -> list[models.Message]:
    """Return the replies that were written with a message or a fact, and repeat its words.

    Args:
        sources: the ids of messages and facts.
        user_ids: the users who own them.
        stems: of the repeated words (`memory.text.lexical`). A reply has at least half of them.
        minimum: the number of them that a reply has at least.
    """
    values = {"ids": [*sources], "users": [*user_ids], "most": MAX_EVENTS}
    needed = max(minimum, (len(stems) + 1) // 2)
    if needed > len(stems):
        return []
    replies = models.Message.objects.raw(_WRITTEN_WITH, values)
    return [reply for reply in replies if len(stems.intersection(lexemes(reply.content))) >= needed]


def echoes_of_message(
    message: models.Message, start: int | None = None, end: int | None = None
) -> list[models.Message]:
    """Return the echoes of a message, or of some of its words."""
    stems = set(lexemes(message.content[start:end]))
    minimum = MIN_REPEATED if start is None else 1
    return echoes([message.pk], [message.user_id], stems, minimum=minimum)


def exclude_from_recall(
    message: models.Message,
    *,
    author: Author,
    start: int | None = None,
    end: int | None = None,
    reason: str = "",
    request_id: str = "",
) -> models.RecallExclusion:
    """Leave a message, or some of its words, and the echoes of it out of recall.

    A whole message leaves the windows too. It is recorded in the access log.

    Args:
        message: a message of the current tenant.
        author: a person, a program or an operator.
        start: first character of the words; None: the whole message.
        end: position after their last character.
        reason: kept with the exclusion.
        request_id: of the request, for the access log.

    Returns:
        The exclusion; the existing one if the same words are excluded already.

    Raises:
        InvalidArgument: the message has no such words.
    """
    if (start is None) != (end is None) or (
        start is not None and end is not None and not 0 <= start < end <= len(message.content)
    ):
        raise InvalidArgument(
            f"start={start}, end={end} are not words of a message of {len(message.content)}"
            " characters"
        )
    fields: dict[str, Any] = {"memory_id": None, "echo_of": None, "start": start, "end": end}
    with transaction.atomic():
        exclusion, is_new = models.RecallExclusion.objects.get_or_create(
            message=message, **fields, defaults=_columns(message, author, reason)
        )
        if is_new:
            replies = echoes_of_message(message, start, end)
            fields |= {"echo_of": exclusion.pk, "start": None, "end": None}
            _exclude(replies, author, reason, **fields)
            detail = {"reason": reason, "start": start, "end": end, "echoes": len(replies)}
            _record(Action.CREATE, message, author, request_id, **detail)
    return exclusion


def include_again(
    message: models.Message,
    *,
    author: Author,
    exclusion_id: UUID | None = None,
    reason: str = "",
    request_id: str = "",
) -> int:
    """Include a message in recall again: remove its exclusions, also those of corrected facts.

    Their echoes are included too. It is recorded in the access log.

    Args:
        message: a message of the current tenant.
        author: a person, a program or an operator.
        exclusion_id: the one exclusion to remove; None: all of them.
        reason: kept in the access log.
        request_id: of the request, for the access log.

    Returns:
        The number of removed exclusions of the message.
    """
    rows = models.RecallExclusion.objects.filter(message=message)
    if exclusion_id is not None:
        rows = rows.filter(pk=exclusion_id)
    with transaction.atomic():
        removed = [
            {"start": row.start, "end": row.end, "memory_id": str(row.memory_id or "")}
            for row in rows
        ]
        _remove(models.RecallExclusion.objects.filter(Q(pk__in=rows) | Q(echo_of__in=rows)))
        if removed:
            _record(Action.DELETE, message, author, request_id, reason=reason, removed=removed)
    return len(removed)


def exclude_corrected(
    fact: MemoryEntry, *, author: Author, reason: str = "", new_content: str = ""
) -> None:
    """Exclude statements of a fact that was wrong from recall: its evidence and its echoes.

    Args:
        fact: the fact with the wrong value, or its version that has the evidence.
        author: of the correction.
        reason: stored with the exclusions.
        new_content: the corrected fact. Its words do not count as the wrong value.
    """
    cited = list(
        models.FactEvidence.objects.filter(memory=fact.memory_id).select_related("message")
    )
    for row in cited:
        words = {"start": row.start, "end": row.end}
        _exclude([row.message], author, reason, memory_id=fact.memory_id, **words)
    sources = {fact.fact_id, *(row.message_id for row in cited)}
    users = {row.message.user_id for row in cited} | {*filter(None, [fact.user_id])}
    stems = wrong_stems(fact, new_content) or set(lexemes(fact.content))
    _exclude(echoes(sources, users, stems), author, reason, memory_id=fact.memory_id)


def include_corrected(facts: Sequence[UUID] | MemoryEntryQuerySet) -> int:
    """Undo the exclusions of corrected facts, or of versions of them; return their number."""
    ids: Any = facts.values("memory_id") if isinstance(facts, MemoryEntryQuerySet) else facts
    return _remove(models.RecallExclusion.objects.filter(memory_id__in=ids))


def _exclude(
    messages: Iterable[models.Message], author: Author, reason: str, **fields: Any
) -> None:
    """Exclude messages that are not excluded in this way already."""
    models.RecallExclusion.objects.bulk_create(
        (
            models.RecallExclusion(message=message, **_columns(message, author, reason), **fields)
            for message in messages
        ),
        ignore_conflicts=True,
    )


def _columns(message: models.Message, author: Author, reason: str) -> dict[str, Any]:
    return {
        "agent_id": message.agent_id,
        "user_id": message.user_id,
        "reason": reason,
        **author.columns,
    }


def _remove(exclusions: "QuerySet[models.RecallExclusion]") -> int:
    """Delete exclusions. Windows lack their messages, and are written again after the commit."""
    columns = ("message__agent_id", "message__user_id", "message__thread_id")
    whole = exclusions.filter(start=None).order_by().distinct()
    threads, tenant_id = list(whole.values_list(*columns)), context.required_tenant_id()

    def delete_windows() -> None:
        for agent_id, user_id, thread_id in threads:
            short_term.delete_window(tenant_id, agent_id, user_id)
            window_store.delete_threads(tenant_id, [thread_id])

    count, _ = exclusions.delete()
    if threads:
        transaction.on_commit(delete_windows)
    return count


def wrong_stems(fact: MemoryEntry, new_content: str) -> set[str]:
    """Return the stems of the words of the wrong value that the corrected fact does not have."""
    content, value = set(lexemes(fact.content)), set(lexemes(fact.value))
    # An update of the content has an older value.
    stems = value if value and value <= content else content
    return stems - set(lexemes(new_content))


def _record(
    action: Action, message: models.Message, author: Author, request_id: str, **detail: Any
) -> None:
    kind = author.kind if author.kind in ActorKind.values else ActorKind.UNKNOWN
    record_access(
        action,
        SUBJECT,
        by=Actor(ActorKind(kind), author.id, author.name),
        subject_id=message.pk,
        agent_id=message.agent_id,
        user_id=message.user_id,
        request_id=request_id,
        **detail,
    )
