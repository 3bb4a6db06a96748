"""Facts by REST, with their versions and their times of validity."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase
from rest_framework import decorators, mixins, serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth.authentication import Caller
from konstruct.api.http import bodies, schema, views
from konstruct.api.http.lists import ChoiceFilter, Filter, FilterSet
from konstruct.api.http.problems import FieldError, Problem, Refusal
from konstruct.api.models import KeyScope
from konstruct.api.resources.memory import recall_events
from konstruct.orchestrator.usage import admit_memories
from memory import exceptions, facts as memory_facts
from memory.embedding.embedder import embed
from memory.models import MemoryEntry, attributes
from memory.models.facts import FactEvent, FactState, MemoryEntryQuerySet
from tenants import context, transaction
from tenants.audit.changes import row_state
from tenants.audit.models import Action


def tenant_facts() -> MemoryEntryQuerySet:
    """Return all facts and versions of the current tenant."""
    return MemoryEntry.objects.of_tenant(context.required_tenant_id())


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
        raise exceptions.FactNotFound(f"There is no fact {memory_id} that you may change.")
    return fact


MAX_QUERY_CHARACTERS = 8192
MAX_RESULTS = 100
MAX_FACTS_PER_BATCH = 100
MAX_VALUE_CHARACTERS = 1000
EXTERNAL_ID: Final = schema.id_in_path("external_id", "Your id of the fact")
SLOT_FIELDS: Final = ("slot", "subject", "value", "is_multi_valued")


class FactFields(bodies.StrictSerializer):
    """The fields of a fact that can be set and changed."""

    content = bodies.TextField(help_text="The fact, in words: “Maria is allergic to walnuts.”")
    metadata = bodies.CheckedObjectField(
        check=attributes.metadata_values,
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


class FactOwner(bodies.StrictSerializer):
    """The agent and the user of a fact."""

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


class SlottedFactFields(FactFields):
    """The fields of a fact with its slot."""

    slot = bodies.OptionalTextField(
        max_length=MAX_VALUE_CHARACTERS,
        help_text="The attribute of the subject that the fact states, such as `home_city`. "
        "Default: none.",
    )
    subject = bodies.OptionalTextField(
        max_length=MAX_VALUE_CHARACTERS,
        help_text="The person or thing with that attribute, such as Maria.",
    )
    value = bodies.OptionalTextField(
        max_length=MAX_VALUE_CHARACTERS, help_text="The value of the slot, such as Oslo."
    )
    is_multi_valued = bodies.StrictBooleanField(
        required=False,
        help_text="Whether other values of the slot stay valid. Default: false, this value "
        "supersedes the current one of the same agent, user and subject.",
    )

    def validate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Refuse a value without its slot."""
        if not fields.get("slot"):
            for name in ("subject", "value", "is_multi_valued"):
                if fields.get(name):
                    raise ValidationError({name: "Give the slot too."})
            return {name: value for name, value in fields.items() if name not in SLOT_FIELDS}
        if not fields.get("value"):
            raise ValidationError({"value": "Give the value of the slot."})
        return {"is_multi_valued": False, "subject": "", **fields}


class NewFactSerializer(SlottedFactFields, FactOwner):
    """A fact to store."""

    external_id = bodies.ChannelIdField(
        required=False,
        help_text="Your own id of the fact. A fact of the same agent and user with this id is "
        "changed: its text and metadata become those of the request. Default: none; the text "
        "identifies the fact.",
    )


class NewFactsSerializer(bodies.StrictSerializer):
    """Facts to store together."""

    facts = bodies.BoundedListField(
        child=NewFactSerializer(),
        min_length=1,
        max_length=MAX_FACTS_PER_BATCH,
        help_text="The facts. All of them are stored, or none.",
    )


class FactChangeSerializer(FactFields, bodies.ReasonSerializer):
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


