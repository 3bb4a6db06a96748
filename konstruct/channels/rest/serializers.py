"""Requests and responses of the REST channel."""

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from konstruct.api.http import bodies
from konstruct.api.http.views import UrlField
from konstruct.orchestrator.replies import Status
from memory.conf import MAX_MESSAGE_METADATA_BYTES
from memory.conversations.transcript import metadata_argument

MAX_WAIT_SECONDS = 60
METADATA_HELP = (
    "A JSON object that lists and searches can filter by, with the rules of facts' metadata; at "
    f"most {MAX_MESSAGE_METADATA_BYTES:,} bytes."
)


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
    options = SamplingSerializer(required=False, help_text="Sampling parameters of the reply.")


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


class WaitingCallSerializer(serializers.Serializer):
    """A tool call that the user has to decide on."""

    id = serializers.UUIDField()
    name = serializers.CharField(help_text="The tool.")
    question = serializers.CharField(help_text="The question to the user.")
    expires_at = serializers.DateTimeField(help_text="Deadline; after it the call is not executed.")
    url = UrlField("tool-call-detail", help_text="The call, with its arguments.")
    decision_url = UrlField(
        "tool-call-decide-tool-call",
        help_text='Where to send the answer: POST `{"approve": true}` or false.',
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
        "tenant must answer or resolve `escalation`. program: the program that requested a chat "
        "completion must send the results of its tools.",
    )
    detail = serializers.CharField(help_text="The same as a sentence, with the next step.")
    tool_calls = WaitingCallSerializer(many=True)
    escalation = OpenEscalationSerializer(allow_null=True)


class MessageSerializer(serializers.Serializer):
    """A message, its status and its reply."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(
        choices=[(status.value, status.value) for status in Status],
        help_text="closed: it gets no separate reply, because another reply or a person has "
        "settled it; `error` has the reason. with_person: a person answers in this thread. "
        "awaiting_consent: a tool call of the agent waits for the user. with_program: the program "
        "that requested a completion must send results of its tools. `waits_for` has the details.",
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
