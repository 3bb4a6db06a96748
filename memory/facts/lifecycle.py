"""The states of an extracted fact: proposed, confirmed, superseded, retracted, rejected, restored.

Every change is a `FactEvent` with its author. The functions work in the current tenant, each in one
transaction, and lock the facts that they change. Candidates of one agent and user are recorded one
after the other, because their extraction jobs share a lane.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import crypto, timezone

from memory import arguments, exceptions, fields, models
from memory.embedding.embedder import model_version
from memory.facts import rows as fact_rows
from memory.models.facts import Author, FactAction, FactEvent, FactEvidence, FactState, MemoryEntry
from tenants import context, transaction
from tenants.outbox import events as outbox
from tenants.outbox.models import EventType

CONFLICT: Final = "conflict"
REJECTED_BEFORE: Final = "rejected before"
# Reasons of decisions without a person.
NO_REVIEW: Final = "no review required"
MORE_EVIDENCE: Final = "more evidence"
# Authors of decisions, as opposed to extraction runs.
DECIDING_AUTHORS: Final = (
    models.AuthorKind.PERSON,
    models.AuthorKind.PROGRAM,
    models.AuthorKind.OPERATOR,
)

EVENT_BY_STATE: Final[dict[str, EventType]] = {
    FactState.PROPOSED: EventType.FACT_PROPOSED,
    FactState.ACTIVE: EventType.FACT_ACTIVE,
    FactState.SUPERSEDED: EventType.FACT_SUPERSEDED,
    FactState.RETRACTED: EventType.FACT_RETRACTED,
}


@dataclass(frozen=True, slots=True)
class Quote:
    """The words of a message from `start` to before `end`, counted in characters."""

    message: models.Message
    start: int
    end: int

    @property
    def text(self) -> str:
        """The words."""
        return self.message.content[self.start : self.end]

    @property
    def source_digest(self) -> bytes:
        """Keyed digest of the message's user, time and text. Copies of a message have the same."""
        message = self.message
        source = "\0".join((message.user_id, message.created_at.isoformat(), message.content))
        return crypto.salted_hmac("memory.facts.evidence", source, algorithm="sha256").digest()


class Outcome(StrEnum):
    """The result of recording a candidate."""

    ACTIVE = "active"
    PROPOSED = "proposed"
    CONFIRMED = "confirmed"
    """The fact existed; it has more evidence now."""
    PAST = "past"
    """The fact is new, and its validity ended before that of the slot's current value began."""
    UNCHANGED = "unchanged"
    """The fact existed, with this evidence."""
    REJECTED_BEFORE = "rejected_before"
    """A person has rejected this value from these messages, or copies of them."""


@dataclass(frozen=True, slots=True)
class RecordedCandidate:
    """A recorded candidate."""

    outcome: Outcome
    memory_id: UUID
    superseded: UUID | None = None


def record_event(
    fact: MemoryEntry,
    action: FactAction,
    *,
    author: Author,
    reason: str = "",
    other_id: UUID | None = None,
) -> None:
    """Record a change of a fact, and its event for programs, in the transaction of the change."""
    FactEvent.objects.create(
        memory_id=fact.memory_id,
        action=action,
        reason=reason,
        other_id=other_id,
        **author.columns,
    )
    if (event := EVENT_BY_STATE.get(fact.state)) is not None and reason != MORE_EVIDENCE:
        outbox.record_event(
            event, fact.memory_id, agent_id=fact.agent_id, user_id=fact.user_id or ""
        )


# --- Candidates -----------------------------------------------------------------------------------


