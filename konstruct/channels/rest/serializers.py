"""Requests and responses of the REST channel."""

from typing import Any
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from konstruct.api.http import bodies
from konstruct.api.http.views import UrlField
from konstruct.llm.completions import make_storable_value
from konstruct.orchestrator import exceptions, replies, tool_calls
from konstruct.orchestrator.history_import.lines import REQUIRED, ImportStatus
from memory.arguments import ROLES
from memory.conf import MAX_MESSAGE_METADATA_BYTES
from memory.conversations.transcript import MAX_EXTERNAL_ID, metadata_argument

MAX_WAIT_SECONDS = 60
METADATA_HELP = (
    "A JSON object that lists and searches can filter by, with the rules of facts' metadata; at "
    f"most {MAX_MESSAGE_METADATA_BYTES:,} bytes."
)


FORMATS = ["text", "json_object", "json_schema"]


@extend_schema_field(
    {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "enum": FORMATS},
            "json_schema": {"type": "object", "additionalProperties": True},
        },
        "additionalProperties": True,
    }
)
class ResponseFormatField(serializers.JSONField):
    """The format of an answer, as in OpenAI's API."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the format. Refuse an unknown type."""
        if tool_calls.type_of(data) not in FORMATS:
            detail = f"This is an object whose type is one of {', '.join(FORMATS)}."
            raise serializers.ValidationError(detail)
        return make_storable_value(super().to_internal_value(data))


class SamplingSerializer(bodies.StrictSerializer):
    """Options of the reply, by the names of OpenAI's API. They are sent to the language model."""

    temperature = bodies.StrictFloatField(required=False, min_value=0, max_value=2)
    top_p = bodies.StrictFloatField(required=False, min_value=0, max_value=1)
    presence_penalty = bodies.StrictFloatField(required=False, min_value=-2, max_value=2)
    frequency_penalty = bodies.StrictFloatField(required=False, min_value=-2, max_value=2)
    seed = bodies.StrictIntegerField(required=False, min_value=-(2**63), max_value=2**63 - 1)
    max_completion_tokens = bodies.StrictIntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="Maximum number of tokens. A smaller limit of the agent replaces it.",
    )
    stop = bodies.BoundedListField(
        child=bodies.StrictCharField(max_length=1_000),
        required=False,
        min_length=1,
        max_length=4,
        help_text="Texts at which the reply ends.",
    )
    response_format = ResponseFormatField(
        required=False, help_text="The format of the reply. JSON needs a language model."
    )


@extend_schema_field(
    {
        "type": "object",
        "required": ["type", "function"],
        "properties": {
            "type": {"type": "string", "enum": ["function"]},
            "function": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
                    "description": {"type": "string"},
                    "parameters": {"type": "object", "additionalProperties": True},
                },
                "additionalProperties": True,
            },
        },
        "additionalProperties": True,
    }
)
class ToolField(serializers.JSONField):
    """A tool of the program, as in OpenAI's API."""


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": list(tool_calls.CHOICES)},
            {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string"}},
                "additionalProperties": True,
            },
        ]
    }
)
class ToolChoiceField(serializers.JSONField):
    """Whether the language model calls a tool, as in OpenAI's API."""


