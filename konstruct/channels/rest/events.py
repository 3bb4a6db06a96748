"""Events for programs, webhooks, and the deliveries of events to webhooks."""

import re
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpResponse
from django.urls import path
from rest_framework import decorators, mixins, serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from konstruct.api.http import bodies, lists, schema, views
from konstruct.channels import webhooks
from konstruct.channels.rest import responses
from konstruct.outgoing import AddressRefused
from tenants import transaction
from tenants.audit.models import Action
from tenants.models import job_columns
from tenants.outbox import models
from tenants.outbox.events import events_after

MAX_EVENTS = 500
# Duration of a stream of events. Then the client connects again.
STREAM_SECONDS: Final = 300.0
_EVENT_ID: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


_LAST_EVENT_ID: Final = schema.header(
    "Last-Event-ID", "The id of the last event that a stream has delivered, instead of `after`."
)


class EventsNegotiation(responses.JsonOrEvents):
    """Answers a read with events."""

    method = "GET"


class EventDataSerializer(serializers.Serializer):
    """The object of an event."""

    id = serializers.UUIDField(help_text="Id of the message, escalation, fact …")
    agent_id = serializers.UUIDField(allow_null=True, help_text="The agent.")
    user_id = serializers.CharField(allow_null=True, help_text="The user.")
    thread_id = serializers.CharField(allow_null=True, help_text="The conversation.")
    message_id = serializers.UUIDField(
        required=False, help_text="The message with the answer, of `escalation.answered`."
    )
    quota = serializers.CharField(required=False, help_text="The quota, of `quota.reached`.")


class EventSerializer(serializers.Serializer):
    """An event."""

    id = serializers.UUIDField(help_text="Its id, which is `webhook-id` of a webhook.")
    type = serializers.ChoiceField(choices=models.EventType.choices, help_text="The type.")
    timestamp = serializers.DateTimeField(help_text="When it happened.")
    data = EventDataSerializer(help_text="Its object.")  # type: ignore[assignment]


class EventsSerializer(serializers.Serializer):
    """Events in their order."""

    events = EventSerializer(many=True, help_text="The events after `after`, oldest first.")
    after = serializers.IntegerField(help_text="The value of `after` for the next request.")
    has_more = serializers.BooleanField(help_text="Whether there are more events already.")


class EventsQuery(bodies.StrictSerializer):
    """Query parameters of the events."""

    after = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        help_text="Only events after this place. Default: the oldest ones.",
    )
    limit = bodies.LimitField(max_value=MAX_EVENTS, help_text="Number of events. Default: 100.")


class EventViewSet(views.ApiViewSet):
    """Events of the last 30 days. Bound keys have no access."""

    queryset = models.OutboxEvent.objects.all()
    serializer_class = EventsSerializer
    subject = "event"
    content_negotiation_class = EventsNegotiation

    @views.operation(
        Action.LIST,
        "events",
        query=EventsQuery,
        returns={200: EventsSerializer, (200, responses.MEDIA_TYPE): str},
        headers=[_LAST_EVENT_ID],
    )
    def list_events(self, request: Request) -> Any:
        """Read events in their order.

        Store `after` of the response, and send it with the next request: no event is left out, and
        none is returned twice. Events are kept for 30 days.

        With `Accept: text/event-stream` the response is a stream of server-sent events for five
        minutes: each has its `id`, which is the next `after`, its type as `event` and the event as
        `data`. A client that connects again sends the last id as `Last-Event-ID`.
        """
        if responses.wants_events(request):
            return self._stream(request)
        after, limit = self.query.get("after", 0), self.query.get("limit", 100)
        events = list(events_after(after)[: limit + 1])
        has_more, events = len(events) > limit, events[:limit]
        self.log(people={event.user_id for event in events if event.user_id})
        return Response(
            {
                "events": [webhooks.document(event) for event in events],
                "after": events[-1].number if events else after,
                "has_more": has_more,
            }
        )

    def _stream(self, request: Request) -> HttpResponse:
        last = request.headers.get("Last-Event-ID", "")
        if last and not _EVENT_ID.fullmatch(last):
            raise ValidationError({"Last-Event-ID": "Send the id of an event of this stream."})
        place = int(last or self.query.get("after", 0))
        limit = self.query.get("limit", 100)

        def read() -> bytes:
            nonlocal place
            with transaction.atomic():
                events = list(events_after(place)[:limit])
                if events or not self._is_recorded:
                    self._entry_values.people.clear()
                    self.log(people={event.user_id for event in events if event.user_id})
                    self.write_log_entry()
            place = (events and events[-1].number) or place
            return b"".join(
                responses.event(webhooks.document(row), row.type, row.number) for row in events
            )

        return responses.repeat_events(self, read, STREAM_SECONDS)


