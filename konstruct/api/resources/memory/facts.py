"""Facts by REST, with their versions and their times of validity."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth.permissions import Caller
from konstruct.api.http import bodies
from konstruct.api.http.idempotency import IDEMPOTENCY_KEY, create_once
from konstruct.api.http.lists import KeysetPagination, PageQuerySerializer, ordering_field
from konstruct.api.http.routes import route
from konstruct.api.http.schema import response_header
from konstruct.api.http.views import (
    IF_MATCH,
    AgentNameField,
    ApiView,
    UrlField,
    etag_response,
    no_content,
    operation,
    require_match,
)
from konstruct.api.models import KeyScope
from konstruct.orchestrator.usage import admit_memories
from konstruct.strict_json import NotStrictJSON, read_json
from memory.exceptions import FactNotFound, InvalidArgument
from memory.facts import LongTermMemory, StoredFact, embed_facts, filter_facts
from memory.models import MemoryEntry
from memory.models.attributes import metadata_values, parse_filters
from memory.models.fact_querysets import MemoryEntryQuerySet
from memory.models.facts import FactKind, FactState, Precision
from tenants import transaction
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id


def tenant_facts() -> MemoryEntryQuerySet:
    """Return all facts and versions of the current tenant."""
    return MemoryEntry.objects.of_tenant(required_tenant_id())


def visible_facts(caller: Caller) -> MemoryEntryQuerySet:
    """Return the facts and versions that the caller may see.

    A key that is bound to an agent sees the agent's facts. A key that is bound to a user sees the
    user's facts: other facts are the tenant's own, and not for every user.
    """
    facts = tenant_facts()
    if caller.agent_id is not None:
        facts = facts.visible_to_agent(caller.agent_id)
    if caller.user_id is not None:
        facts = facts.filter(user_id=caller.user_id)
    return facts


def lock_fact(caller: Caller, memory_id: UUID) -> MemoryEntry:
    """Return a fact, locked for update. A bound key cannot change shared facts.

    Raises FactNotFound if the caller may change no such fact.
    """
    visible = caller.rows(tenant_facts().entries().filter(memory_id=memory_id).defer("embedding"))
    fact = visible.select_for_update().first()
    if fact is None:
        raise FactNotFound(f"There is no fact {memory_id} that you may change.")
    return fact


def require_fact_match(view: ApiView, fact: MemoryEntry) -> None:
    """Raise ChangedSince if the request's If-Match is of another state than the locked fact's."""
    if "If-Match" in view.request.headers:
        require_match(view.request, view.document(fact, FactInFullSerializer))


MAX_QUERY_CHARACTERS = 8192
MAX_RESULTS = 100
MAX_FACTS_PER_BATCH = 100
MAX_VALUE_CHARACTERS = 1000
FILTERS_HELP = (
    'Conditions on the metadata: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, '
    '{"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. All must match.'
)


def _help(name: str) -> str:
    return str(MemoryEntry._meta.get_field(name).help_text)  # type: ignore[union-attr]  # no relation


class CheckedObjectField(serializers.DictField):
    """A JSON object that a function of memory validates; its error is the field's error."""

    def __init__(self, check: Callable[[Mapping[str, Any]], Any], **options: Any) -> None:
        super().__init__(**{"child": serializers.JSONField(allow_null=True), **options})
        self.check = check

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse a value that is no object, or that no search accepts."""
        if not isinstance(data, Mapping):
            self.fail("not_a_dict", input_type=type(data).__name__)
        try:
            self.check(data)
        except InvalidArgument as error:
            raise ValidationError(str(error)) from error
        return dict(data)


@extend_schema_field({"type": "string", "description": "A JSON object as text."})
class FiltersTextField(bodies.StrictCharField):
    """Filters in a query parameter: a JSON object as text."""

    def to_internal_value(self, data: Any) -> Any:
        """Read the object."""
        text = super().to_internal_value(data)
        try:
            filters = read_json(text)
            parse_filters(filters)
        except (NotStrictJSON, InvalidArgument) as error:
            raise ValidationError(str(error)) from error
        return filters


class FactFields(bodies.StrictSerializer):
    """The fields of a fact that can be set and changed."""

    content = bodies.TextField(help_text="The fact, in words: “Maria is allergic to walnuts.”")
    metadata = CheckedObjectField(
        check=metadata_values,
        required=False,
        help_text="A JSON object that searches can filter by. It is merged into the metadata of "
        "a stored fact by RFC 7396 (JSON Merge Patch): objects at each depth, null removes a "
        "name, other values replace.",
    )
    valid_from = bodies.AwareDateTimeField(
        required=False, help_text="Start of its validity. Default: now."
    )
    valid_to = bodies.AwareDateTimeField(
        required=False, allow_null=True, help_text="End of its validity; null: still valid."
    )
    expires_at = bodies.AwareDateTimeField(
        required=False, allow_null=True, help_text="Searches do not find it from this time on."
    )


class NewFactSerializer(FactFields):
    """A fact to store."""

    external_id = bodies.ChannelIdField(
        required=False,
        help_text="Your own id of the fact. A fact of the same agent and user with this id is "
        "changed: its text and metadata become those of the request. Default: none; the text "
        "identifies the fact.",
    )

    agent = bodies.ChannelIdField(
        required=False,
        help_text="Name or id of the agent that can use it. Default: all agents; for a key that is "
        "bound to an agent, that agent.",
    )
    user_id = bodies.ChannelIdField(
        required=False,
        help_text="The user that the fact is about. Default: no user; for a key that is bound to a "
        "user, that user.",
    )


class NewFactsSerializer(bodies.StrictSerializer):
    """Facts to store together."""

    facts = bodies.BoundedListField(
        child=NewFactSerializer(),
        min_length=1,
        max_length=MAX_FACTS_PER_BATCH,
        help_text="The facts. All of them are stored, or none.",
    )


class ReasonSerializer(bodies.StrictSerializer):
    """The reason of a change, for the fact's events."""

    reason = bodies.OptionalTextField(help_text="The reason, for the fact's events.")


