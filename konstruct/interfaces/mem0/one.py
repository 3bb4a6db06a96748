"""One memory, its history, and several that are named one by one."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth.caller import Caller
from konstruct.api.http.bodies.fields import checked_query
from konstruct.api.models import KeyScope
from konstruct.interfaces.mem0.base import Mem0View
from konstruct.interfaces.mem0.documents import documents, history
from konstruct.interfaces.mem0.filters import IN_METADATA
from konstruct.interfaces.mem0.selection import memories_of
from konstruct.interfaces.mem0.serializers import (
    ChangeSerializer,
    DeleteBatchSerializer,
    FeedbackSerializer,
    LenientSerializer,
    UpdateBatchSerializer,
)
from memory.exceptions import FactNotFound
from memory.facts import LongTermMemory, delete_facts
from memory.models import MemoryEntry
from tenants.audit.changes import row_state
from tenants.context import required_tenant_id

FACTS = LongTermMemory()
MOST_VERSIONS = 1_000
FEEDBACK = ("feedback", "feedback_reason")


class MemoryView(Mem0View):
    """One memory."""

    # Who may write a memory may take it back.
    scopes = {"DELETE": KeyScope.WRITE}

    def get(self, request: Request, memory_id: UUID) -> Response:
        """Show it."""
        checked_query(request, LenientSerializer)
        fact = memories_of(self.caller).filter(memory_id=memory_id).defer("embedding").first()
        if fact is None:
            raise FactNotFound(f"there is no memory {memory_id}")
        self.note(fact)
        return Response(documents([fact])[0])

    def put(self, request: Request, memory_id: UUID) -> Response:
        """Let it say something else; what it said before is in its history."""
        body = ChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        standing = _locked(self.caller, [memory_id])[0]
        was = row_state(standing)
        fact = _change(standing, body.validated_data)
        self.note(fact, before=was, after=row_state(fact))
        return Response({"message": "Memory updated successfully!"} | documents([fact])[0])

    def delete(self, request: Request, memory_id: UUID) -> Response:
        """Delete it with its history."""
        standing = _locked(self.caller, [memory_id])[0]
        FACTS.delete(memory_id, required_tenant_id())
        self.note(standing, before=row_state(standing))
        return Response({"message": "Memory deleted successfully!"})


class HistoryView(Mem0View):
    """What a memory said before."""

    def get(self, request: Request, memory_id: UUID) -> Response:
        """Tell what became of it, oldest first."""
        facts = memories_of(self.caller, expired=True).filter(memory_id=memory_id)
        if not facts.exists():
            raise FactNotFound(f"there is no memory {memory_id}")
        versions = MemoryEntry.objects.of_tenant(required_tenant_id()).versions_of(memory_id)
        newest = [*versions.defer("embedding")[:MOST_VERSIONS]]
        self.note(newest[0])
        return Response(history(newest))


class FeedbackView(Mem0View):
    """What somebody thinks of a memory: a value of its metadata, by which it is found."""

    def post(self, request: Request) -> Response:
        """Keep it, in the place of what was thought before."""
        body = FeedbackSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        told = {name: body.validated_data.get(name) for name in FEEDBACK}
        standing = _locked(self.caller, [body.validated_data["memory_id"]])[0]
        was = row_state(standing)
        rest = {name: each for name, each in standing.metadata.items() if name not in FEEDBACK}
        kept = {name: each for name, each in told.items() if each}
        fact = FACTS.update(standing.memory_id, required_tenant_id(), metadata={**rest, **kept})
        self.note(fact, before=was, after=row_state(fact))
        return Response({"id": fact.memory_id, **told})


class BatchView(Mem0View):
    """Several memories at once, all of them or none."""

    # Who may write memories may take them back.
    scopes = {"DELETE": KeyScope.WRITE}

    def put(self, request: Request) -> Response:
        """Change them."""
        body = UpdateBatchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changes = {each.pop("memory_id"): each for each in body.validated_data["memories"]}
        for standing in _locked(self.caller, list(changes)):
            _change(standing, changes[standing.memory_id])
        self.note(facts=sorted(map(str, changes)))
        return Response({"message": f"Successfully updated {len(changes)} memories"})

    def delete(self, request: Request) -> Response:
        """Delete them with their history."""
        body = DeleteBatchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        ids = {each["memory_id"] for each in body.validated_data["memories"]}
        _locked(self.caller, list(ids))
        removed = delete_facts(memories_of(self.caller, expired=True).filter(memory_id__in=ids))
        self.note(facts=sorted(map(str, ids)), deleted=removed)
        return Response({"message": f"Successfully deleted {removed} memories"})


def _change(standing: MemoryEntry, fields: dict[str, Any]) -> MemoryEntry:
    """Write a change; the app and the run of a memory stay what they are."""
    change: dict[str, Any] = {}
    if "text" in fields:
        change["content"] = fields["text"]
    if "metadata" in fields:
        inner = {name: standing.metadata[name] for name in IN_METADATA if name in standing.metadata}
        change["metadata"] = {**fields["metadata"], **inner}
    if "timestamp" in fields:
        change["valid_from"] = fields["timestamp"]
    if "expiration_date" in fields:
        change["expires_at"] = fields["expiration_date"]
    return FACTS.update(standing.memory_id, required_tenant_id(), **change)


def _locked(caller: Caller, memory_ids: list[UUID]) -> list[MemoryEntry]:
    """The facts of these ids, which nobody else changes meanwhile, in the order of their ids.

    Raises:
        FactNotFound: for the caller, one of them is not there.
    """
    rows = memories_of(caller, expired=True).filter(memory_id__in=memory_ids).defer("embedding")
    facts = [*rows.order_by("memory_id").select_for_update()]
    if missing := {*memory_ids} - {fact.memory_id for fact in facts}:
        raise FactNotFound(f"there is no memory {min(map(str, missing))}; nothing was changed")
    return facts