class WebhookFields(bodies.StrictSerializer):
    """The fields of a webhook."""

    url = bodies.StrictCharField(max_length=2000, help_text="Address, which begins with https://.")
    types = bodies.BoundedListField(
        child=serializers.ChoiceField(choices=models.EventType.choices),
        required=False,
        max_length=len(models.EventType),
        help_text="Types of events that are sent. Empty: all.",
    )
    includes_content = bodies.StrictBooleanField(
        required=False, help_text="Whether texts of messages and facts are sent too."
    )
    description = bodies.OptionalTextField(help_text="What the program does.")

    def validate_url(self, url: str) -> str:
        """Refuse addresses that no event is sent to."""
        try:
            webhooks.check_address(url)
        except AddressRefused as error:
            raise serializers.ValidationError(str(error)) from error
        return url


class WebhookChanges(WebhookFields):
    """Changes of a webhook."""

    url = bodies.StrictCharField(required=False, max_length=2000, help_text="Its address.")
    is_active = bodies.StrictBooleanField(required=False, help_text="Whether events are sent.")


class WebhookSerializer(serializers.ModelSerializer):
    """An address of a program that gets events."""

    types = serializers.ListField(
        child=serializers.ChoiceField(choices=models.EventType.choices),
        help_text="Types of events that are sent. Empty: all.",
    )

    class Meta:
        model = models.Subscription
        fields = [
            *("id", "url", "types", "includes_content", "is_active", "description"),
            *("previous_until", "created_at"),
        ]
        extra_kwargs = {"url": {"required": True, "allow_blank": False}}