def record_candidate(
    entry: MemoryEntry,
    quotes: Sequence[Quote],
    *,
    author: Author,
    review: str = "",
    supersedes: UUID | None = None,
) -> RecordedCandidate:
    """Record a fact that was extracted from messages.

    The same text, or the same value of the same slot, is the same fact: its evidence is added. A
    value of a single-valued slot supersedes an older one. In a slot with several values it
    supersedes the value of `supersedes`. It waits for a review if a person entered or confirmed the
    older one. A candidate never deletes a fact, and never changes a fact of another slot.

    Args:
        entry: a new entry of the current tenant with its embedding, observed or inferred, and with
            the `run_id` of the extraction run.
        quotes: the words of messages that support it, at least one.
        author: of the candidate: an extraction run, or the key that requested the run.
        review: why a person must review it; empty: it is active at once.
        supersedes: id of another value of the same subject and slot, of the same agent and user,
            that has ended. If it is not active any more, it is not changed.

    Raises:
        InvalidArgument: the candidate has no evidence, a field is invalid, or `supersedes` is no
            fact of the same subject and slot.
        FactBusy: others stored and deleted the same text during MAX_ATTEMPTS attempts.
    """
    fact_rows.check_entry(entry)
    if not quotes or entry.kind == models.FactKind.ENTERED:
        raise exceptions.InvalidArgument("a candidate has quotes, and is observed or inferred")
    entry.embedding = arguments.vector_argument("embedding", entry.embedding)
    entry.embedding_model = model_version()
    for _ in range(fact_rows.MAX_ATTEMPTS):
        with transaction.atomic():
            if supersedes and not _facts_of_slot(entry).filter(memory_id=supersedes).exists():
                raise exceptions.InvalidArgument(
                    f"supersedes={supersedes} is no fact of {entry.subject!r} with the slot"
                    f" {entry.slot!r}, of the same agent and user"
                )
            existing = _same_fact(entry)
            record = _record_new if existing is None else partial(_record_again, existing)
            recorded = record(entry, quotes, author=author, review=review, superseded_id=supersedes)
            if recorded is not None:
                return recorded
    raise exceptions.FactBusy(fact_rows.MAX_ATTEMPTS)


def supersede_current_value(memory_id: UUID, superseded_id: UUID | None = None) -> None:
    """End the active fact of the same slot that a fact without evidence replaces.

    Not one that begins later, or that a person or a program has decided on. Call it in the
    transaction that stores the fact.

    Args:
        memory_id: the fact.
        superseded_id: another value of the slot, which it replaces although both could be valid.
    """
    fact = MemoryEntry.objects.entries().get(memory_id=memory_id)
    current = _fact_to_supersede(fact, superseded_id)
    if current is None or _is_past(fact, current) or _decisions([current.memory_id]).exists():
        return
    _supersede(current, by=fact, author=models.SYSTEM)


def supersede_by_entered(memory_id: UUID, author: Author) -> None:
    """End the current value of a single-valued slot for that of a fact that was entered.

    If the fact was valid before, it ends when the current value began. Call it in the transaction
    that stores the fact.
    """
    fact = MemoryEntry.objects.entries().get(memory_id=memory_id)
    # Of two values at once the second one supersedes the first one.
    key = f"konstruct.slots {fact.agent_id} {fact.user_id}"
    context.execute("SELECT public.wait_for_tenant_lock(%s)", [key])
    current = _fact_to_supersede(fact, None)
    if current is None:
        return
    if _is_past(fact, current):
        ends = min(filter(None, (fact.valid_to, current.valid_from)))
        _save(fact, state=FactState.SUPERSEDED, valid_to=ends)
    else:
        _save(fact, replaces=current.memory_id)
        _supersede(current, by=fact, author=author)


def _same_fact(entry: MemoryEntry) -> MemoryEntry | None:
    """Return the fact with the same text, or the same value of the same slot; locked."""
    is_same = Q(content_digest=fields.digest(entry.content))
    if entry.slot and entry.value:
        is_same |= Q(slot=entry.slot, subject__iexact=entry.subject, value__iexact=entry.value)
    candidates = list(
        fact_rows.same_scope(entry)
        .entries()
        .filter(is_same)
        .select_for_update()
        .order_by("created_at")
    )
    order = [FactState.ACTIVE, FactState.PROPOSED, FactState.SUPERSEDED]
    return min(
        candidates,
        key=lambda fact: order.index(fact.state) if fact.state in order else len(order),
        default=None,
    )


def _record_new(
    entry: MemoryEntry,
    quotes: Sequence[Quote],
    *,
    author: Author,
    review: str,
    superseded_id: UUID | None,
) -> RecordedCandidate | None:
    """Insert a candidate as a new fact; None if another writer was first."""
    current = _fact_to_supersede(entry, superseded_id)
    times = [quote.message.created_at for quote in quotes]
    entry.learned_at = min(times)
    if not isinstance(entry.valid_from, datetime):
        entry.valid_from = entry.learned_at
    is_past = _is_past(entry, current)
    if current is not None and is_past:
        entry.valid_to = min(filter(None, (entry.valid_to, current.valid_from)))
    elif current is not None:
        entry.replaces = current.memory_id
        if _is_from_person(current):
            review = _with_reason(review, CONFLICT)
    entry.review_reason = review
    entry.state = (
        FactState.PROPOSED if review else FactState.SUPERSEDED if is_past else FactState.ACTIVE
    )
    if fact_rows.insert(entry) is not entry:
        return None
    _add_evidence(entry, quotes, entry.run_id)
    record_event(entry, FactAction.PROPOSE, author=author, reason=review)
    if review:
        return RecordedCandidate(Outcome.PROPOSED, entry.memory_id)
    record_event(entry, FactAction.CONFIRM, author=models.SYSTEM, reason=NO_REVIEW)
    if is_past:
        return RecordedCandidate(Outcome.PAST, entry.memory_id)
    if current is not None:
        _supersede(current, by=entry, author=author)
    return RecordedCandidate(
        Outcome.ACTIVE, entry.memory_id, current.memory_id if current else None
    )