class FactChangeSerializer(FactFields, ReasonSerializer):
    """The fields of a fact to change. The former values are kept as a version."""

    min_fields = 1
    value = bodies.OptionalTextField(
        max_length=MAX_VALUE_CHARACTERS,
        help_text="The value of the fact's slot, such as Oslo. Default: the words of the new "
        "content that replace it, or it, if the content still has it.",
    )
    content = bodies.TextField(required=False, help_text="The fact, in words.")
    valid_from = bodies.AwareDateTimeField(
        required=False,
        help_text="Start of the new version's validity: after the old version's, not in the "
        "future. Default: now.",
    )

    def validate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Refuse a reason without a change."""
        if fields.keys() == {"reason"}:
            raise ValidationError("Give a field to change, in addition to the reason.")
        return fields


class AtSerializer(bodies.StrictSerializer):
    """Query parameters of a read as of a moment."""

    at = bodies.AwareDateTimeField(
        required=False, help_text="The state at that time (ISO 8601 with a time zone)."
    )


class FactPages(KeysetPagination):
    """Facts by the time when they were stored first."""

    orderings = {
        "-created_at": ("-created_at", "-memory_id"),
        "created_at": ("created_at", "memory_id"),
    }


class VersionPages(KeysetPagination):
    """Versions of a fact, each written after the other."""

    orderings = {"-updated_at": ("-updated_at", "-memory_id")}


class OwnerSerializer(bodies.StrictSerializer):
    """Limits facts to those that concern an agent and a user."""

    agent = bodies.ChannelIdField(
        required=False,
        help_text="Only facts that this agent can use: its own, and those of all agents.",
    )
    user_id = bodies.ChannelIdField(
        required=False, help_text="Only facts about this user, and about no user."
    )


class FactListSerializer(PageQuerySerializer, AtSerializer, OwnerSerializer):
    """Query parameters of the list."""

    ordering = ordering_field(FactPages)
    filters = FiltersTextField(required=False, help_text=f"{FILTERS_HELP} As JSON text.")
    state = serializers.ChoiceField(
        choices=FactState.choices,
        required=False,
        help_text="Only facts in this state. Default: active facts that are valid. The queue of a "
        "review is `proposed`, with `ordering=created_at`.",
    )
    shared = serializers.BooleanField(
        required=False, default=True, help_text="false: without facts about no user."
    )
    slot = bodies.StrictCharField(
        required=False, max_length=255, help_text="Only facts of this slot, such as `home_city`."
    )

    def validate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Refuse a moment and a state together: a version of then has no other state."""
        if "at" in fields and fields.get("state", FactState.ACTIVE) != FactState.ACTIVE:
            raise ValidationError({"state": "Leave out `at`: only active facts have a past."})
        return fields