class BatchChangeSerializer(FactChangeSerializer):
    """A fact of a batch, and its changes."""

    min_fields = 2
    memory_id = serializers.UUIDField(help_text="The fact.")


class FactChangesSerializer(bodies.StrictSerializer):
    """Facts to change together."""

    facts = bodies.BoundedListField(
        child=BatchChangeSerializer(),
        min_length=1,
        max_length=MAX_FACTS_PER_BATCH,
        help_text="The changes, each of another fact. All of them are made, or none.",
    )

    def validate_facts(self, facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Refuse two changes of a fact."""
        counts = Counter(fields["memory_id"] for fields in facts)
        twice = [n for n, fields in enumerate(facts) if counts[fields["memory_id"]] > 1]
        if twice:
            raise ValidationError({str(n): {"memory_id": "Give each fact once."} for n in twice})
        return facts


class FactIdsSerializer(bodies.StrictSerializer):
    """Facts to delete together."""

    memory_ids = bodies.BoundedListField(
        child=serializers.UUIDField(),
        min_length=1,
        max_length=MAX_FACTS_PER_BATCH,
        help_text="The facts. All of them are deleted, or none.",
    )


AT = "The state at that time (ISO 8601 with a time zone)."
OF_AGENT = "Only facts that this agent can use: its own, and those of all agents."
OF_USER = "Only facts about this user, and about no user."


class AtSerializer(bodies.StrictSerializer):
    """Query parameters of a read as of a moment."""

    at = bodies.AwareDateTimeField(required=False, help_text=AT)


FACT_ORDER = ("-created_at", "-memory_id")


class FactFilter(FilterSet):
    """Filters of the list."""

    agent = Filter(bodies.ChannelIdField, OF_AGENT)
    user_id = Filter(bodies.ChannelIdField, OF_USER)
    at = Filter(bodies.AwareDateTimeField, AT)
    filters = Filter(bodies.FiltersTextField, bodies.FILTERS_AS_TEXT)
    state = ChoiceFilter(
        "Only facts in this state. Default: active facts that are valid. The queue of"
        " a review is `proposed`, with `ordering=created_at`.",
        FactState.choices,
    )
    shared = Filter(serializers.BooleanField, "false: without facts of no user. Default: true.")
    slot = Filter(bodies.StrictCharField, "Only of this slot, such as `home_city`.", max_length=255)

    def filter_queryset(self, queryset: QuerySet[MemoryEntry]) -> QuerySet[MemoryEntry]:
        """Return the facts that match all filters: a moment and a state refuse each other."""
        given = self.data
        state = given.get("state", FactState.ACTIVE)
        if "at" in given and state != FactState.ACTIVE:
            raise ValidationError({"state": "Leave out `at`: only active facts have a past."})
        facts = memory_facts.filter_facts(
            context.required_tenant_id(),
            agent_id=self.caller.agent_id_in(given),
            user_id=self.caller.user_id_in(given),
            shared=given.get("shared", True) and self.caller.user_id is None,
            filters=given.get("filters"),
            at=given.get("at"),
            state=state,
        )
        return facts.filter(slot=given["slot"]) if "slot" in given else facts


class FactSearchSerializer(AtSerializer):
    """A search of facts."""

    agent = bodies.ChannelIdField(required=False, help_text=OF_AGENT)
    user_id = bodies.ChannelIdField(required=False, help_text=OF_USER)
    query = bodies.TextField(max_length=MAX_QUERY_CHARACTERS, help_text="A question, in any words.")
    shared_only = bodies.StrictBooleanField(default=False, help_text="Only facts about no user.")
    shared = bodies.StrictBooleanField(default=True, help_text="false: without facts of no user.")
    filters = bodies.CheckedObjectField(
        check=attributes.parse_filters, required=False, help_text=bodies.FILTERS_HELP
    )
    limit = bodies.StrictIntegerField(
        default=10,
        min_value=1,
        max_value=MAX_RESULTS,
        help_text="At most this many results.",
    )
    threshold = bodies.StrictFloatField(
        default=-1.0,
        min_value=-1,
        max_value=1,
        help_text="Minimum cosine similarity. Default: no minimum.",
    )


class FactSerializer(bodies.RowSerializer):
    """A fact, or an earlier version."""

    memory_id = serializers.UUIDField(source="fact_id", help_text="The fact; its id never changes.")
    url = views.UrlField("fact-detail", "fact_id", help_text="The fact's address.")
    agent = views.AgentNameField(allow_null=True, help_text="The agent that can use it; null: all.")
    metadata = bodies.ObjectField()
    version_id = serializers.UUIDField(
        source="memory_id", help_text="The version's id; for the current version the fact's id."
    )

    class Meta:
        model = MemoryEntry
        fields = [
            *("memory_id", "url", "agent", "agent_id", "user_id", "external_id", "content"),
            *("metadata", "created_at", "updated_at", "valid_from", "valid_to", "expires_at"),
            *("version_id", "supersedes", "subject", "slot", "value", "is_multi_valued", "kind"),
            *("asserter", "state", "valid_from_precision", "valid_to_precision", "learned_at"),
            *("retracted_at", "replaces", "review_reason", "run_id"),
        ]


class EvidenceSerializer(serializers.Serializer):
    """A quote from a message as the evidence of a fact."""

    message_id = serializers.UUIDField(help_text="The message.")
    url = views.UrlField("message-detail", "message_id", help_text="The message's address.")
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

    class Meta(FactSerializer.Meta):
        fields = [*FactSerializer.Meta.fields, "evidence"]


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

    class Meta(FactSerializer.Meta):
        fields = [*FactSerializer.Meta.fields, "created", "near_duplicates"]


class StoredFactsSerializer(serializers.Serializer):
    """The stored facts of a batch, in the order of the request."""

    created = serializers.IntegerField(help_text="The number of facts that are new.")
    results = StoredFactSerializer(many=True)


class ChangedFactsSerializer(serializers.Serializer):
    """The changed facts of a batch, in the order of the request."""

    results = FactSerializer(many=True)


class FoundFactSerializer(FactSerializer):
    """A fact found by a search."""

    score = serializers.FloatField(help_text="Cosine similarity to the query, -1 to 1.")

    class Meta(FactSerializer.Meta):
        fields = [*FactSerializer.Meta.fields, "score"]


class FactEventSerializer(bodies.RowSerializer):
    """A change of a fact, and its author."""

    class Meta:
        model = FactEvent
        fields = [
            *("id", "action", "author_kind", "author_id", "author_name", "reason", "other_id"),
            "created_at",
        ]


class FactSearchResultSerializer(serializers.Serializer):
    """The facts of a search, best first."""

    results = FoundFactSerializer(many=True)


FACTS = memory_facts.LongTermMemory()

# Declares a method that decides about a fact.
decision: Final = partial(
    views.operation,
    Action.DECIDE,
    permission="memory.review_memoryentry",
    body=bodies.ReasonSerializer,
    errors=(409,),
    headers=[schema.IF_MATCH, schema.ETAG],
)


class FactViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """Facts, newest first.

    Lists the facts that are valid now, or that were valid `at` a given time; with `state` the
    facts in that state, such as `proposed` facts, which wait for a review.
    """

    queryset = MemoryEntry.objects.defer("embedding")
    serializer_class = FactSerializer
    detail_serializer_class = FactInFullSerializer
    filterset_class = FactFilter
    ordering = FACT_ORDER
    ordering_fields = ("created_at",)
    subject = "fact"
    lookup_url_kwarg = "memory_id"
    allows_bound_keys = True

    @views.operation(
        Action.CREATE,
        permission=("memory.add_memoryentry", "memory.view_memoryentry"),
        body=NewFactSerializer,
        returns={201: StoredFactSerializer, 200: StoredFactSerializer},
        errors=(402, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY, schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Store a fact.

        Facts with the same text, agent and user are one fact: the existing one is returned with
        `created: false`. The other fields of the request are applied to it, null clears one, and
        metadata is merged into the stored metadata. With an `external_id` that id identifies the
        fact instead of the text, and the text and metadata of the request replace the stored ones.
        The old values are kept as a version. Facts with nearly the same meaning are listed in
        `near_duplicates`.
        """
        fields = self.fields
        entry = _entry(self.caller, fields, self.caller.agent_id_in(fields))
        created: list[memory_facts.StoredFact] = []

        def create() -> UUID:
            with admit_memories(1):
                created.append(FACTS.remember(entry, author=self.caller.author))
            return created[0].memory_id

        memory_id, _ = self.idempotency.once(create)
        # An earlier request with the same Idempotency-Key may have stored the fact.
        stored = created[0] if created else memory_facts.StoredFact(memory_id, created=False)
        fact = tenant_facts().entries().defer("embedding").filter(memory_id=memory_id).first()
        if fact is None:
            raise exceptions.FactNotFound(f"there is no fact {memory_id} any more")
        self.log_created(fact, is_new=stored.created)
        (document,) = _stored_documents(self, [fact], [stored])
        status = 201 if stored.created else 200
        return Response(document, status=status, headers={"Location": document["url"]})

    @decorators.action(detail=False, methods=["post"], url_path="batch")
    @views.operation(
        Action.CREATE,
        "facts",
        permission=("memory.add_memoryentry", "memory.view_memoryentry"),
        body=NewFactsSerializer,
        own_transaction=True,
        returns=StoredFactsSerializer,
        errors=(402, 409, 422),
    )
    def create_facts(self, request: Request) -> Response:
        """Store several facts.

        Up to 100 facts, each as `POST /api/v1/facts/` takes it. All of them are stored, or none.
        The same request again stores nothing twice, because the same external id, or else the same
        text, of the same agent and user is the same fact.
        """
        facts = self.fields["facts"]
        by_agent = {fields.get("agent"): fields for fields in facts}
        agents = {name: self.caller.agent_id_in(fields) for name, fields in by_agent.items()}
        entries = [_entry(self.caller, fields, agents[fields.get("agent")]) for fields in facts]
        owners = {(entry.agent_id, entry.user_id) for entry in entries}
        if len(owners) > 1:
            self.caller.named.clear()  # the access log would name the last one alone
        memory_facts.embed_facts(entries)
        with transaction.atomic():
            with admit_memories(len(entries)):
                stored = FACTS.remember_all(entries, author=self.caller.author)
            ids = [stored_fact.memory_id for stored_fact in stored]
            rows = tenant_facts().entries().defer("embedding").in_bulk(ids)
            new = [stored_fact.memory_id for stored_fact in stored if stored_fact.created]
            self.log(facts=new)
            self.write_log_entry()
        results = _stored_documents(self, [rows[memory_id] for memory_id in ids], stored)
        return Response({"created": len(new), "results": results})

    @create_facts.mapping.patch
    @views.operation(
        Action.EDIT,
        "facts",
        body=FactChangesSerializer,
        own_transaction=True,
        returns=ChangedFactsSerializer,
        errors=(402, 404, 409),
    )
    def change_facts(self, request: Request) -> Response:
        """Change several facts.

        Up to 100 changes, each as `PATCH /api/v1/facts/{memory_id}/` makes it. All of them are
        made, or none.
        """
        changes = {fields.pop("memory_id"): fields for fields in self.fields["facts"]}
        contents = [fields["content"] for fields in changes.values() if "content" in fields]
        vectors = dict(zip(contents, embed(contents), strict=True))
        with transaction.atomic():
            self._lock_batch(changes, "facts.{}.memory_id")
            with admit_memories(len(changes)):
                facts = {
                    memory_id: FACTS.update(
                        memory_id,
                        context.required_tenant_id(),
                        embedding=vectors.get(fields.get("content")),
                        author=self.caller.author,
                        **fields,
                    )
                    for memory_id, fields in sorted(changes.items())
                }
            self.log(facts=sorted(changes))
            self.write_log_entry()
        documents = self.documents([facts[memory_id] for memory_id in changes], FactSerializer)
        return Response({"results": documents})

    @decorators.action(detail=False, methods=["post"], url_path="batch/delete")
    @views.operation(
        Action.DELETE,
        "facts",
        body=FactIdsSerializer,
        errors=(404,),
    )
    def delete_facts(self, request: Request) -> Response:
        """Delete several facts.

        Deletes up to 100 facts with all their versions, permanently. All of them are deleted, or
        none.
        """
        facts = self._lock_batch(self.fields["memory_ids"], "memory_ids.{}")
        memory_facts.delete_facts(tenant_facts().filter(pk__in=facts))
        self.log(facts=sorted(facts))
        return Response(status=204)

    @decorators.action(detail=False, methods=["put"], url_path="by-external-id/<path:external_id>")
    @views.operation(
        Action.EDIT,
        permission=("memory.add_memoryentry", "memory.change_memoryentry"),
        query=FactOwner,
        body=SlottedFactFields,
        returns={200: StoredFactSerializer, 201: StoredFactSerializer},
        errors=(402, 409),
        headers=[EXTERNAL_ID],
    )
    def put_fact(self, request: Request, external_id: str) -> Response:
        """Store or change the fact with your id.

        An id is unique for an agent and a user. A new fact is a 201. The text and the metadata of
        an existing one become those of the request. Omitted fields are unchanged, and those that
        are null are cleared. A request that changes nothing makes no version.
        """
        owner, fact = self._of_external_id(external_id)
        before = None if fact is None else row_state(fact)
        entry = _new_fact(self.fields, **owner)
        with admit_memories(1):
            stored = FACTS.remember(entry, author=self.caller.author)
        fact = tenant_facts().defer("embedding").get(pk=stored.memory_id)
        if stored.created:
            self.log(fact, action=Action.CREATE, after=row_state(fact))
        else:
            self.log(fact, before=before, after=row_state(fact))
        (document,) = _stored_documents(self, [fact], [stored])
        return Response(document, status=201 if stored.created else 200)

    @put_fact.mapping.delete
    @views.operation(
        Action.DELETE, query=FactOwner, id="delete_fact_by_external_id", headers=[EXTERNAL_ID]
    )
    def delete_by_external_id(self, request: Request, external_id: str) -> Response:
        """Delete the fact with your id.

        Deletes the fact and all its versions permanently.
        """
        _, fact = self._of_external_id(external_id)
        if fact is None:
            raise Http404
        return self.delete_row(fact, _delete)

    @decorators.action(detail=False, methods=["post"], url_path="search")
    @views.operation(
        Action.SEARCH, "facts", body=FactSearchSerializer, returns=FactSearchResultSerializer
    )
    def search_facts(self, request: Request) -> Response:
        """Search facts.

        Returns the facts that are nearest in meaning to a text, best first.
        """
        fields = self.fields
        agent_id, user_id = self.caller.agent_id_in(fields), self.caller.user_id_in(fields)
        found = FACTS.search(
            context.required_tenant_id(),
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

    @views.operation(
        Action.VIEW,
        scope=(KeyScope.READ, KeyScope.WRITE),
        query=AtSerializer,
        headers=[schema.ETAG],
    )
    def retrieve(self, request: Request, memory_id: UUID) -> HttpResponseBase:
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
        return views.etag_response(request, self.document(fact))

    @views.operation(
        Action.EDIT,
        body=FactChangeSerializer,
        id="change_fact",
        errors=(402, 409),
        headers=[schema.IF_MATCH, schema.ETAG],
    )
    def partial_update(self, request: Request, memory_id: UUID) -> Response:
        """Change a fact.

        Omitted fields are unchanged, and metadata is merged into the stored metadata. The old
        values are kept as a version. A new text or value is valid from now, or from `valid_from`;
        other changes keep the fact's validity. To end a fact, set `valid_to` or `expires_at`.
        """
        before = row_state(self.locked())
        with admit_memories(1):
            fact = FACTS.update(
                memory_id, context.required_tenant_id(), author=self.caller.author, **self.fields
            )
        return self.changed(fact, before, with_etag=True)

    @views.operation(Action.DELETE, headers=[schema.IF_MATCH])
    def destroy(self, request: Request, memory_id: UUID) -> Response:
        """Delete a fact.

        Deletes the fact and all its versions permanently.
        """
        return self.delete_row(self.locked(), _delete)

    @decorators.action(detail=True, methods=["post"], url_path="confirm")
    @decision()
    def confirm_fact(self, request: Request, memory_id: UUID) -> Response:
        """Confirm a proposed fact.

        The fact becomes active, and supersedes the fact in `replaces`. A key cannot confirm a fact
        that it proposed, or that a key of the same person or one that it replaced proposed: 409
        `own-proposal`. A fact that is not proposed is a 409 `wrong-state`.
        """
        return self._decide("confirm", memory_facts.confirm)

    @decorators.action(detail=True, methods=["post"], url_path="reject")
    @decision()
    def reject_fact(self, request: Request, memory_id: UUID) -> Response:
        """Reject a proposed fact.

        The fact is not proposed again from the same messages, or from copies of them. A fact that
        is not proposed is a 409 `wrong-state`.
        """
        return self._decide("reject", memory_facts.reject)

    @decorators.action(detail=True, methods=["post"], url_path="retract")
    @decision()
    def retract_fact(self, request: Request, memory_id: UUID) -> Response:
        """Retract a fact that was wrong.

        Agents no longer use the fact; its history is kept. To end a fact that was right, change its
        `valid_to`. A fact that is neither active nor superseded is a 409 `wrong-state`.
        """
        return self._decide("retract", memory_facts.retract)

    @decorators.action(detail=True, methods=["post"], url_path="restore")
    @decision()
    def restore_fact(self, request: Request, memory_id: UUID) -> Response:
        """Undo a rejection, a retraction or a supersession.

        A rejected fact is proposed again; a retracted or superseded one is active again. If its
        slot has another value now, the request is a 409 `slot-taken`: retract that fact first.
        """
        return self._decide("restore", memory_facts.restore)

    @decorators.action(
        detail=True, url_path="history", ordering=("-updated_at", "-memory_id"), ordering_fields=()
    )
    @views.operation(Action.VIEW, page=FactSerializer)
    def list_fact_versions(self, request: Request, memory_id: UUID) -> Response:
        """List the versions of a fact, newest first.

        Returns the current version, then the earlier ones. Versions of an expired fact are listed
        too.
        """
        versions = visible_facts(self.caller).versions_of(memory_id)
        if not versions.entries().exists():
            raise Http404
        return self.page(versions.defer("embedding"))

    @decorators.action(detail=True, url_path="events", ordering=("-number",), ordering_fields=())
    @views.operation(Action.VIEW, page=FactEventSerializer)
    def list_fact_events(self, request: Request, memory_id: UUID) -> Response:
        """List the events of a fact, newest first.

        Returns each change of the fact's state with its author and reason: in the admin, by an API
        key, by an extraction run.
        """
        self._visible(memory_id)
        return self.page(FactEvent.objects.filter(memory_id=memory_id), FactEventSerializer)

    @decorators.action(
        detail=True,
        url_path="replies",
        ordering=("-created_at", "-id"),
        ordering_fields=(),
        pagination_class=recall_events.RecallEventPagination,
    )
    @views.operation(
        Action.VIEW,
        permission=("memory.view_memoryentry", "memory.view_recallevent"),
        page=recall_events.RecallEventSerializer,
    )
    def list_fact_replies(self, request: Request, memory_id: UUID) -> Response:
        """List the replies that used a fact, newest first.

        Returns the recall events of replies with the fact in their prompt.
        """
        replies = memory_facts.recalls_with(self._visible(memory_id))
        return self.page(
            self.caller.rows(replies).select_related("reply"), recall_events.RecallEventSerializer
        )

    def _of_external_id(self, external_id: str) -> tuple[dict[str, Any], MemoryEntry | None]:
        """Return what identifies a fact, and the fact, locked, if it exists."""
        owner = {
            "tenant_id": context.required_tenant_id(),
            "agent_id": self.caller.agent_id_in(self.query),
            "user_id": self.caller.user_id_in(self.query),
            "external_id": bodies.id_of_path("external_id", external_id),
        }
        facts = tenant_facts().entries().defer("embedding").select_for_update()
        return owner, facts.filter(**owner).first()

    def _lock_batch(self, memory_ids: Iterable[UUID], place: str) -> set[UUID]:
        """Lock facts in the order of their ids. Raises Refusal if the caller may not change all.

        Args:
            memory_ids: the facts in the order of the request.
            place: the field of an id in the request, by its position.
        """
        named = [*memory_ids]
        rows = self.caller.rows(tenant_facts().entries().filter(memory_id__in=named))
        ordered = rows.order_by("memory_id").select_for_update()
        found = set(ordered.values_list("memory_id", flat=True))
        unknown = [
            FieldError(place.format(n), f"There is no fact {memory_id} that you may change.")
            for n, memory_id in enumerate(named)
            if memory_id not in found
        ]
        if unknown:
            detail = f"Nothing was changed: {len(unknown)} of the facts do not exist. See errors."
            raise Refusal(Problem.of_status(404, detail, errors=tuple(unknown)))
        return found

    def locked(self) -> MemoryEntry:
        """Return the fact in the address, locked. Raises ChangedSince for another If-Match."""
        fact = lock_fact(self.caller, self.kwargs["memory_id"])
        if "If-Match" in self.request.headers:
            views.require_match(self.request, self.document(fact))
        return fact

    def _decide(self, decision: str, change: Callable[..., MemoryEntry]) -> Response:
        """Change the state of a fact by a function; answer with the fact."""
        options = {"author": self.caller.author, **self.fields}
        return self.change(
            self.locked(),
            lambda fact: change(fact.memory_id, **options),
            with_etag=True,
            decision=decision,
        )

    def _visible(self, memory_id: UUID) -> MemoryEntry:
        """Return the fact in its current form, in any state; raise Http404 without it."""
        fact = visible_facts(self.caller).entries().defer("embedding").filter(pk=memory_id).first()
        if fact is None:
            raise Http404
        self.log(fact)
        return fact


def _delete(fact: MemoryEntry) -> None:
    FACTS.delete(fact.memory_id, context.required_tenant_id())


def _entry(caller: Caller, fields: dict[str, Any], agent_id: UUID | None) -> MemoryEntry:
    """Return the new fact that a request describes."""
    return _new_fact(
        {name: fields[name] for name in fields if name not in ("agent", "user_id")},
        tenant_id=context.required_tenant_id(),
        agent_id=agent_id,
        user_id=caller.user_id_in(fields),
    )


def _new_fact(fields: dict[str, Any], **owner: Any) -> MemoryEntry:
    entry = MemoryEntry(**owner, **fields)
    entry.cleared = [name for name, value in fields.items() if value is None]
    return entry


def _stored_documents(
    view: views.ApiViewSet, facts: Iterable[MemoryEntry], stored: Iterable[memory_facts.StoredFact]
) -> list[dict[str, Any]]:
    return [
        document
        | {
            "created": stored_fact.created,
            "near_duplicates": NearFactSerializer(stored_fact.near_duplicates, many=True).data,
        }
        for document, stored_fact in zip(view.documents(facts, FactSerializer), stored, strict=True)
    ]
