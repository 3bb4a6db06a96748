"""Tables of facts: statement, validity, evidence, and the author of each change."""

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self, TypedDict
from uuid import UUID

from django.apps import apps
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext
from pgvector.django import VectorField

from memory import arguments, conf
from memory.fields import DigestField, IdentityField, vector_index
from memory.models.attributes import Attribute, attribute_indexes, with_metadata
from tenants import fields
from tenants.models import TenantModel
from tenants.personal_data import OF_USER, Export, Merge, PersonalData, rows_of_user


def server_clock() -> models.Func:
    """Postgres' clock: facts that are stored in one transaction still come one after the other."""
    return models.Func(function="clock_timestamp", output_field=models.DateTimeField())


class FactKind(models.TextChoices):
    """The origin of a fact."""

    OBSERVED = "observed", "stated in a message"
    INFERRED = "inferred", "concluded from messages"
    ENTERED = "entered", "entered by a person or a program"


class FactState(models.TextChoices):
    """The state of a fact. Only active facts are given to agents."""

    PROPOSED = "proposed", "proposed"
    ACTIVE = "active", "active"
    SUPERSEDED = "superseded", "superseded"
    RETRACTED = "retracted", "retracted"
    REJECTED = "rejected", "rejected"


class Precision(models.TextChoices):
    """How exactly a date is known. Empty: as a moment."""

    MOMENT = "", "moment"
    DAY = "day", "day"
    MONTH = "month", "month"
    YEAR = "year", "year"


class FactChanges(TypedDict, total=False):
    """New values of fields of a fact. A field that is left out keeps its value."""

    content: str
    value: str
    slot: str
    subject: str
    is_multi_valued: bool
    metadata: Mapping[str, Any]
    valid_from: datetime
    valid_to: datetime | None
    expires_at: datetime | None


class MemoryEntryQuerySet(models.QuerySet):
    """Facts and their old versions."""

    def of_tenant(self, tenant_id: UUID | str) -> Self:
        """Return the tenant's rows. The schema and the policy check it independently."""
        return self.filter(tenant_id=tenant_id)

    def entries(self) -> Self:
        """Return current facts, without old versions."""
        return self.filter(version_of__isnull=True)

    def versions_of(self, memory_id: UUID | str) -> Self:
        """Return an entry and its earlier versions, newest first, including expired ones."""
        entry = models.Q(memory_id=memory_id, version_of__isnull=True)
        # A version keeps its updated_at, and each was written after the one before.
        return self.filter(entry | models.Q(version_of=memory_id)).order_by(
            "-updated_at", "-memory_id"
        )

    def as_of(self, at: datetime | None = None) -> Self:
        """Return the facts that are valid now, or were valid at a time: at most one version each.

        Proposed and rejected facts are never valid. A superseded fact was valid until it was
        superseded, a retracted one until it was retracted.
        """
        time = Now() if at is None else at
        if at is None:
            rows = self.entries().filter(state="active")
        else:
            retracted_later = models.Q(state="retracted", retracted_at__gt=at)
            rows = self.filter(models.Q(state__in=("active", "superseded")) | retracted_later)
        return rows.filter(
            models.Q(valid_to__isnull=True) | models.Q(valid_to__gt=time),
            models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=time),
            valid_from__lte=time,
        )

    def waiting_for_review(self) -> Self:
        """Return the proposed facts, without those of which recall excludes all evidence."""
        evidence = FactEvidence.objects
        exclusions = apps.get_model("memory", "RecallExclusion").objects
        of_message = exclusions.filter(message_id=models.OuterRef("message_id"))
        whole = models.Q(start__isnull=True)
        words = models.Q(start__lt=models.OuterRef("end"), end__gt=models.OuterRef("start"))
        of_fact = evidence.filter(memory_id=models.OuterRef("memory_id"))
        included = of_fact.exclude(models.Exists(of_message.filter(whole | words)))
        return self.entries().filter(
            models.Exists(included) | ~models.Exists(of_fact), state="proposed"
        )

    def visible_to_agent(self, agent_id: UUID | str) -> Self:
        """Return the facts of this agent, and those of all agents."""
        return self.filter(models.Q(agent_id=agent_id) | models.Q(agent_id__isnull=True))

    def about(self, user_id: str) -> Self:
        """Return the facts about this user, and those about no user."""
        return self.filter(models.Q(user_id=user_id) | models.Q(user_id__isnull=True))

    def without_evidence(self, agent_id: UUID | str | None, user_id: str | None) -> Self:
        """Leave out the facts of this agent and user that have evidence in messages."""
        evidence = FactEvidence.objects
        return self.exclude(
            models.Exists(evidence.filter(memory_id=models.OuterRef("memory_id"))),
            agent_id=agent_id,
            user_id=user_id,
        )

    def with_metadata(self, filters: Mapping[str, Any]) -> Self:
        """Return the facts with metadata that match: see `memory.models.attributes`."""
        return with_metadata(self, filters, MemoryAttribute, "memory_id")

    def comparable(self, embedding_model: str) -> Self:
        """Return the facts with vectors of this model: those of two models cannot be compared."""
        return self.filter(embedding_model=embedding_model)