class SendSerializer(bodies.StrictSerializer):
    """A message to an agent."""

    agent = bodies.ChannelIdField(help_text="Name or id of an active agent of this tenant.")
    user_id = bodies.ChannelIdField(help_text="Your id of the user. Each has separate memories.")
    thread_id = bodies.ChannelIdField(
        required=False,
        help_text="Your id of the conversation. Memory spans all threads of a user. "
        "Default: one thread per user, named as the user.",
    )
    name = bodies.ChannelIdField(
        required=False,
        max_length=120,
        help_text="Display name of the speaker, as in OpenAI's API.",
    )
    content = bodies.StrictCharField(
        max_length=settings.MAX_MESSAGE_CHARACTERS,
        validators=[bodies.NOT_BLANK],
        help_text="The user's text, verbatim.",
    )
    metadata = bodies.CheckedObjectField(
        check=metadata_argument, required=False, help_text=METADATA_HELP
    )
    instructions = bodies.StrictCharField(
        required=False,
        validators=[bodies.NOT_BLANK],
        help_text="Instructions of your program for this reply, after the agent's own. The agent "
        "must accept them, and the key must not be bound.",
    )
    options = SamplingSerializer(
        required=False, help_text="Sampling parameters and format of the reply."
    )
    tools = bodies.BoundedListField(
        child=ToolField(),
        required=False,
        max_length=tool_calls.MAX_TOOLS,
        help_text="Tools of your program, which the language model may call. Then the message has "
        "the status `with_program` until you send the results.",
    )
    tool_choice = ToolChoiceField(
        required=False,
        help_text="Until the first results: `none`, `auto` (the default), `required`, or an object "
        "that names a tool.",
    )
    parallel_tool_calls = bodies.StrictBooleanField(
        required=False, help_text="Whether an answer may have several calls. Default: the model's."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Check the tools, and add them to the options."""
        try:
            tools = tool_calls.checked_options(attrs)
        except exceptions.ProgramToolsInvalid as error:
            path = error.parameter.replace("[", ".").replace("]", "")
            raise serializers.ValidationError({path: str(error)}) from error
        return {**attrs, "options": {**attrs.get("options", {}), **tools}}


class ToolResultSerializer(bodies.StrictSerializer):
    """The result of a call of your program's tool."""

    tool_call_id = serializers.UUIDField(help_text="Id of the call.")
    content = bodies.StrictCharField(
        allow_blank=True, help_text="The result. Long ones are cut in the prompt."
    )


class ToolResultsSerializer(bodies.StrictSerializer):
    """The results of all calls for which a message waits."""

    results = bodies.BoundedListField(child=ToolResultSerializer(), min_length=1, max_length=1_000)

    def validate_results(self, results: list[dict[str, Any]]) -> dict[UUID, str]:
        """Return the results by the ids of their calls. Refuse a duplicate id."""
        by_id = {result["tool_call_id"]: result["content"] for result in results}
        if len(by_id) < len(results):
            raise serializers.ValidationError("Give each call once.")
        return by_id


@extend_schema_field({"type": "number", "minimum": 0, "maximum": MAX_WAIT_SECONDS})
class SecondsField(serializers.DecimalField):
    """A number of seconds. A decimal and not a float: "nan" is within all limits of a float."""


class WaitSerializer(bodies.StrictSerializer):
    """Query parameters of an endpoint that can wait."""

    wait = SecondsField(
        required=False,
        max_digits=None,
        decimal_places=None,
        min_value=0,
        max_value=MAX_WAIT_SECONDS,
        help_text="Seconds to wait for the reply, or until imported messages are indexed, 0 to "
        f"{MAX_WAIT_SECONDS}.",
    )


class WaitForSerializer(WaitSerializer):
    """Query parameters of an endpoint that can wait for the reply or the index."""

    wait_for = serializers.ChoiceField(
        choices=["reply", "indexed"],
        required=False,
        help_text="What `wait` waits for: the reply, or that recall and search can find the "
        "message. Default: reply.",
    )


class ReplySerializer(serializers.Serializer):
    """A reply."""

    id = serializers.UUIDField()
    content = serializers.CharField()
    created_at = serializers.DateTimeField()
    finish_reason = serializers.CharField(
        help_text="Why the language model ended the reply: stop, length (cut at the limit of "
        "tokens) or content_filter. Empty: no language model wrote it."
    )


class FailureSerializer(serializers.Serializer):
    """Why a message has no reply yet."""

    code = serializers.CharField(
        help_text="The code of the last error, for programs: llm_unavailable, llm_timeout, "
        "llm_refused, llm_reply_invalid, time_limit, worker_lost, internal_error; closed for a "
        "message with the status `closed` …"
    )
    detail = serializers.CharField(help_text="The same as a sentence, for people.")
    attempts = serializers.IntegerField(help_text="The number of attempts, with the current one.")
    next_attempt_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the next attempt; null if there is none."
    )