def _record_again(
    existing: MemoryEntry,
    entry: MemoryEntry,
    quotes: Sequence[Quote],
    *,
    author: Author,
    review: str,
    superseded_id: UUID | None,
) -> RecordedCandidate:
    """Record a candidate for a fact that exists."""
    memory_id = existing.memory_id
    is_closed = existing.state in (FactState.REJECTED, FactState.RETRACTED)
    versions = MemoryEntry.objects.filter(version_of=memory_id).values("memory_id")
    rows = FactEvidence.objects.filter(Q(memory_id=memory_id) | Q(memory_id__in=versions))
    if is_closed and {quote.source_digest for quote in quotes} <= set(
        map(bytes, rows.values_list("source_digest", flat=True))
    ):
        return RecordedCandidate(Outcome.REJECTED_BEFORE, memory_id)
    if not _add_evidence(existing, quotes, entry.run_id):
        return RecordedCandidate(Outcome.UNCHANGED, memory_id)
    newest = max(quote.message.created_at for quote in quotes)
    if existing.state in (FactState.ACTIVE, FactState.PROPOSED) or (
        existing.state == FactState.SUPERSEDED and existing.valid_to and newest < existing.valid_to
    ):
        record_event(existing, FactAction.CONFIRM, author=author, reason=MORE_EVIDENCE)
        return RecordedCandidate(Outcome.CONFIRMED, memory_id)
    # Stated again after it had ended, or after a person decided against it.
    current = _fact_to_supersede(existing, superseded_id)
    if is_closed:
        review = _with_reason(review, REJECTED_BEFORE)
    if current is not None and _is_from_person(current):
        review = _with_reason(review, CONFLICT)
    fact_rows.keep_version(existing, until=newest)
    _save(
        existing,
        state=FactState.PROPOSED if review else FactState.ACTIVE,
        valid_from=entry.valid_from if isinstance(entry.valid_from, datetime) else newest,
        valid_to=None,
        retracted_at=None,
        review_reason=review,
        replaces=current.memory_id if current else None,
    )
    fact_rows.write_attributes(existing)
    record_event(existing, FactAction.PROPOSE, author=author, reason=review)
    if review:
        return RecordedCandidate(Outcome.PROPOSED, memory_id)
    if current is not None:
        _supersede(current, by=existing, author=author)
    return RecordedCandidate(Outcome.ACTIVE, memory_id, current.memory_id if current else None)


# --- Decisions ------------------------------------------------------------------------------------


def confirm(memory_id: UUID, *, author: Author, reason: str = "") -> MemoryEntry:
    """Activate a proposed fact. It supersedes the fact that it replaces.

    Args:
        memory_id: the fact.
        author: a person or a program.
        reason: recorded in the fact's events.

    Raises:
        FactNotFound: the tenant has no such fact.
        WrongFactState: the fact is not proposed.
        OwnProposal: the proposal is the author's own.
    """
    with transaction.atomic():
        fact = _lock_fact(memory_id, FactState.PROPOSED)
        refuse_own_proposal(memory_id, author)
        current = _fact_to_supersede(fact, fact.replaces)
        is_past = _is_past(fact, current)
        changes: dict[str, Any] = {"state": FactState.ACTIVE, "review_reason": ""}
        if current is not None and is_past:
            changes |= {"state": FactState.SUPERSEDED, "valid_to": current.valid_from}
        _save(fact, **changes)
        record_event(fact, FactAction.CONFIRM, author=author, reason=reason)
        if current is not None and not is_past:
            _supersede(current, by=fact, author=author)
    return fact


def refuse_own_proposal(memory_id: UUID, author: Author) -> None:
    """Raise OwnProposal if the author proposed the fact, which needs another's confirmation."""
    if author.owns_proposal is not None:
        is_own = author.owns_proposal(memory_id)
    else:
        is_own = (
            author.kind in (models.AuthorKind.PROGRAM, models.AuthorKind.RUN)
            and FactEvent.objects.filter(
                memory_id=memory_id,
                action=FactAction.PROPOSE,
                author_kind=author.kind,
                author_id=author.id,
            ).exists()
        )
    if is_own:
        raise exceptions.OwnProposal(memory_id)