# Both users have a fact of the same agent with the same external id, or else the same text.
_TWINS: Final = """
    SELECT own.memory_id, kept.memory_id AS kept FROM memory_memoryentry AS own
    JOIN memory_memoryentry AS kept ON kept.user_id = %(to)s AND kept.version_of IS NULL
     AND kept.external_id IS NOT DISTINCT FROM own.external_id
     AND (own.external_id IS NOT NULL OR kept.content_digest = own.content_digest)
     AND kept.agent_id IS NOT DISTINCT FROM own.agent_id
    WHERE own.user_id = %(from)s AND own.version_of IS NULL
"""
_MERGE_EVIDENCE: Final = f"""
    UPDATE memory_factevidence AS moved SET memory_id = twin.kept FROM ({_TWINS}) AS twin
    WHERE moved.memory_id = twin.memory_id AND NOT EXISTS (
        SELECT FROM memory_factevidence AS other
        WHERE (other.memory_id, other.message_id, other.start, other."end")
            = (twin.kept, moved.message_id, moved.start, moved."end")
    )
"""  # noqa: S608  (our constants)
_MERGE_EVENTS: Final = f"""
    UPDATE memory_factevent AS moved SET memory_id = twin.kept FROM ({_TWINS}) AS twin
    WHERE moved.memory_id = twin.memory_id
"""  # noqa: S608
# A fact that both users have becomes an old version of the other's.
_MERGE_EQUAL_FACTS: Final = f"""
    WITH twin AS ({_TWINS})
    UPDATE memory_memoryentry AS moved SET version_of = twin.kept, valid_to = CASE
        WHEN moved.memory_id = twin.memory_id
        THEN greatest(valid_from, least(coalesce(valid_to, now()), now())) ELSE valid_to END
    FROM twin WHERE moved.memory_id = twin.memory_id OR moved.version_of = twin.memory_id
"""  # noqa: S608
_ONLY_EVIDENCE: Final = """ARRAY(
    SELECT evidence.memory_id FROM memory_factevidence AS evidence
    WHERE evidence.message_id = ANY(%(ids)s) AND NOT EXISTS (
        SELECT FROM memory_factevidence AS other
        WHERE other.memory_id = evidence.memory_id AND NOT other.message_id = ANY(%(ids)s)
    )
)"""
# Facts, with their versions, of which all evidence is in the messages that are removed.
WITHOUT_OTHER_EVIDENCE: Final = (
    f"kind <> 'entered' AND (memory_id = ANY({_ONLY_EVIDENCE})"
    f" OR version_of = ANY({_ONLY_EVIDENCE}))"
)


