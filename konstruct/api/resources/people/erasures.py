"""Requests of erasure, and their receipts."""

import copy
from typing import Any
from uuid import UUID

from rest_framework import decorators, exceptions, mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth.authentication import OutsideOfKey
from konstruct.api.http import bodies, lists, operations, problems, schema, views
from konstruct.api.models import KeyScope
from konstruct.orchestrator.identities import channel_identities, erasure_requests
from tenants.audit.models import Action, ErasureRequest, MessageErasure
from tenants.audit.people import pseudonyms

MAX_THREADS = 1000
MAX_REPLIES = 1000
ERASE = "audit.add_erasurerequest"


class EraseSerializer(bodies.StrictSerializer):
    """Query parameters of erasures."""

    reason = bodies.OptionalTextField(
        help_text="The reason. It is stored on the receipt, so it must not contain an id or a name "
        "of the person.",
    )


class NewErasureSerializer(EraseSerializer):
    """The user to erase."""

    user_id = bodies.ChannelIdField(help_text="The exact user id. Linked ids are erased too.")
    agent = bodies.ChannelIdField(
        required=False,
        help_text="Name or id of an agent: only its data is erased. Default: all agents.",
    )
    threads = bodies.BoundedListField(
        child=bodies.ChannelIdField(),
        required=False,
        max_length=MAX_THREADS,
        help_text="Sessions of graphs that belong to the user, in addition to those of their "
        "conversations. A session of a thread with other speakers, or that names another user, is "
        "refused.",
    )
    all_replies = bodies.StrictBooleanField(
        required=False,
        help_text="Erase all replies to others that were written with the user's words, which "
        "`GET /api/v1/erasures/replies/` lists. Default: they are kept.",
    )
    replies = bodies.BoundedListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=MAX_REPLIES,
        help_text="The ids of those of these replies that are erased.",
    )


class AffectedRepliesQuery(bodies.StrictSerializer):
    """Query parameters of the replies that an erasure may include."""

    user_id = bodies.ChannelIdField(help_text="The user to erase.")
    agent = bodies.ChannelIdField(required=False, help_text="Name or id of the one agent.")


class AffectedReplySerializer(serializers.Serializer):
    """A reply to another user that was written with words of the user."""

    id = serializers.UUIDField()
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField(help_text="The user of the reply.")
    thread_id = serializers.CharField()
    content = serializers.CharField()
    created_at = serializers.DateTimeField()


class EraseMessageQuery(EraseSerializer):
    """Query parameters of the erasure of a message."""

    quotes = serializers.BooleanField(
        required=False,
        help_text="Erase the replies that quote the message too: those that were written with it, "
        "and have at least half of its words. Default: they are kept, and `quoted_in` of the "
        "receipt has their ids.",
    )


class ErasureProgressSerializer(serializers.Serializer):
    """The progress of an erasure."""

    step = serializers.CharField(help_text="The current step.")
    messages_removed = serializers.IntegerField(
        source="messages.removed", help_text="Number of messages removed."
    )
    messages = serializers.IntegerField(
        source="messages.of", help_text="Number of messages found so far."
    )


