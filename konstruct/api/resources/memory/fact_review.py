"""The review of facts by REST: decisions, the events of a fact, and the replies that used it."""

from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from django.http import Http404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.lists import ByNumber, PageQuerySerializer
from konstruct.api.http.routes import route
from konstruct.api.http.views import IF_MATCH, ApiView, operation
from konstruct.api.resources.memory.facts import (
    ETAG,
    BaseFactsView,
    FactInFullSerializer,
    ReasonSerializer,
    lock_fact,
    require_fact_match,
    visible_facts,
)
from konstruct.api.resources.memory.recall_events import RecallEventSerializer, RecallEventsPage
from memory.facts import confirm, recalls_with, reject, restore, retract
from memory.models import MemoryEntry
from memory.models.facts import AuthorKind, FactAction, FactEvent
from tenants.audit.changes import row_state
from tenants.audit.models import Action

REVIEW = "memory.review_memoryentry"


# Declares a method that decides about a fact.
decision_operation: Final = partial(
    operation,
    Action.DECIDE,
    "fact",
    permission=REVIEW,
    body=ReasonSerializer,
    returns=FactInFullSerializer,
    errors=(409,),
    headers=[IF_MATCH, ETAG],
)


class FactDecisionView(BaseFactsView):
    """A decision about a fact."""

    def decide(
        self,
        memory_id: UUID,
        decision: str,
        change: Callable[..., MemoryEntry],
    ) -> Response:
        """Change the state of a fact by a function; answer with the fact."""
        existing = lock_fact(self.caller, memory_id)
        require_fact_match(self, existing)
        before = row_state(existing)
        fact = change(memory_id, author=self.caller.author, **self.fields)
        return self.changed(fact, before, FactInFullSerializer, with_etag=True, decision=decision)


@route("facts/<uuid:memory_id>/confirm/", name="confirm-fact")
class FactConfirmationView(FactDecisionView):
    """The confirmation of a fact."""

    @decision_operation(id="confirm_fact")
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Confirm a proposed fact.

        The fact becomes active, and supersedes the fact in `replaces`. A key cannot confirm a fact
        that it proposed, or that a key of the same person or one that it replaced proposed: 409
        `own-proposal`. A fact that is not proposed is a 409 `wrong-state`.
        """
        return self.decide(memory_id, "confirm", confirm)


@route("facts/<uuid:memory_id>/reject/", name="reject-fact")
class FactRejectionView(FactDecisionView):
    """The rejection of a fact."""

    @decision_operation(id="reject_fact")
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Reject a proposed fact.

        The fact is not proposed again from the same messages, or from copies of them. A fact that
        is not proposed is a 409 `wrong-state`.
        """
        return self.decide(memory_id, "reject", reject)


@route("facts/<uuid:memory_id>/retract/", name="retract-fact")
class FactRetractionView(FactDecisionView):
    """The retraction of a fact."""

    @decision_operation(id="retract_fact")
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Retract a fact that was wrong.

        Agents no longer use the fact; its history is kept. To end a fact that was right, change its
        `valid_to`. A fact that is neither active nor superseded is a 409 `wrong-state`.
        """
        return self.decide(memory_id, "retract", retract)


@route("facts/<uuid:memory_id>/restore/", name="restore-fact")
class FactRestorationView(FactDecisionView):
    """The restoration of a fact."""

    @decision_operation(id="restore_fact")
    def post(self, request: Request, memory_id: UUID) -> Response:
        """Undo a rejection, a retraction or a supersession.

        A rejected fact is proposed again; a retracted or superseded one is active again. If its
        slot has another value now, the request is a 409 `slot-taken`: retract that fact first.
        """
        return self.decide(memory_id, "restore", restore)


class FactEventSerializer(serializers.Serializer):
    """A change of a fact, and its author."""

    id = serializers.UUIDField()
    action = serializers.ChoiceField(choices=FactAction.choices, help_text="The change.")
    author_kind = serializers.ChoiceField(
        choices=AuthorKind.choices, help_text="The kind of the author."
    )
    author_id = serializers.CharField(
        help_text="Id of the person, the API key or the extraction run; may be empty."
    )
    author_name = serializers.CharField(help_text="Name of the author; may be empty.")
    reason = serializers.CharField(help_text="The author's reason; may be empty.")
    other_id = serializers.UUIDField(
        allow_null=True, help_text="The fact that superseded this one, or was superseded."
    )
    created_at = serializers.DateTimeField(help_text="When it happened.")


@route("facts/<uuid:memory_id>/events/", name="fact-events")
class FactEventsView(BaseFactsView):
    """The events of a fact."""

    @operation(
        Action.VIEW,
        "fact",
        permission="memory.view_memoryentry",
        query=PageQuerySerializer,
        id="list_fact_events",
        page=FactEventSerializer,
    )
    def get(self, request: Request, memory_id: UUID) -> Response:
        """List the events of a fact, newest first.

        Returns each change of the fact's state with its author and reason: in the admin, by an API
        key, by an extraction run.
        """
        _require_visible(self, memory_id)
        return self.page(
            FactEvent.objects.filter(memory_id=memory_id), ByNumber(), FactEventSerializer
        )


@route("facts/<uuid:memory_id>/replies/", name="fact-replies")
class FactRepliesView(BaseFactsView):
    """The replies that used a fact."""

    @operation(
        Action.VIEW,
        "fact",
        permission=("memory.view_memoryentry", "memory.view_recallevent"),
        query=PageQuerySerializer,
        id="list_fact_replies",
        page=RecallEventSerializer,
    )
    def get(self, request: Request, memory_id: UUID) -> Response:
        """List the replies that used a fact, newest first.

        Returns the recall events of replies with the fact in their prompt.
        """
        fact = _require_visible(self, memory_id)
        replies = self.caller.rows(recalls_with(fact)).select_related("reply")
        return self.page(replies, RecallEventsPage(), RecallEventSerializer)


def _require_visible(view: ApiView, memory_id: UUID) -> MemoryEntry:
    """Return the fact in its current form, in any state; raise Http404 without it."""
    fact = visible_facts(view.caller).entries().defer("embedding").filter(pk=memory_id).first()
    if fact is None:
        raise Http404
    view.log(fact)
    return fact
