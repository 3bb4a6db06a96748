"""Facts: statements that are stored apart from conversations, with versions and validity."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Unpack
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from memory import arguments, exceptions, fields, models
from memory.conf import NEAR_DUPLICATE, PREFERENCE_SLOTS, SMALL_SET
from memory.embedding.embedder import embed, model_version, require_configured_model
from memory.facts import lifecycle, rows as fact_rows
from memory.models.attributes import metadata_values
from memory.models.facts import SYSTEM, Author, FactAction, FactKind, FactState, MemoryEntry
from memory.text.changes import differs_by_one_word
from tenants import transaction
from tenants.audit import people, tombstones
from tenants.context import asynchronous, current_tenant_id, known_tenant
from tenants.exceptions import UnknownTenant
from tenants.schemas.migrating import require_migrated

MAX_NEAR_DUPLICATES = 5
REMOVE_BATCH = 1_000
# An agent can find one text for one user as four facts: of the agent or of all agents, about the
# user or about no user.
MAX_COPIES = 4


@dataclass(frozen=True, slots=True)
class StoredFact:
    """The result of storing a fact."""

    memory_id: UUID
    created: bool
    """False: a fact with the same text existed, and `memory_id` is its id."""
    near_duplicates: tuple[MemoryEntry, ...] = ()
    """Similar facts, nearest first, with the cosine similarity as `score`."""


class LongTermMemory:
    """A tenant's facts. Each method enters the tenant of its argument.

    A tenant that does not exist has no facts.

    Args:
        database_url: the database of this process, or None.
        embedding_model: the embedding model of this process, or None.

    Raises:
        InvalidArgument: another database or model is named. Settings choose them.
    """

    def __init__(self, database_url: str | None = None, embedding_model: str | None = None) -> None:
        arguments.require_configured_database(database_url)
        require_configured_model(embedding_model)

    def setup(self) -> None:
        """Check that the tables exist in the current tenant, or in all tenants outside of one.

        `manage.py migrate` creates them. This method changes nothing.

        Raises:
            SchemaOutdated: `manage.py migrate` must be run first.
        """
        require_migrated(current_tenant_id())

    # --- Writing ----------------------------------------------------------------------------

    def store(self, entry: MemoryEntry) -> UUID:
        """Store a fact; the same text of the same agent and user is the same entry.

        If the text exists, the metadata is merged into that of the entry (see `merge_metadata`),
        and valid_from, valid_to and expires_at are set. The state before is kept as a version.

        With a `slot` that is not multi-valued, its value supersedes the current one of the same
        agent, user and subject; one that was valid before ends when that began.

        With an `external_id`, that id identifies the entry instead of the text: of the same agent
        and user there is one entry with it, and its text and metadata become those of `entry`.

        Args:
            entry: a new `MemoryEntry` with its tenant_id and content; optionally agent_id, user_id,
                external_id, metadata, valid_from, valid_to, expires_at and embedding (384 numbers).

        Returns:
            The entry's memory_id, which all updates keep.

        Raises:
            InvalidArgument: a field is invalid.
            UnknownTenant: there is no such tenant.
            OwnProposal: the author proposed this text, and it was not confirmed.
            FactBusy: others stored and deleted the same text during MAX_ATTEMPTS attempts.
        """
        return self.remember(entry).memory_id

    def remember(self, entry: MemoryEntry, *, author: Author = SYSTEM) -> StoredFact:
        """Store a fact as `store` does; report whether it existed, and facts that are similar.

        Near duplicates are reported and never merged: "likes tea" and "likes no tea" are near. A
        fact that was extracted, rejected or retracted becomes active, and no longer depends on its
        evidence.

        Args:
            entry: as `store` takes it.
            author: recorded in the fact's events.

        Raises:
            PersonBeingErased: an erasure of the user is requested, and not done yet.
        """
        with known_tenant(fact_rows.tenant_of_entry(entry)):
            people.hold_people([entry.user_id], agent_ids=[entry.agent_id])
            return self._remember(entry, author)

    def _remember(self, entry: MemoryEntry, author: Author) -> StoredFact:
        """Store a fact; the caller holds its user."""
        with known_tenant(fact_rows.tenant_of_entry(entry)) as tenant_id:
            entry.tenant_id = tenant_id
            fact_rows.check_entry(entry)
            _refuse_own_proposal_of(entry, author)
            for _ in range(fact_rows.MAX_ATTEMPTS):
                existing = fact_rows.existing_entry(entry)
                if existing is None:
                    entry.embedding, entry.embedding_model = _vector_of(entry), model_version()
                    with transaction.atomic():
                        existing = fact_rows.insert(entry)
                        if existing is entry:
                            lifecycle.record_event(entry, FactAction.ENTER, author=author)
                            if entry.slot:
                                lifecycle.supersede_by_entered(entry.memory_id, author)
                            break
                if existing is not None:
                    if existing.content != entry.content:
                        entry.embedding = _vector_of(entry)
                    with suppress(exceptions.FactNotFound):  # deleted meanwhile
                        return _merge_duplicate(existing, entry, author)
            else:
                raise exceptions.FactBusy(fact_rows.MAX_ATTEMPTS)
            others = fact_rows.same_scope(entry).as_of().exclude(memory_id=entry.memory_id)
            near = tuple(
                other
                for other in fact_rows.nearest_facts(
                    others, entry.embedding, MAX_NEAR_DUPLICATES, threshold=NEAR_DUPLICATE
                )
                if not differs_by_one_word(other.content, entry.content)
            )
        return StoredFact(entry.memory_id, created=True, near_duplicates=near)

    def remember_all(
        self,
        entries: Sequence[MemoryEntry],
        *,
        author: Author = SYSTEM,
        since: Mapping[str, str] | None = None,
    ) -> list[StoredFact]:
        """Store several facts in one transaction: all of them, or none.

        Their texts are embedded together, before the transaction.

        Args:
            entries: new facts of one tenant, each as `store` takes it.
            author: recorded in the facts' events.
            since: see `tenants.audit.people.hold_people`.

        Returns:
            The result for each entry, in the order of `entries`.

        Raises:
            InvalidArgument: a field of an entry is invalid.
            PersonBeingErased: an erasure of a user is requested and not done, or was done since.
            UnknownTenant: there is no such tenant.
        """
        embed_facts(entries)
        # Always in the same order, so that two requests with the same facts do not deadlock.
        names = ("agent_id", "user_id", "external_id", "content")
        order = sorted(
            range(len(entries)),
            key=lambda n: [str(getattr(entries[n], name) or "") for name in names],
        )
        with transaction.atomic():
            people.hold_people(
                {entry.user_id for entry in entries},
                agent_ids={entry.agent_id for entry in entries},
                since=since,
            )
            stored = {n: self._remember(entries[n], author) for n in order}
        return [stored[n] for n in range(len(entries))]

    def update(
        self,
        memory_id: UUID | str,
        tenant_id: UUID | str,
        *,
        embedding: list[float] | None = None,
        replaces_metadata: bool = False,
        author: Author = SYSTEM,
        reason: str = "",
        **changes: Unpack[models.FactChanges],
    ) -> MemoryEntry:
        """Change a fact. The old state is kept as a version.

        Fields that are left out keep their values. Metadata is merged into the stored metadata (see
        `merge_metadata`), or replaces it with `replaces_metadata`. A new content or value is valid
        from now, and the old version was valid until now. With `valid_from` (not in the future, and
        after the old version's) the old version was valid until then. With a new content the fact
        is the author's: its evidence stays with the old version, and recall excludes it, with the
        replies that used the fact and repeat the old value. An update to the old content includes
        them again. Without a value, the slot gets the words of the new content that replace its
        value, see `value_in`.

        Args:
            embedding: the vector of the content, if the caller has it.
            author: recorded in the fact's events, with the reason.

        Raises:
            FactNotFound: the tenant has no such fact.
            OwnProposal: the author proposed this text as another fact, which is not confirmed.
            DuplicateFact: another fact has this content.
            FactBusy: others stored and deleted the new text during MAX_ATTEMPTS attempts.
            InvalidArgument: a value is invalid.
        """
        fact_id = arguments.uuid_argument("memory_id", memory_id)
        if "content" in changes:
            arguments.content_argument(changes["content"])
        if "metadata" in changes:
            metadata_values(changes["metadata"])
        for name in ("valid_from", "valid_to", "expires_at"):
            if (time := changes.get(name)) is not None:
                arguments.utc_argument(name, time)
        with known_tenant(tenant_id):
            # Embedded before the transaction, so that others need not wait for it.
            if "content" in changes and embedding is None:
                embedding = embed([changes["content"]])[0]
            with transaction.atomic():
                changed = fact_rows.update_entry(
                    fact_id,
                    changes,
                    embedding=embedding,
                    replaces_metadata=replaces_metadata,
                    author=author,
                    reason=reason,
                )
                _refuse_own_proposal_of(changed, author)
                lifecycle.record_event(changed, FactAction.CHANGE, author=author, reason=reason)
                return changed

    def delete(self, memory_id: UUID | str, tenant_id: UUID | str) -> bool:
        """Remove a fact with all its versions; return False if the tenant has no such fact."""
        fact_id = arguments.uuid_argument("memory_id", memory_id)
        with suppress(UnknownTenant), known_tenant(tenant_id) as tenant:
            facts = MemoryEntry.objects.of_tenant(tenant).entries()
            return delete_facts(facts.filter(memory_id=fact_id)) > 0
        return False

    # --- Reading ----------------------------------------------------------------------------

    def search(
        self,
        tenant_id: UUID | str,
        query: str | Sequence[float],
        limit: int = 10,
        agent_id: UUID | str | None = None,
        *,
        user_id: str | None = None,
        shared: bool = True,
        shared_only: bool = False,
        filters: Mapping[str, Any] | None = None,
        at: datetime | None = None,
        threshold: float = -1.0,
        query_embedding: Sequence[float] | None = None,
        without_evidence: bool = False,
    ) -> list[MemoryEntry]:
        """Return the facts nearest to a text, best first.

        Args:
            tenant_id: owner of the facts.
            query: the question, or its vector of 384 numbers.
            limit: the maximum number of facts.
            agent_id: only facts of this agent, and of all agents. Of several facts with the same
                text, the newest is returned.
            user_id: only facts about this user, and about no user.
            shared: False leaves out the facts about no user.
            shared_only: only facts about no user; for a prompt of an unknown user.
            filters: conditions on the metadata, see `memory.models.attributes`.
            at: facts valid at that time, in their version of then; by default those valid now.
            threshold: least cosine similarity, from -1 to 1.
            query_embedding: the vector of a text query, if the caller has it.
            without_evidence: only facts without evidence in messages of this agent and user.
                `recall` finds the others.

        Returns:
            Entries; `score` is the cosine similarity.

        Raises:
            InvalidArgument: a value is invalid.
        """
        arguments.count_argument("limit", limit)
        arguments.similarity_argument("threshold", threshold)
        if not isinstance(query, str):
            vector = arguments.vector_argument("query", query)
        elif query_embedding is not None:
            vector = arguments.vector_argument("query_embedding", query_embedding)
        else:
            vector = embed([arguments.text_argument("query", query)], is_query=True)[0]
        with suppress(UnknownTenant), known_tenant(tenant_id, savepoint=False) as tenant:
            rows = fact_rows.filter_facts(
                tenant,
                agent_id=agent_id,
                user_id=user_id,
                shared=shared,
                shared_only=shared_only,
                filters=filters,
                at=at,
            )
            if without_evidence:
                rows = rows.without_evidence(agent_id, user_id)
            facts = fact_rows.nearest_facts(rows, vector, limit, threshold=threshold)
            if agent_id is not None and len(_without_repeated_texts(facts, user_id)) < len(facts):
                facts = fact_rows.nearest_facts(
                    rows, vector, limit * MAX_COPIES, threshold=threshold
                )
                return _without_repeated_texts(facts, user_id)[:limit]
            return facts
        return []

    def always_given(
        self, tenant_id: UUID | str, agent_id: UUID | str | None, user_id: str
    ) -> list[MemoryEntry]:
        """Return the facts about a user that each prompt of a chat has, whatever the question is.

        These are allergies and preferences, by their slots; if the user has at most SMALL_SET
        facts, all of them.
        """
        with suppress(UnknownTenant), known_tenant(tenant_id, savepoint=False) as tenant:
            rows = fact_rows.filter_facts(tenant, agent_id=agent_id, user_id=user_id, shared=False)
            is_preference = Q(slot__iregex=PREFERENCE_SLOTS)
            rows = rows.defer("embedding").annotate(is_preference=is_preference)
            facts = [*rows.order_by("-is_preference", "-updated_at", "memory_id")[: SMALL_SET + 1]]
            if len(facts) > SMALL_SET:
                facts = [fact for fact in facts if fact.is_preference]
            return facts[:SMALL_SET]
        return []

    def list_by_tenant(
        self,
        tenant_id: UUID | str,
        limit: int = 50,
        *,
        agent_id: UUID | str | None = None,
        user_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        at: datetime | None = None,
    ) -> list[MemoryEntry]:
        """Return the newest facts, newest first; filtered as in `search`."""
        arguments.count_argument("limit", limit)
        with suppress(UnknownTenant), known_tenant(tenant_id, savepoint=False) as tenant:
            rows = fact_rows.filter_facts(
                tenant, agent_id=agent_id, user_id=user_id, filters=filters, at=at
            )
            return [*rows.order_by("-created_at", "-memory_id")[:limit]]
        return []

    def get(
        self, memory_id: UUID | str, tenant_id: UUID | str, *, at: datetime | None = None
    ) -> MemoryEntry | None:
        """Return a fact as it is, or as it was at a time; None if it is (or was) not valid."""
        fact_id = arguments.uuid_argument("memory_id", memory_id)
        with suppress(UnknownTenant), known_tenant(tenant_id, savepoint=False) as tenant:
            rows = MemoryEntry.objects.of_tenant(tenant).versions_of(fact_id)
            return (
                rows.as_of(at and arguments.utc_argument("at", at)).order_by("-valid_from").first()
            )
        return None

    def history(self, memory_id: UUID | str, tenant_id: UUID | str) -> list[MemoryEntry]:
        """Return all versions of a fact, newest first: the entry itself, then its earlier states.

        Including expired ones; [] if the tenant has no such fact.
        """
        fact_id = arguments.uuid_argument("memory_id", memory_id)
        with suppress(UnknownTenant), known_tenant(tenant_id, savepoint=False) as tenant:
            return [*MemoryEntry.objects.of_tenant(tenant).versions_of(fact_id)]
        return []

    asetup = asynchronous(setup)
    astore = asynchronous(store)
    aremember = asynchronous(remember)
    aremember_all = asynchronous(remember_all)
    aupdate = asynchronous(update)
    adelete = asynchronous(delete)
    asearch = asynchronous(search)
    alist_by_tenant = asynchronous(list_by_tenant)
    aget = asynchronous(get)
    ahistory = asynchronous(history)


def embed_facts(entries: Sequence[MemoryEntry]) -> None:
    """Set the embedding of each new fact that has none. Their texts are embedded together.

    Raises:
        InvalidArgument: a field of an entry is invalid.
    """
    for entry in entries:
        fact_rows.check_entry(entry)
    plain = [entry for entry in entries if entry.embedding is None]
    for entry, vector in zip(plain, embed([entry.content for entry in plain]), strict=True):
        entry.embedding = vector


def delete_facts(rows: models.MemoryEntryQuerySet) -> int:
    """Remove facts of the current tenant, with all their versions, and return their number.

    All or none of them. `rows` are current facts, not versions.
    """
    with transaction.atomic():
        memory_ids = [*rows.order_by("memory_id").values_list("memory_id", flat=True)]
        removed = 0
        for start in range(0, len(memory_ids), REMOVE_BATCH):
            batch = memory_ids[start : start + REMOVE_BATCH]
            # Locked first: versions that others add meanwhile would stay without their fact.
            entries = MemoryEntry.objects.entries().filter(memory_id__in=batch).select_for_update()
            removed += len(entries.order_by("memory_id").values_list("memory_id"))
            tombstones.enqueue_tombstones(tombstones.FACT, *batch)
            MemoryEntry.objects.filter(Q(memory_id__in=batch) | Q(version_of__in=batch)).delete()
    return removed


def reembed_facts(tenant_id: UUID | str, *, batch: int = 256) -> int:
    """Embed facts that have vectors of another model with the current model; return their number.

    Until then a search does not find them. It can be interrupted, repeated, and run beside writers.
    """
    with known_tenant(tenant_id) as tenant:
        stale = MemoryEntry.objects.of_tenant(tenant).exclude(embedding_model=model_version())
        rows = [*stale.only("memory_id", "content").order_by("memory_id")[:batch]]
        for row, vector in zip(rows, embed([row.content for row in rows]), strict=True):
            # Not if the fact was changed meanwhile: its vector would belong to another text.
            stale.filter(memory_id=row.memory_id, content_digest=fields.digest(row.content)).update(
                embedding=vector, embedding_model=model_version()
            )
        return len(rows)


# --- Inside the tenant ----------------------------------------------------------------------


def _refuse_own_proposal_of(entry: MemoryEntry, author: Author) -> None:
    """Refuse a fact with an external id, and the text of the author's proposal without one."""
    if entry.external_id is None:
        return  # then the proposal is the same fact
    proposals = fact_rows.same_scope(entry).filter(
        content_digest=fields.digest(entry.content),
        external_id=None,
        version_of=None,
        state__in=(FactState.PROPOSED, FactState.REJECTED),
    )
    for memory_id in proposals.values_list("memory_id", flat=True):
        lifecycle.refuse_own_proposal(memory_id, author)


def _vector_of(entry: MemoryEntry) -> list[float]:
    if entry.embedding is None:
        return embed([entry.content])[0]
    return arguments.vector_argument("embedding", entry.embedding)


def _without_repeated_texts(
    entries: Sequence[MemoryEntry], user_id: str | None
) -> list[MemoryEntry]:
    """Return the first entry with each text. The same text about two users is two facts."""
    by_text: dict[tuple[str, str | None], MemoryEntry] = {}
    for entry in entries:
        about = None if entry.user_id == user_id else entry.user_id
        by_text.setdefault((entry.content, about), entry)
    return [*by_text.values()]


def _merge_duplicate(existing: MemoryEntry, entry: MemoryEntry, author: Author) -> StoredFact:
    """Merge `entry` into the existing fact with its external id, or else its text."""
    now, since = timezone.now(), entry.valid_from
    will_be_valid = (not isinstance(since, datetime) or since <= now) and all(
        end is None or end > now for end in (entry.valid_to, entry.expires_at)
    )
    # A fact that has ended, or begins later, is valid from now on.
    is_valid = MemoryEntry.objects.filter(memory_id=existing.memory_id).as_of().exists()
    revived = will_be_valid and not is_valid
    with transaction.atomic():
        if revived and existing.state in (FactState.PROPOSED, FactState.REJECTED):
            lifecycle.refuse_own_proposal(existing.memory_id, author)
        merged = fact_rows.merge_into(existing.memory_id, entry, revived=revived, author=author)
        if revived:
            fact_rows.include_corrected([existing.memory_id])
        if revived or existing.kind != FactKind.ENTERED:
            # It no longer depends on evidence.
            MemoryEntry.objects.filter(pk=existing.memory_id).update(kind=FactKind.ENTERED)
            lifecycle.record_event(merged, FactAction.ENTER, author=author)
        elif existing.content != entry.content:
            lifecycle.record_event(merged, FactAction.CHANGE, author=author)
        if entry.slot:
            lifecycle.supersede_by_entered(existing.memory_id, author)
    return StoredFact(existing.memory_id, created=False)
