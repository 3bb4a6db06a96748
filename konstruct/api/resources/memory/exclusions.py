"""Exclusions of messages and of their words from recall by REST."""

from typing import Any
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.bodies import StrictIntegerField
from konstruct.api.http.lists import ByCreation, PageQuerySerializer
from konstruct.api.http.problems import current_request_id
from konstruct.api.http.routes import route
from konstruct.api.http.views import ApiView, no_content, operation
from konstruct.api.resources.memory.facts import ReasonSerializer
from memory.exceptions import InvalidArgument
from memory.facts import exclude_from_recall, include_again
from memory.facts.exclusions import SUBJECT
from memory.models import AuthorKind, Message, RecallExclusion
from tenants.audit.models import Action


class NewExclusionSerializer(ReasonSerializer):
    """The part of a message to exclude, and the reason."""

    start = StrictIntegerField(
        required=False,
        min_value=0,
        help_text="First character of the words. Default, with `end`: the whole message.",
    )
    end = StrictIntegerField(
        required=False, min_value=1, help_text="Position after the last character of the words."
    )


class ExclusionSerializer(serializers.Serializer):
    """A message, or some of its words, excluded from recall."""

    id = serializers.UUIDField()
    message_id = serializers.UUIDField(help_text="The message.")
    start = serializers.IntegerField(
        allow_null=True, help_text="First character of the words; null: the whole message."
    )
    end = serializers.IntegerField(
        allow_null=True, help_text="Position after the last character of the words."
    )
    memory_id = serializers.UUIDField(
        allow_null=True,
        help_text="The fact, or old version, with the correction that excluded it; null: it was "
        "excluded directly.",
    )
    echo_of = serializers.UUIDField(
        allow_null=True,
        help_text="The exclusion of the message that this reply repeats; null: none.",
    )
    reason = serializers.CharField(help_text="The author's reason.")
    author_kind = serializers.ChoiceField(choices=AuthorKind.choices)
    author_name = serializers.CharField(help_text="Name of the author.")
    created_at = serializers.DateTimeField(help_text="When it was excluded.")


def _message(view: ApiView, message_id: UUID) -> Message:
    """Return a message that the caller may see. Raises Http404."""
    return get_object_or_404(view.caller.rows(Message.objects.all()), pk=message_id)


@route("messages/<uuid:message_id>/exclusions/", name="exclusions")
class ExclusionsView(ApiView):
    """The exclusions of a message from recall."""

    allows_bound_keys = True

    @operation(
        Action.LIST,
        SUBJECT,
        permission="memory.view_recallexclusion",
        query=PageQuerySerializer,
        id="list_exclusions",
        page=ExclusionSerializer,
    )
    def get(self, request: Request, message_id: UUID) -> Response:
        """List the exclusions of a message, newest first."""
        rows = RecallExclusion.objects.filter(message=_message(self, message_id))
        return self.page(rows, ByCreation(), ExclusionSerializer)

    @operation(
        Action.CREATE,
        SUBJECT,
        permission="memory.add_recallexclusion",
        body=NewExclusionSerializer,
        id="exclude_from_recall",
        returns=ExclusionSerializer,
    )
    def post(self, request: Request, message_id: UUID) -> Response:
        """Exclude a message, or some of its words, from recall.

        Agents no longer recall the message or the words, and a whole message is not among the
        recent turns. The same happens to the agent's echoes of it: replies that were written with
        the message, and have at least half of its words. The transcript keeps all of them. For
        words that are already excluded, the response is the existing exclusion.
        """
        fields: dict[str, Any] = self.fields
        message, author = _message(self, message_id), self.caller.author
        words = {"start": fields.get("start"), "end": fields.get("end")}
        of_caller = RecallExclusion.objects.filter(message=message, memory_id=None, echo_of=None)
        existing = of_caller.filter(**words).first()
        try:
            exclusion = existing or exclude_from_recall(
                message, author=author, request_id=current_request_id(), **fields
            )
        except InvalidArgument as error:
            raise ValidationError({"start": str(error)}) from error
        if existing is None:
            self.mark_recorded()
        else:
            self.log(existing)
        return Response(self.document(exclusion, ExclusionSerializer))


@route("messages/<uuid:message_id>/exclusions/<uuid:exclusion_id>/", name="exclusion")
class ExclusionView(ApiView):
    """One exclusion of a message."""

    allows_bound_keys = True

    @operation(
        Action.DELETE,
        SUBJECT,
        permission="memory.delete_recallexclusion",
        id="include_again",
        returns=no_content("Recall can find it again."),
    )
    def delete(self, request: Request, message_id: UUID, exclusion_id: UUID) -> Response:
        """Remove an exclusion, including one made by the correction of a fact.

        Recall and recent turns can have the message, or its words, again, and the echoes of it.
        """
        message = _message(self, message_id)
        exclusion = RecallExclusion.objects.filter(message=message, pk=exclusion_id).first()
        author = self.caller.author
        if exclusion is None or not include_again(
            message, author=author, exclusion_id=exclusion_id, request_id=current_request_id()
        ):
            raise Http404
        self.mark_recorded()
        return Response(status=204)
