"""Import of history by the REST API."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http import bodies, schema, views
from konstruct.channels.rest.responses import respond_when_indexed
from konstruct.channels.rest.serializers import METADATA_HELP, WaitSerializer
from konstruct.orchestrator.history_import.lines import (
    REQUIRED,
    ImportStatus,
    LineResult,
    import_history,
)
from memory.arguments import ROLES
from memory.conversations.transcript import MAX_EXTERNAL_ID, DerivedIds
from memory.models import PendingEmbedding
from tenants.audit.models import Action
from tenants.context import required_tenant_id

MAX_LINES = 1000


MESSAGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "A message of a history",
    "required": list(REQUIRED),
    "additionalProperties": False,
    "properties": {
        "external_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_EXTERNAL_ID,
            "description": "Its id in the source system; unique for one agent and user. A message "
            "that was imported with this id before is not changed. Default: computed from the "
            "message; see the operation.",
        },
        "agent": {
            "type": "string",
            "description": "Name or id of the agent. Default: the request's `agent`.",
        },
        "user_id": {
            "type": "string",
            "minLength": 1,
            "description": "The user of the conversation. Default: the request's `user_id`.",
        },
        "thread_id": {
            "type": "string",
            "minLength": 1,
            "description": "The conversation. Default: the request's `thread_id`, else one thread "
            "per user, named as the user.",
        },
        "role": {"type": "string", "enum": list(ROLES)},
        "content": {
            "type": "string",
            "minLength": 1,
            "maxLength": settings.MAX_MESSAGE_CHARACTERS,
            "description": "The text; not blank.",
        },
        "created_at": {
            "type": "string",
            "format": "date-time",
            "description": "Its time: ISO 8601 with a time zone. Default: now, in the "
            "order of the request.",
        },
        "name": {"type": "string", "description": "The speaker's display name, if known."},
        "metadata": {
            "type": "object",
            "additionalProperties": True,
            "description": METADATA_HELP,
        },
    },
}


@extend_schema_field(
    {
        "type": "array",
        "items": MESSAGE_SCHEMA,
        "minItems": 1,
        "maxItems": MAX_LINES,
        "description": f"Each has {' and '.join(REQUIRED)}, and optional further fields. "
        "Anything else is reported as invalid.",
    }
)
class LinesField(bodies.BoundedListField):
    """Messages that are not validated together: each has its own result."""

    child = serializers.JSONField(allow_null=True)


class ImportSerializer(bodies.StrictSerializer):
    """A part of a history. Each message is validated separately: see `results`."""

    agent = bodies.ChannelIdField(
        required=False,
        help_text="Name or id of the agent of messages that name none. Default: the one that the "
        "key is bound to, or the only active one.",
    )
    user_id = bodies.ChannelIdField(
        required=False,
        help_text="The user of messages that name none. Default: the one that the key is bound to.",
    )
    thread_id = bodies.ChannelIdField(
        required=False,
        help_text="The conversation of messages that name none. Default: one thread per user, "
        "named as the user.",
    )
    messages = LinesField(min_length=1, max_length=MAX_LINES)


class LineErrorSerializer(serializers.Serializer):
    """An error of one field of a message."""

    field = serializers.CharField(help_text="Empty: the message as a whole.")
    detail = serializers.CharField()


class LineResultSerializer(serializers.Serializer):
    """The result for one message. An invalid one has no ids and no time."""

    index = serializers.IntegerField(help_text="Its index in the request, from 0.")
    status = serializers.ChoiceField(
        choices=[(outcome.value, outcome.value) for outcome in ImportStatus],
        help_text="created; exists: a message with this external_id was imported before and is "
        "unchanged; invalid: see error.",
    )
    external_id = serializers.CharField(allow_null=True, help_text="As it was sent, or computed.")
    message_id = serializers.UUIDField(source="message.pk", allow_null=True)
    agent_id = serializers.UUIDField(source="message.agent_id", allow_null=True)
    user_id = serializers.CharField(source="message.user_id", allow_null=True)
    thread_id = serializers.CharField(source="message.thread_id", allow_null=True)
    created_at = serializers.DateTimeField(source="message.created_at", allow_null=True)
    error = serializers.CharField(help_text="Why it is invalid; empty if it is valid.")
    errors = LineErrorSerializer(  # type: ignore[assignment]  # a field, not the property
        many=True, help_text="The errors by field."
    )


class ImportResultSerializer(serializers.Serializer):
    """The results for all messages, in the order of the request."""

    created = serializers.IntegerField()
    exists = serializers.IntegerField()
    invalid = serializers.IntegerField()
    indexed = serializers.BooleanField(help_text="Whether recall and search can find all of them.")
    results = LineResultSerializer(many=True)


class ImportViewSet(views.ApiViewSet):
    """The import of messages. The viewset of messages inherits it."""

    subject = "message"

    @action(
        detail=False,
        methods=["post"],
        url_path="import",
        content_negotiation_class=DefaultContentNegotiation,
    )
    @views.operation(
        Action.IMPORT,
        "messages",
        permission="memory.add_message",
        query=WaitSerializer,
        body=ImportSerializer,
        returns=ImportResultSerializer,
        errors=(402, 409, 422),
        headers=[schema.IDEMPOTENCY_KEY],
    )
    def import_messages(self, request: Request) -> Response:
        """Import history.

        Up to 1000 messages in one request. A message needs role and content; the response has the
        id, thread and time of each. An invalid message does not prevent the import of the others.
        Imported messages get no reply. They are embedded in the background, and `GET
        /api/v1/usage/` returns the number of pending ones.

        Messages are identified by their `external_id`, for each agent and user. A message without
        one gets one, made of its time and text. If it has no time either, the id is made of its
        text, of the texts before it in the request, and of the last message of the thread. So the
        same request, sent again, stores nothing twice, nor does a request with more messages at its
        end, if nothing else was sent in the thread meanwhile. An `Idempotency-Key` takes the place
        of the thread: with a new key the same texts are new messages, with the same key they are
        the same.
        """
        fields, caller, idempotency = self.fields, self.caller, self.idempotency
        lines = [line for line in fields["messages"] if isinstance(line, Mapping)]
        # Refuse the request if a message is of another user or agent than the key's.
        if caller.user_id is not None:
            for user_id in _texts(lines, "user_id"):
                caller.user(user_id)
        if caller.agent_id is not None:
            for name in _texts(lines, "agent"):
                caller.agent(name)
        agent = None
        if "agent" in fields:
            agent = str(caller.agent(fields["agent"]).id)
        elif not all("agent" in line for line in lines):
            only = caller.only_agent()
            agent = None if only is None else str(only.id)
        defaults = {
            "agent": agent,
            "user_id": caller.user_id_in(fields),
            "thread_id": fields.get("thread_id"),
        }
        results: list[LineResult] = []

        def write() -> UUID:
            results[:] = import_history(
                fields["messages"],
                tenant_id=required_tenant_id(),
                defaults=defaults,
                ids=DerivedIds(idempotency.key or ""),
            )
            return uuid4()

        idempotency.once(write)
        if not results:  # a repeated request: the external ids identify the messages
            write()
        message_ids = {result.message.pk for result in results if result.message}
        pending = PendingEmbedding.objects.filter(pk__in=message_ids)
        counts = {
            outcome.value: sum(result.status is outcome for result in results)
            for outcome in ImportStatus
        }
        self.log(counts=counts)
        document = ImportResultSerializer({**counts, "indexed": False, "results": results}).data

        def respond() -> Response:
            return Response({**document, "indexed": not pending.all().exists()})

        wait = float(self.query.get("wait", 0))
        if not (wait and message_ids):
            return respond()
        return respond_when_indexed(self, message_ids, wait, respond)


def _texts(lines: Iterable[Mapping[str, Any]], name: str) -> set[str]:
    return {line[name] for line in lines if isinstance(line.get(name), str)}
