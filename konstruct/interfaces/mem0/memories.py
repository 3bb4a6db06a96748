"""Memories: adding, searching, listing, and deleting those of somebody."""

import ast
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from django.http import QueryDict
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from konstruct.api.http.bodies.fields import checked_query
from konstruct.api.http.idempotency import create_once
from konstruct.api.models import KeyScope
from konstruct.audit.models import Action
from konstruct.interfaces.mem0 import filters
from konstruct.interfaces.mem0.adding.extraction import Extracted, extract
from konstruct.interfaces.mem0.adding.texts import (
    Owner,
    Text,
    keep,
    owner_of,
    standing,
    standing_owner,
    texts_of,
)
from konstruct.interfaces.mem0.base import Mem0View
from konstruct.interfaces.mem0.documents import documents
from konstruct.interfaces.mem0.selection import memories_of, named_in, require_an_entity
from konstruct.interfaces.mem0.serializers import (
    AddSerializer,
    ListSerializer,
    PageSerializer,
    SearchSerializer,
    ignored,
)
from konstruct.strict_json import NotStrictJSON, read_json
from memory.embedding.embedder import embed
from memory.exceptions import InvalidArgument
from memory.facts import Stored, delete_facts, nearest
from memory.models import MemoryEntry
from tenants import transaction
from tenants.audit.changes import row_state
from tenants.context import required_tenant_id

DEFAULT_TOP_K = 10
LONGEST_FILTERS = 4_096
UNCONFINED = (
    "Nothing was deleted: name whose memories are to go, by user_id, agent_id, app_id or run_id."
    " A wildcard is not taken here."
)


class PingView(Mem0View):
    """Whether a key is valid, and whose it is: what clients ask first."""

    def get(self, request: Request) -> Response:
        """Tell the tenant, as both organization and project; a key is nobody's by email."""
        tenant_id = str(required_tenant_id())
        return Response(
            {"status": "ok", "org_id": tenant_id, "project_id": tenant_id, "user_email": None}
        )


class AddView(Mem0View):
    """Adding memories."""

    # A language model may be asked first, which no transaction waits for.
    own_transactions = ("POST",)

    def post(self, request: Request) -> Response:
        """Keep what is to be remembered, as facts."""
        body = AddSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        owner = standing_owner(self.caller, fields)
        extracted = (
            extract(fields["messages"])
            if fields["infer"]
            else Extracted(texts_of(fields["messages"], users_only=False))
        )
        with transaction.atomic():
            results = self._added(request, fields, owner, extracted.texts)
            self.record()
        reasons = ignored(request.data)
        if extracted.reason:
            reasons["infer"] = extracted.reason
        return Response({"results": results} | ({"ignored": reasons} if reasons else {}))

    def _added(
        self, request: Request, fields: dict[str, Any], owner: Owner | None, texts: list[Text]
    ) -> list[dict[str, Any]]:
        """Keep the texts, once for an Idempotency-Key; tell what became of each."""
        kept: list[Stored] = []
        owners: list[Owner] = []

        def keep_all() -> UUID:
            owners.append(owner or owner_of(self.caller, fields, may_make=True))
            kept.extend(
                keep(
                    texts,
                    owners[0],
                    metadata=fields["metadata"],
                    timestamp=fields.get("timestamp"),
                    expires_at=fields.get("expiration_date"),
                )
            )
            return kept[0].memory_id if kept else uuid4()

        first = create_once(request, keep_all)
        if not owners:  # The same request has come before; a model may now say it otherwise.
            owner = owner or owner_of(self.caller, fields, may_make=False)
            kept = [Stored(each, created=False) for each in standing(first, texts, owner)]
        made = {each.memory_id for each in kept if each.created}
        facts = {
            fact.memory_id: fact
            for fact in memories_of(self.caller, expired=True)
            .filter(memory_id__in={each.memory_id for each in kept})
            .defer("embedding")
        }
        self._note(owners, [facts[each] for each in facts if each in made], facts)
        return [
            {"event": "ADD" if told["id"] in made else "NONE"} | told
            for told in documents(facts[each] for each in dict.fromkeys(k.memory_id for k in kept))
        ]

    def _note(
        self, owners: list[Owner], made: list[MemoryEntry], facts: Mapping[UUID, MemoryEntry]
    ) -> None:
        """Say for the record which facts the request made, or else that it showed some."""
        if not made:
            self.note(next(iter(facts.values()), None), action=Action.VIEW)
            return
        self.note(made[0], after=row_state(made[0]))
        if len(made) > 1:
            self.note(facts=[str(fact.memory_id) for fact in made])
        if owners and owners[0].made is not None:
            self.note(made_agent=owners[0].made)