class MemoryEntry(TenantModel):
    """A fact. An update keeps its id and stores the previous text as a version."""

    # Fields that storing sets to null in an existing fact. Others that are null are unchanged.
    cleared: Collection[str] = ()

    memory_id = fields.random_id()
    agent_id = fields.optional_id(
        "agent", help_text="The agent that knows the fact. Empty: all agents."
    )
    user_id = models.TextField(  # noqa: DJ001  (null: no user; '' would be a user)
        "user", null=True, blank=True, help_text="The user that the fact is about. Empty: no user."
    )
    external_id = models.TextField(  # noqa: DJ001  (null: none; '' would be an id)
        null=True,
        blank=True,
        editable=False,
        help_text="The id that the program chose which stored it. Empty: the text identifies it.",
    )
    content = models.TextField(help_text="The fact, in words.")
    content_digest = DigestField("content")
    metadata = fields.json_object(blank=True, help_text="Metadata, for search filters.")
    embedding = VectorField(
        dimensions=conf.EMBEDDING_DIMENSIONS, help_text="all-MiniLM-L6-v2, 384 dimensions."
    )
    embedding_model = models.TextField(
        help_text="Model and digest of its weights. Only vectors of one model can be compared."
    )
    created_at = models.DateTimeField(
        db_default=server_clock(), help_text="When it was first stored."
    )
    updated_at = models.DateTimeField(
        db_default=server_clock(), help_text="When it was changed last."
    )
    valid_from = models.DateTimeField(db_default=server_clock(), help_text="Start of validity.")
    valid_to = fields.optional_time(help_text="End of validity. Empty: still valid.")
    expires_at = fields.optional_time(help_text="Searches do not find it from this time on.")
    supersedes = fields.optional_id(editable=False, help_text="The version that this one replaced.")
    version_of = fields.optional_id(
        editable=False, help_text="The current entry of this old version."
    )

    # About whom or what, which of their attributes, and its value.
    subject = fields.optional_text(
        help_text="The name of the person or thing that the fact is about."
    )
    slot = fields.optional_text(
        help_text="The attribute of the subject, in snake_case, such as home_city. Empty: none."
    )
    is_multi_valued = fields.flag(
        "multi-valued",
        default=True,
        help_text="Whether several values of the slot can be valid at once.",
    )
    value = fields.optional_text(help_text="The value of the slot, such as Oslo.")
    kind = fields.choice(
        FactKind.ENTERED, help_text="Whether it was stated in a message, concluded, or entered."
    )
    asserter = fields.optional_text(help_text="Name of the person who stated it.")
    state = fields.choice(FactState.ACTIVE, help_text="Only active facts are given to agents.")
    valid_from_precision = fields.choice(
        Precision.MOMENT, blank=True, help_text="How exactly “valid from” is known."
    )
    valid_to_precision = fields.choice(
        Precision.MOMENT, blank=True, help_text="How exactly “valid until” is known."
    )
    learned_at = fields.optional_time(
        help_text="When the earliest message of its evidence was sent. Empty: when it was stored."
    )
    retracted_at = fields.optional_time(help_text="When it was retracted.")
    replaces = fields.optional_id(
        editable=False,
        help_text="The fact that this one supersedes, or would supersede if it is confirmed.",
    )
    review_reason = fields.optional_text(
        help_text="Why a person must review it, such as conflict or health."
    )
    run_id = fields.optional_id(
        "extraction run", editable=False, help_text="The extraction run that proposed it."
    )

    # Set by a search: the cosine similarity to the query.
    score: float

    objects = MemoryEntryQuerySet.as_manager()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Rows of the database come as positional values, and a form begins with an empty entry.
        if kwargs and not args:
            arguments.content_argument(kwargs.get("content"))
        super().__init__(*args, **kwargs)

    personal_data = rows_of_user(
        key="memory_id",
        export=Export(kind="facts", position=14, key=("memory_id",)),
        derived=WITHOUT_OTHER_EVIDENCE,
        merge=Merge(
            for_user=(
                _MERGE_EVIDENCE,
                _MERGE_EVENTS,
                _MERGE_EQUAL_FACTS,
                "UPDATE memory_memoryentry SET user_id = %(to)s WHERE user_id = %(from)s",
            )
        ),
    )

    class Meta:
        verbose_name = "fact"
        permissions = [("review_memoryentry", "Can confirm, reject, retract and restore facts")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(valid_to__isnull=True)
                | models.Q(valid_to__gte=models.F("valid_from")),
                name="fact_valid_from_before_to",
            ),
            fields.one_of("state", FactState, "fact_state"),
            fields.one_of("kind", FactKind, "fact_kind"),
            # The same external id is the same fact, or else the same text; also for concurrent
            # transactions.
            models.UniqueConstraint(
                fields=["external_id", "agent_id", "user_id"],
                condition=models.Q(version_of__isnull=True, external_id__isnull=False),
                nulls_distinct=False,
                name="fact_external_id",
            ),
            models.UniqueConstraint(
                fields=["content_digest", "agent_id", "user_id"],
                condition=models.Q(version_of__isnull=True, external_id__isnull=True),
                nulls_distinct=False,
                name="fact_content",
            ),
        ]
        indexes = [
            vector_index("fact_hnsw"),
            models.Index(
                fields=["tenant_id", "agent_id", "user_id", "-created_at"], name="fact_scope"
            ),
            models.Index(fields=["tenant_id", "-created_at"], name="fact_newest"),
            models.Index(
                fields=["user_id"],
                include=["tenant_id"],
                condition=models.Q(version_of__isnull=True),
                name="fact_user",
            ),
            models.Index(
                fields=["version_of", "valid_from"],
                condition=models.Q(version_of__isnull=False),
                name="fact_versions",
            ),
            models.Index(
                fields=["user_id", "agent_id", "slot"],
                include=["tenant_id"],
                condition=models.Q(version_of__isnull=True) & ~models.Q(slot=""),
                name="fact_slot",
            ),
            # The review queue, oldest first.
            models.Index(
                fields=["created_at", "memory_id"],
                include=["tenant_id"],
                condition=models.Q(state=FactState.PROPOSED, version_of__isnull=True),
                name="fact_proposed",
            ),
            fields.index_if_set("run_id", "fact_run"),
        ]

    @property
    def fact_id(self) -> uuid.UUID:
        """The id of the fact, which all its versions share."""
        return self.version_of or self.memory_id

    def __str__(self) -> str:
        return self.content[:60]