class FactSearchSerializer(AtSerializer, OwnerSerializer):
    """A search of facts."""

    query = bodies.TextField(
        max_length=MAX_QUERY_CHARACTERS, help_text="The question, in any words."
    )
    shared_only = bodies.StrictBooleanField(
        required=False, default=False, help_text="Only facts about no user."
    )
    shared = bodies.StrictBooleanField(
        required=False, default=True, help_text="false: without facts about no user."
    )
    filters = CheckedObjectField(check=parse_filters, required=False, help_text=FILTERS_HELP)
    limit = bodies.StrictIntegerField(
        required=False,
        default=10,
        min_value=1,
        max_value=MAX_RESULTS,
        help_text="At most this many results.",
    )
    threshold = bodies.StrictFloatField(
        required=False,
        default=-1.0,
        min_value=-1,
        max_value=1,
        help_text="Minimum cosine similarity. Default: no minimum.",
    )


class FactSerializer(serializers.Serializer):
    """A fact, or an earlier version."""

    memory_id = serializers.UUIDField(
        source="fact_id", help_text="The fact's id; it never changes."
    )
    url = UrlField("fact", "fact_id", help_text="The fact's address.")
    agent = AgentNameField(
        allow_null=True, help_text="The agent that can use it; null: all agents."
    )
    agent_id = serializers.UUIDField(allow_null=True)
    user_id = serializers.CharField(
        allow_null=True, help_text="The user that the fact is about, or null."
    )
    external_id = serializers.CharField(
        allow_null=True, help_text="The id that a program chose for it."
    )
    content = serializers.CharField()
    metadata = serializers.DictField(child=serializers.JSONField(allow_null=True))
    created_at = serializers.DateTimeField(help_text="When it was first stored.")
    updated_at = serializers.DateTimeField(help_text="When this version was written.")
    valid_from = serializers.DateTimeField(help_text="Start of its validity.")
    valid_to = serializers.DateTimeField(allow_null=True, help_text="End of its validity.")
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="Searches do not find it from this time on."
    )
    version_id = serializers.UUIDField(
        source="memory_id", help_text="The version's id; for the current version the fact's id."
    )
    supersedes = serializers.UUIDField(
        allow_null=True, help_text="The version that this one replaced."
    )
    subject = serializers.CharField(help_text=_help("subject"))
    slot = serializers.CharField(help_text=_help("slot"))
    value = serializers.CharField(help_text=_help("value"))
    is_multi_valued = serializers.BooleanField(help_text=_help("is_multi_valued"))
    kind = serializers.ChoiceField(choices=FactKind.choices, help_text=_help("kind"))
    asserter = serializers.CharField(help_text=_help("asserter"))
    state = serializers.ChoiceField(choices=FactState.choices, help_text=_help("state"))
    valid_from_precision = serializers.ChoiceField(
        choices=Precision.choices, help_text=_help("valid_from_precision")
    )
    valid_to_precision = serializers.ChoiceField(
        choices=Precision.choices, help_text=_help("valid_to_precision")
    )
    learned_at = serializers.DateTimeField(allow_null=True, help_text=_help("learned_at"))
    retracted_at = serializers.DateTimeField(allow_null=True, help_text=_help("retracted_at"))
    replaces = serializers.UUIDField(allow_null=True, help_text=_help("replaces"))
    confidence = serializers.FloatField(allow_null=True, help_text=_help("confidence"))
    review_reason = serializers.CharField(help_text=_help("review_reason"))
    run_id = serializers.UUIDField(allow_null=True, help_text=_help("run_id"))