class SearchView(Mem0View):
    """Memories by meaning."""

    scopes = {"POST": KeyScope.READ}

    def post(self, request: Request) -> Response:
        """Search."""
        body = SearchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        require_an_entity(self.caller, fields["filters"])
        rows = memories_of(
            self.caller, fields["filters"], expired=fields.get("show_expired") or False
        )
        threshold = fields.get("threshold")
        found = nearest(
            rows,
            embed([fields["query"]])[0],
            fields.get("top_k") or DEFAULT_TOP_K,
            threshold=-1.0 if threshold is None else threshold,
        )
        self.note(named=named_in(fields["filters"]))
        results = documents(found, fields.get("fields") or ())
        reasons = ignored(request.data)
        return Response({"results": results} | ({"ignored": reasons} if reasons else {}))


class ListView(Mem0View):
    """Memories in pages, newest first."""

    scopes = {"POST": KeyScope.READ}

    def post(self, request: Request) -> Response:
        """List."""
        query = checked_query(request, PageSerializer)
        body = ListSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        require_an_entity(self.caller, fields["filters"])
        rows = memories_of(
            self.caller, fields["filters"], expired=fields.get("show_expired") or False
        )
        page, size = query["page"], query["page_size"]
        count = rows.count()
        newest = rows.order_by("-created_at", "-memory_id").defer("embedding")
        facts = [*newest[(page - 1) * size : page * size]]
        self.note(named=named_in(fields["filters"]))
        return Response(
            {
                "count": count,
                "next": page_address(request, page + 1) if page * size < count else None,
                "previous": page_address(request, page - 1) if page > 1 else None,
                "results": documents(facts, fields.get("fields") or ()),
            }
        )


class MemoriesView(Mem0View):
    """All memories of a user, an agent, an app or a run."""

    # Who may write memories may take them back.
    scopes = {"DELETE": KeyScope.WRITE}

    def delete(self, request: Request) -> Response:
        """Delete those that are named; never all there are."""
        wanted = _filters_of_query(request.query_params)
        if not filters.is_confined(wanted):
            raise InvalidArgument(UNCONFINED)
        removed = delete_facts(memories_of(self.caller, wanted, expired=True))
        self.note(deleted=removed, named=named_in(wanted))
        return Response({"message": f"Memories deleted successfully: {removed}.", "count": removed})


def page_address(request: Request, page: int) -> str:
    """The address of another page of the list that a request asks for."""
    return str(replace_query_param(request.build_absolute_uri(), "page", str(page)))


def _filters_of_query(query: QueryDict) -> filters.Filter:
    """The filters that query parameters say: entities by name, and `filters`.

    Raises:
        ValidationError, InvalidArgument: a parameter is unknown, or cannot be read.
    """
    said: list[filters.Filter] = []
    for name, values in query.lists():
        if name in ("org_id", "project_id"):
            continue
        if name not in (*filters.ENTITIES, "filters"):
            known = ", ".join((*filters.ENTITIES, "filters"))
            raise ValidationError({name: f"Unknown parameter. Known are: {known}."})
        if len(values) > 1:
            raise ValidationError({name: "Give this parameter once."})
        said.append(filters.parse(_read(values[0]) if name == "filters" else {name: values[0]}))
    return filters.Combination("AND", tuple(said))


def _read(text: str) -> Any:
    """An object as JSON, or as Python prints it, which is what mem0's Python client sends.

    Raises:
        InvalidArgument: it is neither.
    """
    if len(text) > LONGEST_FILTERS:
        raise InvalidArgument(f"filters is longer than {LONGEST_FILTERS} characters")
    try:
        return read_json(text)
    except NotStrictJSON:
        pass
    try:
        return read_json(json.dumps(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise InvalidArgument("filters is no object in JSON") from None
