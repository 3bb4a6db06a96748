"""Reviewers' marks on replies by REST: listed and set."""

from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import lists
from konstruct.api.http.bodies import StrictCharField, StrictSerializer
from konstruct.api.http.routes import route
from konstruct.api.http.views import AgentNameField, ApiView, operation
from konstruct.orchestrator.models import ReplyMark, ReplyReview
from konstruct.orchestrator.reply_reviews import MAX_NOTE_CHARACTERS, review_reply
from memory.models import Message
from tenants.audit.access_log import Actor
from tenants.audit.changes import row_state
from tenants.audit.models import Action, ActorKind


class NewReplyReviewSerializer(StrictSerializer):
    """A mark on a reply."""

    reply_id = serializers.UUIDField(help_text="Id of the message that is the reply.")
    mark = serializers.ChoiceField(choices=ReplyMark.choices, help_text="right, wrong or unsure.")
    note = StrictCharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=MAX_NOTE_CHARACTERS,
        help_text="The reviewer's note.",
    )


class ReplyReviewSerializer(serializers.ModelSerializer):
    """A reviewer's mark on a reply."""

    agent = AgentNameField(help_text="The agent's name.")
    reply_id = serializers.UUIDField(help_text="The message that is the reply.")
    mark = serializers.ChoiceField(choices=ReplyMark.choices, help_text="The mark.")

    class Meta:
        model = ReplyReview
        fields = [
            *("id", "reply_id", "mark", "note", "agent", "agent_id", "user_id"),
            *("reviewer_kind", "reviewer_id", "reviewer_name", "created_at"),
        ]


class ReplyReviewQuery(lists.AgentUserQuery, lists.TimeRangeQuery, lists.PageQuerySerializer):
    """Query parameters of the list."""

    reply_id = serializers.UUIDField(required=False, help_text="Only marks on this reply.")
    mark = serializers.ChoiceField(
        choices=ReplyMark.choices, required=False, help_text="Only marks with this value."
    )
    ordering = lists.ordering_field(lists.ByCreation)


@route("reply-reviews/", name="reply-reviews")
class ReplyReviewsView(ApiView):
    """Reviewers' marks on replies."""

    allows_bound_keys = True

    @operation(
        Action.LIST,
        "reply reviews",
        permission="orchestrator.view_replyreview",
        query=ReplyReviewQuery,
        id="list_reply_reviews",
        page=ReplyReviewSerializer,
    )
    def get(self, request: Request) -> Response:
        """List marks on replies, newest first."""
        rows = lists.apply_filters(ReplyReview.objects.all(), self.query, self.caller)
        return self.page(rows, lists.ByCreation(), ReplyReviewSerializer)

    @operation(
        Action.CREATE,
        "reply review",
        permission="orchestrator.add_replyreview",
        body=NewReplyReviewSerializer,
        id="review_reply",
        errors=(404,),
        returns={200: ReplyReviewSerializer, 201: ReplyReviewSerializer},
    )
    def post(self, request: Request) -> Response:
        """Mark a reply as right, wrong or unsure.

        A key or a person has one mark on each reply: a new one replaces it (200). A message that is
        not a reply of an agent is a 404. A mark is erased with its reply.
        """
        reply_id: UUID = self.fields["reply_id"]
        replies = Message.objects.filter(role="assistant").only("pk")
        get_object_or_404(self.caller.rows(replies), pk=reply_id)
        author = self.caller.author
        by = Actor(ActorKind(author.kind), author.id, author.name)
        row, is_new = review_reply(
            reply_id, mark=self.fields["mark"], note=self.fields["note"], by=by
        )
        self.log(row, after=row_state(row))
        document = self.document(row, ReplyReviewSerializer)
        return Response(document, status=201 if is_new else 200)