class EvidenceSerializer(serializers.Serializer):
    """A quote from a message as the evidence of a fact."""

    message_id = serializers.UUIDField(help_text="The message.")
    url = UrlField("message", "message_id", help_text="The message's address.")
    start = serializers.IntegerField(help_text="First character of the quote in the message.")
    end = serializers.IntegerField(help_text="Position after the last character of the quote.")
    quote = serializers.CharField(help_text="The words of the message, verbatim.")
    run_id = serializers.UUIDField(allow_null=True, help_text="The extraction run that found it.")


class FactInFullSerializer(FactSerializer):
    """A fact, or an earlier version, with its evidence."""

    evidence = EvidenceSerializer(
        many=True,
        help_text="The evidence of the fact; empty for a fact that a person or a program entered.",
    )


class NearFactSerializer(serializers.Serializer):
    """A fact with nearly the same meaning."""

    memory_id = serializers.UUIDField()
    content = serializers.CharField()
    score = serializers.FloatField(help_text="Cosine similarity.")


class StoredFactSerializer(FactSerializer):
    """A stored fact, and similar facts that existed before."""

    created = serializers.BooleanField(
        help_text="False: a fact with the same external id, or else the same text, existed. The "
        "other fields of the request were applied to it."
    )
    near_duplicates = NearFactSerializer(
        many=True, help_text="Facts with nearly the same meaning. They are reported, never merged."
    )


class StoredFactsSerializer(serializers.Serializer):
    """The stored facts of a batch, in the order of the request."""

    created = serializers.IntegerField(help_text="The number of facts that are new.")
    results = StoredFactSerializer(many=True)


class FoundFactSerializer(FactSerializer):
    """A fact found by a search."""

    score = serializers.FloatField(help_text="Cosine similarity to the query, -1 to 1.")


class FactSearchResultSerializer(serializers.Serializer):
    """The facts of a search, best first."""

    results = FoundFactSerializer(many=True)


FACTS = LongTermMemory()

LOCATION = response_header("Location", "The URL of the fact.", 200, 201)
ETAG = response_header("ETag", "The ETag of the fact, for If-Match and If-None-Match.", 200)


class BaseFactsView(ApiView):
    """A view of facts."""

    allows_bound_keys = True


@route("facts/", name="facts")
class FactsView(BaseFactsView):
    """The facts of the tenant."""

    @operation(
        Action.CREATE,
        "fact",
        permission=("memory.add_memoryentry", "memory.view_memoryentry"),
        body=NewFactSerializer,
        id="create_fact",
        returns={
            201: OpenApiResponse(StoredFactSerializer, description="Stored."),
            200: OpenApiResponse(
                StoredFactSerializer,
                description="A fact with the same external id, or else the same text, existed. "
                "The other fields were applied to it.",
            ),
        },
        errors=(402, 409, 422),
        headers=[IDEMPOTENCY_KEY, LOCATION],
    )
    def post(self, request: Request) -> Response:
        """Store a fact.

        Facts with the same text, agent and user are one fact: the existing one is returned with
        `created: false`. The other fields of the request are applied to it: metadata is merged into
        the stored metadata, and `valid_from`, `valid_to` and `expires_at` take the new values. With
        an `external_id` that id identifies the fact instead of the text, and the text and metadata
        of the request replace the stored ones. The old values are kept as a version. Facts with
        nearly the same meaning are listed in `near_duplicates`.
        """
        fields = self.fields
        entry = _entry(self.caller, fields, self.caller.agent_id_in(fields))
        created: list[StoredFact] = []

        def create() -> UUID:
            with admit_memories(1):
                created.append(FACTS.remember(entry, author=self.caller.author))
            return created[0].memory_id

        memory_id, _ = create_once(request, create)
        # An earlier request with the same Idempotency-Key may have stored the fact.
        stored = created[0] if created else StoredFact(memory_id, created=False)
        fact = tenant_facts().entries().defer("embedding").filter(memory_id=memory_id).first()
        if fact is None:
            raise FactNotFound(f"there is no fact {memory_id} any more")
        self.log_created(fact, is_new=stored.created)
        (document,) = _stored_documents(self, [fact], [stored])
        status = 201 if stored.created else 200
        return Response(document, status=status, headers={"Location": document["url"]})

    @operation(
        Action.LIST,
        "facts",
        permission="memory.view_memoryentry",
        query=FactListSerializer,
        id="list_facts",
        page=FactSerializer,
    )
    def get(self, request: Request) -> Response:
        """List facts, newest first.

        Returns the facts that are valid now, or that were valid `at` a given time; with `state` the
        facts in that state, such as `proposed` facts, which wait for a review.
        """
        query = self.query
        facts = filter_facts(
            required_tenant_id(),
            agent_id=self.caller.agent_id_in(query),
            user_id=self.caller.user_id_in(query),
            shared=query["shared"] and self.caller.user_id is None,
            filters=query.get("filters"),
            at=query.get("at"),
            state=query.get("state", FactState.ACTIVE),
        )
        if "slot" in query:
            facts = facts.filter(slot=query["slot"])
        return self.page(facts.defer("embedding"), FactPages(), FactSerializer)