class ErasureSerializer(serializers.Serializer):
    """An erasure request and, once done, its receipt."""

    url = views.UrlField("erasure-detail")
    id = serializers.UUIDField()
    user_id = serializers.CharField(help_text="The user; once done, a keyed digest: `erased:…`.")
    user_ids = bodies.TextsField(
        help_text="All ids of the person: the given id and the ids linked to it. Once done, their "
        "digests.",
    )
    agent_id = serializers.UUIDField(allow_null=True, help_text="Null: all agents.")
    thread_id = serializers.CharField(
        allow_null=True,
        required=False,
        help_text="The conversation that is erased, or that has the erased message. Null: the user "
        "is erased.",
    )
    message_id = serializers.UUIDField(allow_null=True, required=False, help_text="The message.")
    all_replies = serializers.BooleanField(
        required=False,
        help_text="All replies to others that were written with the user's words are erased.",
    )
    reply_ids = serializers.ListField(child=serializers.UUIDField(), help_text="Further replies.")
    reason = serializers.CharField()
    requested_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    state = serializers.ChoiceField(
        choices=["requested", "running", "done"],
        help_text="done: the receipt lists the data that was removed, and data that is removed "
        "later.",
    )
    progress = ErasureProgressSerializer(allow_null=True, help_text="While it is running.")
    problem = serializers.CharField(
        source="last_error", help_text="Why it has not finished yet, or empty."
    )
    done_at = serializers.DateTimeField(allow_null=True)
    receipt = serializers.JSONField(
        allow_null=True,
        help_text="The numbers of rows removed from each table, with digests of the ids and "
        "without texts. `found` is false if nothing was stored about the user. `replies_to_others` "
        "has the numbers of replies to others that were chosen (or `all`), erased and kept. "
        "`storage` lists the rewritten files, and when other files lose the removed values.",
    )

    def to_representation(self, erasure: ErasureRequest | MessageErasure) -> Any:
        """Return the request with its state, its progress and all ids of the person."""
        shown: Any = copy.copy(erasure)
        started, shown.progress, shown.all_replies = erasure.receipt, None, False
        shown.user_ids = [erasure.user_id]
        if isinstance(erasure, ErasureRequest):
            started, shown.all_replies = erasure.progress, erasure.all_replies
            shown.progress = started if started and "messages" in started else None
            if erasure.user_ids or not erasure.done_at:
                shown.user_ids = erasure.user_ids or channel_identities.linked_ids(erasure.user_id)
        shown.state = "done" if erasure.done_at else "running" if started else "requested"
        return super().to_representation(shown)


class ErasureFilter(lists.FilterSet):
    """Filters of the list."""

    user_id = lists.Filter(
        bodies.ChannelIdField, "Only of this user, also after the erasure.", method="of_person"
    )
    state = lists.FlagFilter(
        "Only requests that are open or done.", ["open", "done"], lookup="done_at__isnull"
    )

    def of_person(self, rows: Any, name: str, value: str) -> Any:
        """Filter by a user id, or by its digest after the erasure."""
        return rows.filter(pk__in=_requests_about(self.caller.user(value)))


