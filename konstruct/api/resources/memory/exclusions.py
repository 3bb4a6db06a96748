"""Exclusions of messages and of their words from recall by REST."""

from typing import Any
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import exceptions, mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, views
from konstruct.api.http.problems import current_request_id
from konstruct.api.resources.memory.facts import ReasonSerializer
from memory.exceptions import InvalidArgument
from memory.facts import exclude_from_recall, exclusions, include_again
from memory.models import Message, RecallExclusion
from tenants.audit.models import Action


class NewExclusionSerializer(ReasonSerializer):
    """The part of a message to exclude, and the reason."""

    start = bodies.StrictIntegerField(
        required=False,
        min_value=0,
        help_text="First character of the words. Default, with `end`: the whole message.",
    )
    end = bodies.StrictIntegerField(
        required=False, min_value=1, help_text="Position after the last character of the words."
    )


class ExclusionSerializer(bodies.RowSerializer):
    """A message, or some of its words, excluded from recall."""

    message_id = serializers.UUIDField(help_text="The message.")

    class Meta:
        model = RecallExclusion
        fields = [
            *("id", "message_id", "start", "end", "memory_id", "echo_of", "reason"),
            *("author_kind", "author_name", "created_at"),
        ]


class ExclusionViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """The exclusions of a message from recall, newest first."""

    queryset = RecallExclusion.objects.all()
    serializer_class = ExclusionSerializer
    subject = subjects = exclusions.SUBJECT
    lookup_url_kwarg = "exclusion_id"
    allows_bound_keys = True

    def message(self) -> Message:
        """Return the message in the address, if the caller may see it. Raises Http404."""
        return get_object_or_404(
            self.caller.rows(Message.objects.all()), pk=self.kwargs["message_id"]
        )

    def get_queryset(self) -> Any:
        """Return the exclusions of the message in the address."""
        return RecallExclusion.objects.filter(message=self.message())

    @views.operation(Action.LIST, id="list_exclusions")
    def list(self, request: Request, message_id: UUID) -> Response:
        """List the exclusions of a message, newest first."""
        return super().list(request)

    @views.operation(
        Action.CREATE,
        body=NewExclusionSerializer,
        id="exclude_from_recall",
        returns={200: ExclusionSerializer},
    )
    def create(self, request: Request, message_id: UUID) -> Response:
        """Exclude a message, or some of its words, from recall.

        Agents no longer recall the message or the words, and a whole message is not among the
        recent turns. The same happens to the agent's echoes of it: replies that were written with
        the message, and have at least half of its words. The transcript keeps all of them. For
        words that are already excluded, the response is the existing exclusion.
        """
        fields: dict[str, Any] = self.fields
        message, author = self.message(), self.caller.author
        words = {"start": fields.get("start"), "end": fields.get("end")}
        of_caller = RecallExclusion.objects.filter(message=message, memory_id=None, echo_of=None)
        existing = of_caller.filter(**words).first()
        try:
            exclusion = existing or exclude_from_recall(
                message, author=author, request_id=current_request_id(), **fields
            )
        except InvalidArgument as error:
            raise exceptions.ValidationError({"start": str(error)}) from error
        if existing is None:
            self.mark_recorded()
        else:
            self.log(existing)
        return Response(self.document(exclusion))

    @views.operation(Action.DELETE, id="include_again")
    def destroy(self, request: Request, message_id: UUID, exclusion_id: UUID) -> Response:
        """Remove an exclusion, including one made by the correction of a fact.

        Recall and recent turns can have the message, or its words, again, and the echoes of it.
        """
        message = self.message()
        exclusion = RecallExclusion.objects.filter(message=message, pk=exclusion_id).first()
        author = self.caller.author
        if exclusion is None or not include_again(
            message, author=author, exclusion_id=exclusion_id, request_id=current_request_id()
        ):
            raise Http404
        self.mark_recorded()
        return Response(status=204)