@route("facts/batch/", name="fact-batch")
class FactBatchView(BaseFactsView):
    """Several facts in one request."""

    @operation(
        Action.CREATE,
        "facts",
        permission=("memory.add_memoryentry", "memory.view_memoryentry"),
        body=NewFactsSerializer,
        own_transaction=True,
        id="create_facts",
        description=f"Up to {MAX_FACTS_PER_BATCH} facts, each as `POST /api/v1/facts/` takes it. "
        "All of them are stored, or none. The same request again stores nothing twice, because "
        "the same external id, or else the same text, of the same agent and user is the same fact.",
        returns=StoredFactsSerializer,
        errors=(402, 409, 422),
    )
    def post(self, request: Request) -> Response:
        """Store several facts."""
        facts = self.fields["facts"]
        by_agent = {fields.get("agent"): fields for fields in facts}
        agents = {name: self.caller.agent_id_in(fields) for name, fields in by_agent.items()}
        entries = [_entry(self.caller, fields, agents[fields.get("agent")]) for fields in facts]
        owners = {(entry.agent_id, entry.user_id) for entry in entries}
        if len(owners) > 1:
            self.caller.named.clear()  # the access log would name the last one alone
        embed_facts(entries)
        with transaction.atomic():
            with admit_memories(len(entries)):
                stored = FACTS.remember_all(entries, author=self.caller.author)
            ids = {stored_fact.memory_id for stored_fact in stored}
            rows = tenant_facts().entries().defer("embedding").filter(memory_id__in=ids)
            by_id = {fact.memory_id: fact for fact in rows}
            new = [stored_fact.memory_id for stored_fact in stored if stored_fact.created]
            self.log(facts=new)
            self.write_log_entry()
        results = _stored_documents(
            self, [by_id[stored_fact.memory_id] for stored_fact in stored], stored
        )
        return Response({"created": len(new), "results": results})


@route("facts/search/", name="search-facts")
class FactSearchView(BaseFactsView):
    """Facts by meaning."""

    @operation(
        Action.SEARCH,
        "facts",
        permission="memory.view_memoryentry",
        body=FactSearchSerializer,
        id="search_facts",
        returns=FactSearchResultSerializer,
    )
    def post(self, request: Request) -> Response:
        """Search facts.

        Returns the facts that are nearest in meaning to a text, best first.
        """
        fields = self.fields
        agent_id, user_id = self.caller.agent_id_in(fields), self.caller.user_id_in(fields)
        found = FACTS.search(
            required_tenant_id(),
            fields["query"],
            fields["limit"],
            agent_id,
            user_id=user_id,
            shared=fields["shared"] and self.caller.user_id is None,
            shared_only=fields["shared_only"],
            filters=fields.get("filters"),
            at=fields.get("at"),
            threshold=fields["threshold"],
        )
        return Response({"results": self.documents(found, FoundFactSerializer)})