def reject(memory_id: UUID, *, author: Author, reason: str = "") -> MemoryEntry:
    """Reject a proposed fact. It is not proposed again from the same messages or their copies.

    Raises:
        FactNotFound: the tenant has no such fact.
        WrongFactState: the fact is not proposed.
    """
    with transaction.atomic():
        fact = _lock_fact(memory_id, FactState.PROPOSED)
        _save(fact, state=FactState.REJECTED)
        record_event(fact, FactAction.REJECT, author=author, reason=reason)
    return fact


def retract(memory_id: UUID, *, author: Author, reason: str = "") -> MemoryEntry:
    """Retract a fact that was wrong. Agents no longer use it; its history stays.

    Recall leaves out its evidence, and the replies that used it and repeat its value.

    Raises:
        FactNotFound: the tenant has no such fact.
        WrongFactState: the fact is neither active nor superseded.
    """
    with transaction.atomic():
        fact = _lock_fact(memory_id, FactState.ACTIVE, FactState.SUPERSEDED)
        _save(fact, state=FactState.RETRACTED, retracted_at=timezone.now())
        fact_rows.exclude_corrected(fact, author=author, reason=reason)
        record_event(fact, FactAction.RETRACT, author=author, reason=reason)
    return fact


def restore(memory_id: UUID, *, author: Author, reason: str = "") -> MemoryEntry:
    """Undo a rejection, a retraction or a supersession, and the exclusions from recall with it.

    A rejected fact is proposed again; a retracted or superseded one is active again.

    Raises:
        FactNotFound: the tenant has no such fact.
        WrongFactState: the fact is active or proposed.
        SlotTaken: its single-valued slot has another active value, which has to be retracted first.
    """
    with transaction.atomic():
        closed = (FactState.REJECTED, FactState.RETRACTED, FactState.SUPERSEDED)
        fact = _lock_fact(memory_id, *closed)
        if fact.state == FactState.REJECTED:
            changes: dict[str, Any] = {"state": FactState.PROPOSED}
        else:
            current = None if fact.is_multi_valued else _current_value(fact)
            if current is not None:
                raise exceptions.SlotTaken(fact.slot, current.memory_id)
            changes = {"state": FactState.ACTIVE, "retracted_at": None}
            if fact.state == FactState.SUPERSEDED:
                changes["valid_to"] = None
        _save(fact, **changes)
        fact_rows.include_corrected([memory_id])
        record_event(fact, FactAction.RESTORE, author=author, reason=reason)
    return fact


def roll_back(run_id: UUID, *, author: Author) -> dict[str, list[MemoryEntry]]:
    """Undo an extraction run: remove its evidence and its facts, and restore superseded facts.

    A fact stays if it has evidence of another run, or if a person or program changed or confirmed
    it after the run.

    Returns:
        The "removed", "restored" and "kept" facts.
    """
    reason = "extraction run rolled back"
    with transaction.atomic():
        fact_ids = set(
            FactEvidence.objects.filter(run_id=run_id).values_list("memory_id", flat=True)
        )
        facts = list(_facts_for_update().filter(Q(run_id=run_id) | Q(memory_id__in=fact_ids)))
        FactEvidence.objects.filter(run_id=run_id).delete()
        fact_ids = {fact.memory_id for fact in facts}
        supported = FactEvidence.objects.filter(memory_id__in=fact_ids)
        kept_ids = {
            *_decisions(fact_ids).values_list("memory_id", flat=True),
            *supported.values_list("memory_id", flat=True),
        }
        removed = [
            fact for fact in facts if fact.run_id == run_id and fact.memory_id not in kept_ids
        ]
        kept = [fact for fact in facts if fact not in removed]
        ids = [fact.memory_id for fact in removed]
        superseded = FactEvent.objects.filter(action=FactAction.SUPERSEDE, other_id__in=ids)
        to_restore = list(
            _facts_for_update().filter(
                memory_id__in=superseded.values("memory_id"), state=FactState.SUPERSEDED
            )
        )
        MemoryEntry.objects.filter(Q(memory_id__in=ids) | Q(version_of__in=ids)).delete()
        restored = []
        for fact in to_restore:
            if fact in removed or (not fact.is_multi_valued and _current_value(fact)):
                continue
            _save(fact, state=FactState.ACTIVE, valid_to=None)
            fact_rows.include_corrected([fact.memory_id])
            record_event(fact, FactAction.RESTORE, author=author, reason=reason)
            restored.append(fact)
    return {"removed": removed, "restored": restored, "kept": kept}