OF_FACTS_OF_PERSON: Final = (
    "memory_id IN (SELECT memory_id FROM memory_memoryentry WHERE "  # noqa: S608
    f"{MemoryEntry.personal_data.of_person})"
)
OF_FACTS_OF_USER: Final = f"memory_id IN (SELECT memory_id FROM memory_memoryentry WHERE {OF_USER})"  # noqa: S608
_OF_FACTS_WITHOUT_OTHER_EVIDENCE: Final = (
    "memory_id IN (SELECT memory_id FROM memory_memoryentry WHERE "  # noqa: S608
    f"{WITHOUT_OTHER_EVIDENCE})"
)


class MemoryAttribute(Attribute):
    """One value of a fact's metadata, where a b-tree can find it."""

    memory = models.ForeignKey(
        MemoryEntry, on_delete=models.CASCADE, related_name="attributes", help_text="The fact."
    )

    # An archive has the metadata, from which the import makes these rows again.
    personal_data = PersonalData(where=OF_FACTS_OF_PERSON, derived=_OF_FACTS_WITHOUT_OTHER_EVIDENCE)

    class Meta:
        verbose_name = "fact attribute"
        indexes = attribute_indexes("memory", "fact_attribute")


class FactEvidence(TenantModel):
    """A quote from a message as the evidence of a fact. Never changed."""

    id = fields.random_id()
    memory = models.ForeignKey(
        MemoryEntry,
        on_delete=models.CASCADE,
        db_index=False,
        related_name="evidence",
        help_text="The fact, or the old version that the quote states.",
    )
    message = models.ForeignKey(
        "memory.Message",
        on_delete=models.PROTECT,
        related_name="fact_evidence",
        help_text="The message.",
    )
    start = models.PositiveIntegerField(help_text="First character of the quote in the message.")
    end = models.PositiveIntegerField(help_text="Position after the last character of the quote.")
    quote = models.TextField(help_text="The words of the message, verbatim.")
    source_digest = models.BinaryField(
        help_text="Keyed digest of the message's user, time and text: copies have the same."
    )
    run_id = fields.optional_id("extraction run", help_text="The extraction run that found it.")
    created_at = models.DateTimeField(db_default=server_clock(), help_text="When it was stored.")

    personal_data = PersonalData(
        message="message_id",
        where=OF_FACTS_OF_PERSON,
        key="id",
        export=Export(kind="fact_evidence", position=18, where=OF_FACTS_OF_USER),
    )

    class Meta:
        verbose_name = "evidence of a fact"
        verbose_name_plural = "evidence of facts"
        constraints = [
            models.UniqueConstraint(
                fields=["memory", "message", "start", "end"], name="fact_evidence_quote"
            ),
            models.CheckConstraint(
                condition=models.Q(end__gt=models.F("start")), name="fact_evidence_end"
            ),
        ]
        indexes = [fields.index_if_set("run_id", "fact_evidence_run")]

    def __str__(self) -> str:
        return self.quote[:60]