@route("facts/<uuid:memory_id>/", name="fact")
class FactView(BaseFactsView):
    """One fact."""

    @operation(
        Action.VIEW,
        "fact",
        scope=(KeyScope.READ, KeyScope.WRITE),
        permission="memory.view_memoryentry",
        query=AtSerializer,
        id="get_fact",
        returns=FactInFullSerializer,
        headers=[ETAG],
    )
    def get(self, request: Request, memory_id: UUID) -> Response:
        """Get a fact.

        Returns the fact with its evidence, now or `at` a given time. An active fact that is no
        longer valid, or has expired, is a 404; its history is kept. A fact in another state, such
        as `proposed`, is returned with that state.
        """
        at = self.query.get("at")
        versions = visible_facts(self.caller).versions_of(memory_id).defer("embedding")
        fact = versions.as_of(at).order_by("-valid_from").first()
        if fact is None and at is None:
            fact = versions.entries().exclude(state=FactState.ACTIVE).first()
        if fact is None:
            raise Http404
        self.log(fact)
        return etag_response(request, self.document(fact, FactInFullSerializer))

    @operation(
        Action.EDIT,
        "fact",
        permission="memory.change_memoryentry",
        body=FactChangeSerializer,
        id="change_fact",
        returns=FactInFullSerializer,
        errors=(402, 409),
        headers=[IF_MATCH, ETAG],
    )
    def patch(self, request: Request, memory_id: UUID) -> Response:
        """Change a fact.

        Omitted fields are unchanged, and metadata is merged into the stored metadata. The old
        values are kept as a version. A new text or value is valid from now, or from `valid_from`;
        other changes keep the fact's validity. To end a fact, set `valid_to` or `expires_at`.
        """
        existing = lock_fact(self.caller, memory_id)
        require_fact_match(self, existing)
        before = row_state(existing)
        with admit_memories(1):
            fact = FACTS.update(
                memory_id, required_tenant_id(), author=self.caller.author, **self.fields
            )
        return self.changed(fact, before, FactInFullSerializer, with_etag=True)

    @operation(
        Action.DELETE,
        "fact",
        permission="memory.delete_memoryentry",
        id="delete_fact",
        returns=no_content("Removed."),
        headers=[IF_MATCH],
    )
    def delete(self, request: Request, memory_id: UUID) -> Response:
        """Delete a fact.

        Deletes the fact and all its versions permanently.
        """
        existing = lock_fact(self.caller, memory_id)
        require_fact_match(self, existing)
        FACTS.delete(memory_id, required_tenant_id())
        self.log(existing, before=row_state(existing))
        return Response(status=204)


@route("facts/<uuid:memory_id>/history/", name="fact-history")
class FactHistoryView(BaseFactsView):
    """The versions of a fact."""

    @operation(
        Action.VIEW,
        "fact",
        permission="memory.view_memoryentry",
        query=PageQuerySerializer,
        id="list_fact_versions",
        page=FactSerializer,
    )
    def get(self, request: Request, memory_id: UUID) -> Response:
        """List the versions of a fact, newest first.

        Returns the current version, then the earlier ones. Versions of an expired fact are listed
        too.
        """
        versions = visible_facts(self.caller).versions_of(memory_id)
        if not versions.entries().exists():
            raise Http404
        return self.page(versions.defer("embedding"), VersionPages(), FactSerializer)


def _entry(caller: Caller, fields: dict[str, Any], agent_id: UUID | None) -> MemoryEntry:
    """Return the new fact that a request describes."""
    return MemoryEntry(
        tenant_id=required_tenant_id(),
        agent_id=agent_id,
        user_id=caller.user_id_in(fields),
        **{name: fields[name] for name in fields if name not in ("agent", "user_id")},
    )


def _stored_documents(
    view: ApiView, facts: Iterable[MemoryEntry], stored: Iterable[StoredFact]
) -> list[dict[str, Any]]:
    return [
        document
        | {
            "created": stored_fact.created,
            "near_duplicates": NearFactSerializer(stored_fact.near_duplicates, many=True).data,
        }
        for document, stored_fact in zip(view.documents(facts, FactSerializer), stored, strict=True)
    ]