# --- Rows -----------------------------------------------------------------------------------------


def _facts_for_update() -> models.MemoryEntryQuerySet:
    return MemoryEntry.objects.entries().select_for_update().order_by("memory_id")


def _lock_fact(memory_id: UUID, *states: FactState) -> MemoryEntry:
    fact = _facts_for_update().filter(memory_id=memory_id).first()
    if fact is None:
        raise exceptions.FactNotFound(f"there is no fact {memory_id}")
    if fact.state not in states:
        raise exceptions.WrongFactState(memory_id, fact.state, states)
    return fact


def _facts_of_slot(fact: MemoryEntry) -> models.MemoryEntryQuerySet:
    """Return the facts of the same agent and user with the same subject and slot."""
    rows = fact_rows.same_scope(fact).entries()
    return rows.filter(slot=fact.slot, subject__iexact=fact.subject) if fact.slot else rows.none()


def _fact_to_supersede(fact: MemoryEntry, superseded_id: UUID | None) -> MemoryEntry | None:
    """Return the active fact that a fact supersedes, locked.

    It is that with `superseded_id`, if that is still active, or else the current value of the same
    single-valued slot.
    """
    current = None
    if superseded_id is not None:
        current = _other_values(fact).filter(memory_id=superseded_id).first()
    return current or (None if fact.is_multi_valued else _current_value(fact))


def _current_value(fact: MemoryEntry) -> MemoryEntry | None:
    """Return the active fact of the same single-valued slot, locked; None without another value."""
    return _other_values(fact).order_by("-valid_from").first()


def _other_values(fact: MemoryEntry) -> models.MemoryEntryQuerySet:
    others = _facts_of_slot(fact).as_of().exclude(memory_id=fact.memory_id)
    return others.exclude(value__iexact=fact.value).select_for_update()


def _is_past(fact: MemoryEntry, current: MemoryEntry | None) -> bool:
    """Return whether a single-valued slot had this value before its current one."""
    return current is not None and not fact.is_multi_valued and fact.valid_from < current.valid_from


def _is_from_person(fact: MemoryEntry) -> bool:
    """Return whether a person or program entered, changed or confirmed it.

    A model may only propose a new value of it.
    """
    return fact.kind == models.FactKind.ENTERED or _decisions([fact.memory_id]).exists()


def _decisions(memory_ids: Collection[UUID]) -> QuerySet[FactEvent]:
    return FactEvent.objects.filter(
        memory_id__in=memory_ids,
        action__in=(FactAction.ENTER, FactAction.CHANGE, FactAction.CONFIRM),
        author_kind__in=DECIDING_AUTHORS,
    )


def _supersede(fact: MemoryEntry, *, by: MemoryEntry, author: Author) -> None:
    """End a fact's validity at the beginning of its successor's.

    A fact that a person entered is a correction. A new statement of the user is a change: the old
    statement was true.
    """
    _save(
        fact,
        state=FactState.SUPERSEDED,
        valid_to=max(fact.valid_from, by.valid_from),
        valid_to_precision=by.valid_from_precision,
    )
    record_event(fact, FactAction.SUPERSEDE, author=author, other_id=by.memory_id)
    if by.kind == models.FactKind.ENTERED and author.kind in DECIDING_AUTHORS:
        fact_rows.exclude_corrected(fact, author=author, new_content=by.content)


def _save(fact: MemoryEntry, **changes: Any) -> None:
    for name, value in changes.items():
        setattr(fact, name, value)
    fact.updated_at = timezone.now()
    fact.save(update_fields=[*changes, "updated_at"])


def _add_evidence(fact: MemoryEntry, quotes: Sequence[Quote], run_id: UUID | None) -> bool:
    """Add the quotes that the fact does not have; return whether there was a new one."""
    added = [
        FactEvidence.objects.get_or_create(
            memory_id=fact.memory_id,
            message_id=quote.message.pk,
            start=quote.start,
            end=quote.end,
            defaults={"quote": quote.text, "source_digest": quote.source_digest, "run_id": run_id},
        )
        for quote in quotes
    ]
    return any(is_new for _, is_new in added)


def _with_reason(review: str, reason: str) -> str:
    reasons = review.split(", ") if review else []
    return review if reason in reasons else ", ".join([*reasons, reason])
