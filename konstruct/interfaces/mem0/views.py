"""The views of mem0's routes."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.db.models import CharField, Count, F, Max, Min, QuerySet, TextField, Value, functions
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from konstruct.api.auth.authentication import ApiKeyAuthentication, Caller
from konstruct.api.http import problems, views
from konstruct.interfaces.mem0 import memories, serializers as requests
from konstruct.interfaces.mem0.memories import memories_of, require_entity
from konstruct.interfaces.mem0.serializers import history_documents, memory_documents, with_ignored
from konstruct.orchestrator.extraction.runs import UnsavedExtraction
from konstruct.orchestrator.usage import admit_memories
from memory.arguments import ROLES, is_blank
from memory.embedding.embedder import embed
from memory.exceptions import FactNotFound, InvalidArgument
from memory.facts import LongTermMemory, StoredFact, delete_facts
from memory.facts.rows import nearest_facts
from memory.models import MemoryAttribute, MemoryEntry
from memory.models.facts import MemoryEntryQuerySet
from tenants import transaction
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.audit.people import hold_people
from tenants.context import required_tenant_id

FACTS = LongTermMemory()
DEFAULT_TOP_K = 10
MAX_VERSIONS = 1_000


# Declares an operation. The callers are programs: no person has a permission for it. The scope
# `write` suffices to delete memories.
client_operation = partial(views.operation, permission=(), query=None)


class MemoryViewSet(views.ApiViewSet):
    """mem0's memories, which are facts. Its clients authenticate with an API key."""

    authentication_classes = [ApiKeyAuthentication]
    allows_bound_keys = True
    schema = None  # docs/mem0.yaml describes it

    @client_operation(Action.VIEW, "key")
    def ping(self, request: Request) -> Response:
        """Return the tenant as both organization and project. A key has no email address."""
        tenant_id = str(required_tenant_id())
        return Response(
            {"status": "ok", "org_id": tenant_id, "project_id": tenant_id, "user_email": None}
        )

    # The request to the language model is made before the transaction.
    @client_operation(Action.CREATE, "facts", own_transaction=True, body=requests.AddSerializer)
    def add(self, request: Request) -> Response:
        """Store texts, or the facts that the language model extracts from them."""
        fields = self.fields
        owner = memories.find_owner(self.caller, fields)
        messages = [
            memories.Text(message["content"], message["role"]) for message in fields["messages"]
        ]
        texts = [text for text in messages if text.role in ROLES and not is_blank(text.content)]
        is_unused = fields["infer"] and all(text.role == "assistant" for text in texts)
        reasons: dict[str, str] = {}
        for position, text in enumerate(messages):
            if text.role not in ROLES:
                reason = f"The role is {text.role}: only texts of users and assistants are stored."
            elif is_blank(text.content):
                reason = "The text is blank."
            elif is_unused:
                reason = "Facts are extracted from users' texts alone. To store this one, send "
                reason += "infer=false."
            else:
                continue
            reasons[f"messages[{position}]"] = reason
        answered, conversation, seen = None, texts, None
        if fields["infer"]:
            texts = [text for text in texts if text.role == "user"]
        if fields["infer"] and texts:
            with transaction.atomic():
                seen = hold_people([owner.user_id], agent_ids=[owner.agent_id])
            try:
                answered = memories.extract_facts(
                    conversation,
                    owner,
                    requested_by=f"program:{self.caller.id}",
                    said_at=fields.get("timestamp"),
                )
                texts = [
                    memories.Text(check.candidate.fact, extracted=check)
                    for check in answered.accepted()
                    if not check.review
                ]
            except memories.NotExtracted as error:
                reasons["infer"] = str(error)
        with transaction.atomic():
            results = self._store(request, fields, owner, texts, answered, conversation, seen)
            self.write_log_entry()
        if answered is not None and (waiting := answered.run.result.get("proposed")):
            reasons["review"] = f"Facts that wait for a review of a person: {waiting}."
        return Response(with_ignored({"results": results}, request.data, **reasons))

    def _store(
        self,
        request: Request,
        fields: dict[str, Any],
        owner: memories.Owner,
        texts: list[memories.Text],
        answered: UnsavedExtraction | None,
        conversation: list[memories.Text],
        seen: dict[str, str] | None,
    ) -> list[dict[str, Any]]:
        """Store the texts, once for an Idempotency-Key, and return their documents."""
        stored: list[StoredFact] | None = None

        def create() -> UUID:
            nonlocal stored
            if answered is not None and owner.agent_id and owner.user_id:
                stored = memories.record_run(answered, conversation, owner, fields, seen)
            else:
                stored = memories.store_texts(texts, owner, fields, self.caller.author, seen)
            return stored[0].memory_id if stored else uuid4()

        first, _ = self.idempotency.once(create)
        if stored is None:  # a repeated request; the model may have extracted other texts from it
            stored = []
            ids = memories.existing_facts(first, texts, owner)
        else:
            ids = [stored_fact.memory_id for stored_fact in stored]
        created = {stored_fact.memory_id for stored_fact in stored if stored_fact.created}
        rows = memories_of(self.caller, expired=True).filter(memory_id__in=ids).defer("embedding")
        facts = {fact.memory_id: fact for fact in rows}
        new = [fact for fact in facts.values() if fact.memory_id in created]
        if new:
            self.log(new[0], after=row_state(new[0]))
        else:
            self.log(next(iter(facts.values()), None), action=Action.VIEW)
        if len(new) > 1:
            self.log(facts=[fact.memory_id for fact in new])
        return [
            {"event": "ADD" if document["id"] in created else "NONE"} | document
            for document in memory_documents(facts[memory_id] for memory_id in dict.fromkeys(ids))
        ]

    @client_operation(Action.SEARCH, "facts", body=requests.SearchSerializer)
    def search(self, request: Request) -> Response:
        """Search by meaning."""
        fields = self.fields
        rows = _read_memories(self, fields)
        threshold = fields.get("threshold")
        found = nearest_facts(
            rows,
            embed([fields["query"]], is_query=True)[0],
            fields.get("top_k") or DEFAULT_TOP_K,
            threshold=-1.0 if threshold is None else threshold,
        )
        results = memory_documents(found, fields.get("fields") or ())
        return Response(with_ignored({"results": results}, request.data))

    @client_operation(
        Action.LIST, "facts", body=requests.ListSerializer, query=requests.PageSerializer
    )
    def list_memories(self, request: Request) -> Response:
        """List, newest first."""
        fields = self.fields
        rows = _read_memories(self, fields).order_by("-created_at", "-memory_id")
        return self._page(
            rows.defer("embedding"),
            lambda facts: memory_documents(facts, fields.get("fields") or ()),
        )

    @client_operation(Action.DELETE, "facts", query=requests.DeleteSerializer)
    def delete_all(self, request: Request) -> Response:
        """Delete the memories of the users, agents, apps and runs that the query names."""
        named = self.query["filters"]
        if not named.is_limited:
            raise InvalidArgument(
                "Nothing was deleted: name the owner of the memories by user_id, agent_id, app_id"
                " or run_id, without a wildcard."
            )
        deleted_count = delete_facts(memories_of(self.caller, named, expired=True))
        self.log(deleted=deleted_count, people=named.users)
        return Response(
            {"message": f"Memories deleted successfully: {deleted_count}.", "count": deleted_count}
        )

    @client_operation(Action.VIEW, "fact", query=requests.LenientSerializer)
    def get_memory(self, request: Request, memory_id: UUID) -> Response:
        """Return the memory."""
        fact = memories_of(self.caller).filter(memory_id=memory_id).defer("embedding").first()
        if fact is None:
            raise FactNotFound(f"there is no memory {memory_id}")
        self.log(fact)
        return Response(memory_documents([fact])[0])

    @client_operation(Action.EDIT, "fact", body=requests.ChangeSerializer)
    def change_memory(self, request: Request, memory_id: UUID) -> Response:
        """Change the memory. Its former text stays in its history."""
        fields = self.fields
        fact = _lock_facts(self.caller, [memory_id])[0]
        before = row_state(fact)
        fact = _update(self.caller, fact, fields)
        self.log(fact, before=before, after=row_state(fact))
        return Response({"message": "Memory updated successfully!"} | memory_documents([fact])[0])

    @client_operation(Action.DELETE, "fact")
    def delete_memory(self, request: Request, memory_id: UUID) -> Response:
        """Delete the memory with its history."""
        fact = _lock_facts(self.caller, [memory_id])[0]
        FACTS.delete(memory_id, required_tenant_id())
        self.log(fact, before=row_state(fact))
        return Response({"message": "Memory deleted successfully!"})

    @client_operation(Action.VIEW, "fact")
    def get_history(self, request: Request, memory_id: UUID) -> Response:
        """Return the changes of the memory, oldest first."""
        if not memories_of(self.caller, expired=True).filter(memory_id=memory_id).exists():
            raise FactNotFound(f"there is no memory {memory_id}")
        versions = MemoryEntry.objects.of_tenant(required_tenant_id()).versions_of(memory_id)
        newest = [*versions.defer("embedding")[:MAX_VERSIONS]]
        self.log(newest[0])
        return Response(history_documents(newest))

    @client_operation(Action.EDIT, "facts", body=requests.UpdateBatchSerializer)
    def change_several(self, request: Request) -> Response:
        """Change the memories: all of them, or none."""
        changes = {change.pop("memory_id"): change for change in self.fields["memories"]}
        for fact in _lock_facts(self.caller, list(changes)):
            _update(self.caller, fact, changes[fact.memory_id])
        self.log(facts=sorted(changes))
        return Response({"message": f"Successfully updated {len(changes)} memories"})

    @client_operation(Action.DELETE, "facts", body=requests.DeleteBatchSerializer)
    def delete_several(self, request: Request) -> Response:
        """Delete the memories with their histories: all of them, or none."""
        ids = {item["memory_id"] for item in self.fields["memories"]}
        _lock_facts(self.caller, list(ids))
        deleted_count = delete_facts(
            memories_of(self.caller, expired=True).filter(memory_id__in=ids)
        )
        self.log(facts=sorted(ids), deleted=deleted_count)
        return Response({"message": f"Successfully deleted {deleted_count} memories"})

    @client_operation(Action.LIST, "people", query=requests.EntityPageSerializer)
    def list_entities(self, request: Request) -> Response:
        """List the users, agents, apps and runs that have memories, by kind and name."""
        facts = memories_of(self.caller)
        of_text = MemoryAttribute.objects.filter(kind="text", memory__in=facts.values("memory_id"))
        agent_key = functions.Cast("agent_id", TextField())
        rows = _grouped(facts.filter(user_id__isnull=False), "user", F("user_id")).union(
            _grouped(facts.filter(agent_id__isnull=False), "agent", agent_key),
            *(
                _grouped(of_text.filter(key=f"{kind}_id"), kind, F("text"), "memory__")
                for kind in ("app", "run")
            ),
            all=True,
        )

        def documents(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            agents = [UUID(row["called"]) for row in rows if row["entity"] == "agent"]
            names = {("agent", str(key)): name for key, name in views.agent_names(agents).items()}
            return [
                {
                    "id": names.get((row["entity"], row["called"]), row["called"]),
                    "name": names.get((row["entity"], row["called"]), row["called"]),
                    "type": row["entity"],
                    "total_memories": row["total"],
                    "created_at": row["first_at"],
                    "updated_at": row["last_at"],
                }
                for row in rows
            ]

        ordered = rows.order_by("entity", "called")
        return self._page(ordered, documents)

    @client_operation(Action.DELETE, "facts")
    def delete_entity(self, request: Request, kind: str, name: str) -> Response:
        """Delete the memories of a user, agent, app or run; messages and the agent stay."""
        named, deleted_count = memories.parse({f"{kind}_id": {"eq": name}}), 0
        if named.is_limited:
            deleted_count = delete_facts(memories_of(self.caller, named, expired=True))
        if not deleted_count:
            raise FactNotFound(f"there are no memories of the {kind} {name!r} for this key")
        self.log(deleted=deleted_count, people=named.users)
        return Response({"message": "Entity deleted successfully!", "count": deleted_count})

    def _page(
        self, rows: QuerySet[Any], documents: Callable[[list[Any]], list[dict[str, Any]]]
    ) -> Response:
        """Return a page of ordered rows. A page after the last one is empty."""
        page, size = self.query["page"], self.query["page_size"]
        count = rows.order_by().count()

        def url(number: int) -> str:
            address = self.request.build_absolute_uri()
            return str(replace_query_param(address, "page", str(number)))

        return Response(
            {
                "count": count,
                "next": url(page + 1) if page * size < count else None,
                "previous": url(page - 1) if page > 1 else None,
                "results": documents([*rows[(page - 1) * size : page * size]]),
            }
        )


def _read_memories(view: MemoryViewSet, fields: dict[str, Any]) -> MemoryEntryQuerySet:
    """Return the facts that a search or a list reads; add its entities to the access log."""
    require_entity(view.caller, fields["filters"])
    view.log(people=fields["filters"].users)
    return memories_of(view.caller, fields["filters"], expired=fields.get("show_expired") or False)


def _update(caller: Caller, fact: MemoryEntry, fields: dict[str, Any]) -> MemoryEntry:
    """Update a fact. The app and the run of a memory never change."""
    names = {"text": "content", "timestamp": "valid_from", "expiration_date": "expires_at"}
    change = {column: fields[name] for name, column in names.items() if name in fields}
    if "metadata" in fields:
        entities = {
            name: fact.metadata[name] for name in memories.IN_METADATA if name in fact.metadata
        }
        change["metadata"] = {**fields["metadata"], **entities}
    with admit_memories(1):
        return FACTS.update(fact.memory_id, required_tenant_id(), author=caller.author, **change)


def _lock_facts(caller: Caller, memory_ids: list[UUID]) -> list[MemoryEntry]:
    """Return the facts with these ids in the order of their ids, locked for update.

    Raises:
        FactNotFound: the caller has no fact with one of these ids.
    """
    rows = memories_of(caller, expired=True).filter(memory_id__in=memory_ids).defer("embedding")
    facts = [*rows.order_by("memory_id").select_for_update()]
    if missing := {*memory_ids} - {fact.memory_id for fact in facts}:
        raise FactNotFound(f"there is no memory {min(map(str, missing))}; nothing was changed")
    return facts


def _grouped(rows: QuerySet[Any], kind: str, key: Any, fact: str = "") -> QuerySet[Any]:
    """Return the entities of a kind, each with its number of facts and their times."""
    return (
        rows.order_by()
        .annotate(entity=Value(kind, CharField()), called=key)
        .values("entity", "called")
        .annotate(
            total=Count("pk"), first_at=Min(f"{fact}created_at"), last_at=Max(f"{fact}updated_at")
        )
    )


@csrf_exempt
def not_offered(request: HttpRequest, **_: Any) -> HttpResponse:
    """Answer 501 to routes of mem0's clients that Konstruct does not have."""
    detail = (
        "Konstruct does not offer this: it has no exports, feedback, summaries, profiles, webhooks,"
        " organizations and projects. Read memories by search and get_all. The tenant's admin has"
        " its team, settings and access log."
    )
    return problems.problem_response(request, problems.Problem(501, "not-offered", detail))


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer 404 to any other path."""
    detail = (
        "Nothing is at this address. The id of a memory is a UUID. Clients of mem0 older than"
        " version 2 must be upgraded. docs/mem0.md lists the supported methods."
    )
    return problems.problem_response(request, problems.Problem.of_status(404, detail))