class ErasureViewSet(mixins.ListModelMixin, views.ApiViewSet):
    """Requests of erasure."""

    queryset = ErasureRequest.objects.all()
    serializer_class = ErasureSerializer
    filterset_class = ErasureFilter
    ordering_fields = ("created_at",)
    subject = "erasure request"
    lookup_url_kwarg = "erasure_id"
    permission = "audit.view_erasurerequest"
    allows_bound_keys = True

    def get_queryset(self) -> Any:
        """Return the requests within the binding of the key; finished ones have digests."""
        rows, caller = ErasureRequest.objects.all(), self.caller
        if caller.agent_id is not None:
            rows = rows.filter(agent_id=caller.agent_id)
        if caller.user_id is not None:
            rows = rows.filter(pk__in=_requests_about(caller.user_id))
        return rows

    @views.operation(Action.LIST, scope=(KeyScope.READ, KeyScope.ERASE), id="list_erasures")
    def list(self, request: Request) -> Response:
        """List the erasures of users. Erasures of messages are not listed."""
        return super().list(request)

    @views.operation(
        Action.ERASE,
        "person",
        permission=ERASE,
        body=NewErasureSerializer,
        id="request_erasure",
        returns={202: ErasureSerializer},
        errors=(409, 422),
        headers=[schema.IDEMPOTENCY_KEY, schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Request the erasure of a user.

        A background process removes all data about the user and about all users linked to them:
        `Location` has the progress and the receipt. This cannot be undone. While the request is
        open, sending it again returns it, and what would be stored about the user is refused with
        409 `being-erased`. A key that is bound to a user erases that user only; if other users are
        linked to the user, the request needs a key of the whole tenant.
        """
        fields = self.fields
        replies = {
            "all_replies": fields.get("all_replies", False),
            "reply_ids": fields.get("replies", ()),
        }
        if self.caller.is_bound and any(replies.values()):
            raise OutsideOfKey("Replies to others need a key of the whole tenant.")
        agent_id = self.caller.agent_id_in(fields)
        user_id = self.caller.user(fields["user_id"])
        if self.caller.user_id is not None and len(channel_identities.linked_ids(user_id)) > 1:
            raise OutsideOfKey(
                f"Other ids are linked to {user_id!r}, and this key is of that user alone. Nothing "
                "was noted; ask with a key of the whole tenant."
            )

        requested: ErasureRequest | None = None

        def create() -> UUID:
            nonlocal requested
            requested = erasure_requests.request_erasure(
                user_id,
                by=operations.actor_of(request),
                agent_id=agent_id,
                threads=fields.get("threads", ()),
                reason=fields.get("reason", ""),
                request_id=problems.current_request_id(),
                by_bound_key=self.caller.is_bound,
                **replies,
            )
            return requested.pk

        try:
            erasure_id, _ = self.idempotency.once(create)
        except erasure_requests.ThreadOfOthers as error:
            if self.caller.is_bound:
                raise OutsideOfKey(str(error)) from error
            raise
        if requested is not None:
            self.mark_recorded()
        else:  # the same Idempotency-Key
            requested = ErasureRequest.objects.get(pk=erasure_id)
            self.log(requested, action=Action.VIEW)
        document = self.document(requested)
        return Response(document, status=202, headers={"Location": document["url"]})

    @views.operation(
        Action.VIEW,
        scope=(KeyScope.READ, KeyScope.ERASE),
        id="get_erasure",
        errors=(404,),
    )
    def retrieve(self, request: Request, erasure_id: UUID) -> Response:
        """Get the state of an erasure."""
        erasure: ErasureRequest | MessageErasure | None
        erasure = ErasureRequest.objects.filter(pk=erasure_id).first()
        erasure = erasure or MessageErasure.objects.filter(pk=erasure_id).first()
        caller, user_id = self.caller, self.caller.user_id
        if erasure is None or caller.agent_id not in (None, erasure.agent_id):
            raise exceptions.NotFound
        # A finished one has the user's digest.
        if user_id is not None and erasure.user_id not in (user_id, *pseudonyms(user_id)):
            raise exceptions.NotFound
        self.log(erasure)
        return Response(self.document(erasure))

    @decorators.action(
        detail=False,
        url_path="replies",
        ordering=("-created_at", "-number"),
        ordering_fields=(),
        allows_bound_keys=False,
    )
    @views.operation(
        Action.LIST,
        "replies with words of a person",
        scope=(KeyScope.READ, KeyScope.ERASE),
        permission="memory.view_message",
        query=AffectedRepliesQuery,
        page=AffectedReplySerializer,
    )
    def list_affected_replies(self, request: Request) -> Response:
        """List the replies to others that were written with words of a user, newest first.

        An erasure of the user keeps them unless it names them. It needs a key of the whole tenant.
        """
        user_ids = channel_identities.linked_ids(self.query["user_id"])
        rows = erasure_requests.replies_to_others(
            user_ids, agent_id=self.caller.agent_id_in(self.query)
        )
        return self.page(rows, AffectedReplySerializer)


def _requests_about(user_id: str) -> Any:
    return ErasureRequest.objects.about(user_id).order_by().values("pk")


def erase_messages(view: views.ApiViewSet, **what: Any) -> Response:
    """Request the erasure of a message or a conversation, and answer with the request.

    Args:
        view: the view.
        what: arguments of `request_message_erasure`.
    """
    by = operations.actor_of(view.request)
    erasure = erasure_requests.request_message_erasure(by=by, **what)
    view.log(erasure, erasure_id=erasure.pk)
    document = view.document(erasure, ErasureSerializer)
    return Response(document, status=202, headers={"Location": document["url"]})