class NewWebhookSerializer(WebhookSerializer):
    """A webhook with its secret."""

    secret = serializers.CharField(help_text="Verifies the signatures. It is shown once.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]


class WebhookViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """Webhooks. Bound keys have no access. Changes need the scopes `read` and `write`."""

    queryset = webhooks.webhooks()
    serializer_class = WebhookSerializer
    ordering = ("created_at", "id")
    subject = "webhook"

    @views.operation(
        Action.CREATE,
        permission=("outbox.add_subscription", *webhooks.READS),
        body=WebhookFields,
        returns={201: NewWebhookSerializer},
        errors=(409, 422),
        headers=[schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Create a webhook.

        The response has the secret, which no later one shows. Events from now on are sent, as
        Standard Webhooks describes. A tenant has at most 50 webhooks and recipients of
        notifications: one more is a 409 `limit-reached`.
        """
        self.require_read()
        webhook, secret = webhooks.create_webhook(**self.fields)
        self.log_created(webhook, is_new=True)
        return self._with_secret(webhook, secret, status=201)

    @views.operation(
        Action.EDIT,
        permission=("outbox.change_subscription", *webhooks.READS),
        body=WebhookChanges,
        errors=(422,),
    )
    def partial_update(self, request: Request, webhook_id: UUID) -> Response:
        """Change a webhook. Events that wait are sent to the new address."""
        self.require_read()
        return self.merge(self.locked(), self.fields)

    @views.operation(Action.DELETE)
    def destroy(self, request: Request, webhook_id: UUID) -> Response:
        """Delete a webhook, with its deliveries."""
        return self.delete_row(self.locked(), webhooks.delete_subscription)

    @decorators.action(detail=True, methods=["post"], url_path="secret")
    @views.operation(
        Action.EDIT,
        permission=("outbox.change_subscription", *webhooks.READS),
        id="rotate_webhook_secret",
        returns=NewWebhookSerializer,
    )
    def rotate_secret(self, request: Request, webhook_id: UUID) -> Response:
        """Replace the secret of a webhook.

        For a day events are signed by each of the two secrets.
        """
        self.require_read()
        webhook, secret = webhooks.rotate_secret(self.get_object().pk)
        self.log(webhook)
        return self._with_secret(webhook, secret)

    def _with_secret(
        self, webhook: models.Subscription, secret: str, status: int = 200
    ) -> Response:
        shown = {**WebhookSerializer(webhook).data, "secret": secret}
        location = self.reverse_action("detail", args=[webhook.pk])
        return Response(shown, status=status, headers={"Location": location})


class WebhookDeliverySerializer(serializers.ModelSerializer):
    """An event that is, or was, sent to a webhook."""

    webhook_id = serializers.UUIDField(
        source="subscription_id", read_only=True, help_text="The webhook."
    )
    type = serializers.CharField(source="event.type", help_text="The type of the event.")
    state = serializers.SerializerMethodField(help_text="waiting, delivered or failed.")
    attempts = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="Attempts so far, of a waiting one."
    )
    next_attempt_at = serializers.SerializerMethodField(help_text="When it is sent next.")
    error = serializers.SerializerMethodField(help_text="Why the last attempt failed.")

    class Meta:
        model = models.EventDelivery
        fields = [
            *("id", "webhook_id", "event_id", "type", "state", "status", "attempts"),
            *("next_attempt_at", "error", "created_at", "delivered_at"),
        ]

    def get_state(self, delivery: Any) -> str:
        """Return the state in a word."""
        if delivery.due_at is None:
            return "delivered"
        return "waiting" if delivery.failed_at is None else "failed"

    def get_next_attempt_at(self, delivery: Any) -> datetime | None:
        """Return the time of the next attempt."""
        return None if delivery.failed_at else delivery.due_at

    def get_error(self, delivery: Any) -> str | None:
        """Return the reason of the last failure."""
        return delivery.last_error or None


class WebhookDeliveryFilter(lists.FilterSet):
    """Filters of the list."""

    webhook_id = lists.Filter(
        serializers.UUIDField, "Only of this webhook.", lookup="subscription__exact"
    )
    event_id = lists.Filter(serializers.UUIDField, "Only this event.")
    state = lists.ChoiceFilter(
        "Only deliveries in this state.", ["waiting", "delivered", "failed"], method="of_state"
    )

    def of_state(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Filter by the state."""
        if value == "delivered":
            return rows.filter(delivered_at__isnull=False)
        jobs = models.NOTIFICATIONS.jobs().filter(
            key=OuterRef("pk"), failed_at__isnull=value == "waiting"
        )
        return rows.filter(Exists(jobs))


class WebhookDeliveryViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """Events that are, or were, sent to webhooks. Bound keys have no access."""

    queryset = (
        models.EventDelivery.objects.filter(subscription__target=models.Target.WEBHOOK)
        .select_related("event")
        .annotate(**job_columns(models.NOTIFICATIONS.name, OuterRef("pk")))
    )
    serializer_class = WebhookDeliverySerializer
    filterset_class = WebhookDeliveryFilter
    subject = "webhook delivery"
    subjects = "webhook deliveries"

    @decorators.action(detail=True, methods=["post"], url_path="retry")
    @views.operation(Action.RETRY, id="retry_webhook_delivery")
    def retry(self, request: Request, webhook_delivery_id: UUID) -> Response:
        """Send an event to a webhook again, also one that was delivered."""
        self.require_read()
        delivery = self.get_object()
        webhooks.send_again(delivery)
        self.log(delivery)
        return Response(self.document(self.get_queryset().get(pk=delivery.pk)))


router = SimpleRouter(use_regex_path=False)
router.register("webhook-deliveries", WebhookDeliveryViewSet, "webhook-delivery")
router.register("webhooks", WebhookViewSet, "webhook")
urlpatterns = [
    path("events/", EventViewSet.as_view({"get": "list_events"}), name="events"),
    *router.urls,
]