class FactAction(models.TextChoices):
    """Why a fact has the state that it has."""

    ENTER = "enter", "entered"
    PROPOSE = "propose", "proposed"
    CONFIRM = "confirm", "confirmed"
    CHANGE = "change", "changed"
    SUPERSEDE = "supersede", "superseded"
    RETRACT = "retract", "retracted"
    REJECT = "reject", "rejected"
    RESTORE = "restore", "restored"


class AuthorKind(models.TextChoices):
    """The kind of the author of a change."""

    PERSON = "person", "person"
    PROGRAM = "program", "program with an API key"
    OPERATOR = "operator", "operator's command"
    RUN = "run", "extraction run"
    SYSTEM = "system", "the platform"


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a change: a person, a program, an operator, an extraction run."""

    kind: AuthorKind
    id: str = ""
    name: str = ""
    owns_proposal: Callable[[UUID], bool] | None = field(default=None, compare=False, repr=False)
    """Returns whether the proposal of a fact is the author's own, if others act for the author."""

    @property
    def address(self) -> str:
        """Kind and id in one text, such as "person:7"."""
        return f"{self.kind}:{self.id}"

    @property
    def columns(self) -> dict[str, str]:
        """Kind, id and name as columns of a row."""
        return {"author_kind": self.kind, "author_id": self.id, "author_name": self.name}


SYSTEM: Final = Author(AuthorKind.SYSTEM)


class FactEvent(TenantModel):
    """A change of a fact's state, and its author. Never changed, and deleted with the fact."""

    id = fields.random_id()
    number = IdentityField(unique=True, help_text="Order of insertion.")
    memory = models.ForeignKey(
        MemoryEntry,
        on_delete=models.CASCADE,
        db_index=False,
        related_name="events",
        help_text="The fact.",
    )
    action = models.TextField(choices=FactAction, help_text="The change.")
    author_kind = models.TextField(choices=AuthorKind, help_text="The kind of the author.")
    author_id = models.TextField(
        blank=True, default="", help_text="Id of the person, the API key or the extraction run."
    )
    author_name = models.TextField(blank=True, default="", help_text="Name of the author.")
    reason = models.TextField(blank=True, default="", help_text="The author's reason.")
    other_id = fields.optional_id(help_text="The fact that superseded this one, or was superseded.")
    created_at = models.DateTimeField(db_default=server_clock(), help_text="When it happened.")

    personal_data = PersonalData(
        where=OF_FACTS_OF_PERSON,
        derived=_OF_FACTS_WITHOUT_OTHER_EVIDENCE,
        key="id",
        export=Export(
            kind="fact_events",
            position=19,
            order="number",
            without=("number",),
            where=OF_FACTS_OF_USER,
        ),
    )

    class Meta:
        verbose_name = "event of a fact"
        verbose_name_plural = "events of facts"
        constraints = [fields.one_of("action", FactAction, "fact_event_action")]
        indexes = [models.Index(fields=["memory", "number"], name="fact_event_fact")]

    def __str__(self) -> str:
        return gettext("%(action)s by %(author)s") % {
            "action": self.get_action_display(),
            "author": self.author_name or self.get_author_kind_display(),
        }