class DecisionUrlField(UrlField):
    """The address for the user's decision on a tool call."""

    def get_attribute(self, instance: Any) -> Any:
        """Return the address; None for a call that waits for a program."""
        return None if tool_calls.awaits_program(instance) else super().get_attribute(instance)


class WaitingCallSerializer(serializers.Serializer):
    """A tool call that the user has to decide on, or whose result a program has to send."""

    id = serializers.UUIDField()
    name = serializers.CharField(help_text="The tool.")
    arguments = serializers.JSONField(
        help_text="The arguments of the call: an object, or the text that the model gave instead."
    )
    content = serializers.CharField(help_text="The agent's text before it, with the first call.")
    question = serializers.CharField(help_text="The question to the user; empty for a program.")
    expires_at = serializers.DateTimeField(help_text="Deadline; after it the call is not executed.")
    url = UrlField("tool-call-detail", help_text="The call.")
    decision_url = DecisionUrlField(
        "tool-call-decide-tool-call",
        allow_null=True,
        help_text='Where to send the user\'s answer: POST `{"approve": true}` or false. Null: '
        "your program sends the result to `results_url`.",
    )


class OpenEscalationSerializer(serializers.Serializer):
    """An open escalation: a person answers in the conversation."""

    id = serializers.UUIDField()
    reason = serializers.CharField(help_text="The reason.")
    opened_at = serializers.DateTimeField(help_text="When it was opened.")
    url = UrlField("escalation-detail", help_text="The escalation, to be answered and resolved.")


class WaitsForSerializer(serializers.Serializer):
    """The condition that a held message waits for."""

    who = serializers.ChoiceField(
        choices=[("user", "user"), ("person", "person"), ("program", "program")],
        help_text="user: the user must decide on each of `tool_calls`. person: a member of the "
        "tenant must answer or resolve `escalation`. program: the program that sent the message "
        "must send the results of `tool_calls`.",
    )
    detail = serializers.CharField(help_text="The same as a sentence, with the next step.")
    tool_calls = WaitingCallSerializer(many=True)
    results_url = serializers.URLField(
        allow_null=True, help_text="Where a program sends the results of `tool_calls`, or null."
    )
    escalation = OpenEscalationSerializer(allow_null=True)


class MessageSerializer(serializers.Serializer):
    """A message, its status and its reply."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(
        choices=[(status.value, status.value) for status in replies.Status],
        help_text="closed: it gets no separate reply, because another reply or a person has "
        "settled it; `error` has the reason. with_person: a person answers in this thread. "
        "awaiting_consent: a tool call of the agent waits for the user. with_program: the program "
        "that sent it must send results of its tools. `waits_for` has the details.",
    )
    url = serializers.URLField(help_text="The URL to poll.")
    agent = serializers.CharField(
        help_text="The name of the agent that it was sent to. Another one may answer, see "
        "`answered_by`."
    )
    agent_id = serializers.UUIDField()
    user_id = serializers.CharField()
    thread_id = serializers.CharField()
    channel = serializers.CharField(help_text="The channel: rest, slack …")
    name = serializers.CharField(help_text="The speaker's display name, or empty.")
    content = serializers.CharField()
    metadata = bodies.ObjectField(help_text="As it was sent, or empty.")
    created_at = serializers.DateTimeField(help_text="When it was accepted.")
    indexed = serializers.BooleanField(help_text="Whether recall and search can find it.")
    reply = ReplySerializer(allow_null=True, help_text="Null until the status is `answered`.")
    waits_for = WaitsForSerializer(
        allow_null=True,
        help_text="The person or program that must act while the message is held; else null. The "
        "message is answered afterwards: poll `url`.",
    )
    answered_by = serializers.CharField(help_text="Name of the agent or person that answered.")
    answered_by_id = serializers.UUIDField(
        allow_null=True,
        help_text="The agent that answered; not `agent_id` if the thread was handed over. Null: a "
        "person, or a reply that is older than this field.",
    )
    error = FailureSerializer(
        allow_null=True,
        help_text="The last error, while the reply is retried and when it has failed, or why the "
        "message was closed.",
    )


# --- Import of history ----------------------------------------------------------------------------

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
