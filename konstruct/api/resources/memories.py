"""Search in what an agent remembers of a user: the recall that the pipeline uses."""

from dataclasses import replace
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.http.fields import (
    NOT_BLANK,
    ChannelIdField,
    MomentField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from konstruct.api.http.schema import problems
from konstruct.api.http.views import ApiView
from konstruct.api.models import KeyScope
from konstruct.orchestrator.recall_policy import recall_policy
from memory.recall import RecallResult, recall
from memory.recall.policy import MAX_TOP_K, MODES, RecallPolicy
from tenants.context import required_tenant_id

LONGEST_QUERY = 8192

EXAMPLE = OpenApiExample(
    "a question",
    request_only=True,
    value={"agent": "ada", "user_id": "U024BE7LH", "query": "When does my sister visit?"},
)


class SearchSerializer(StrictSerializer):
    """A question to an agent's memory of one user."""

    agent = ChannelIdField(help_text="Name or id of an agent of this tenant.")
    user_id = ChannelIdField(help_text="Whose memories; those of others are never looked at.")
    query = StrictCharField(
        max_length=LONGEST_QUERY, validators=[NOT_BLANK], help_text="The question, in any words."
    )
    top_k = StrictIntegerField(
        required=False,
        min_value=1,
        max_value=MAX_TOP_K,
        help_text="At most this many results. Default: the agent's policy.",
    )
    gate = StrictBooleanField(
        required=False,
        default=True,
        help_text="Leave out what is probably beside the question, all of it if need be.",
    )
    mode = serializers.ChoiceField(
        choices=MODES,
        required=False,
        help_text="hybrid uses every sign, vector the cosine alone. Default: the agent's policy.",
    )
    explain = StrictBooleanField(
        required=False, default=False, help_text="Add what each channel said of each result."
    )
    at = MomentField(
        required=False, help_text="Only what had been said by then (ISO 8601 with a time zone)."
    )


class MemorySerializer(serializers.Serializer):
    """One message that was remembered."""

    message_id = serializers.UUIDField()
    external_id = serializers.CharField(allow_null=True, help_text="Its id, if it was imported.")
    thread_id = serializers.CharField()
    role = serializers.CharField(help_text="user or assistant.")
    name = serializers.CharField(help_text="The speaker's display name, or empty.")
    content = serializers.CharField()
    created_at = serializers.DateTimeField(help_text="When it was said.")
    score = serializers.FloatField(help_text="Of the ranking; comparable within this answer only.")
    probability = serializers.FloatField(help_text="That it is relevant, as the gate sees it.")
    channels = serializers.DictField(
        child=serializers.FloatField(),
        required=False,
        help_text="What each channel said, before its weight; with explain.",
    )


class SearchResultSerializer(serializers.Serializer):
    """What was found, best first, one result per message."""

    results = MemorySerializer(many=True)
    abstained = serializers.BooleanField(help_text="Nothing was worth saying.")


_NAMES = list(MemorySerializer().fields)  # channels come last


class MemorySearchView(ApiView):
    """Recall, as the pipeline does it."""

    permissions = {"POST": ("audit.recall_memories",)}
    scopes = {"POST": KeyScope.READ}
    keeps_to_binding = True

    @extend_schema(
        operation_id="search_memories",
        summary="Search an agent's memory of a user",
        tags=["memories"],
        request=SearchSerializer,
        examples=[EXAMPLE],
        responses={
            200: SearchResultSerializer,
            **problems(422),
        },
    )
    def post(self, request: Request) -> Response:
        """Recall, and show what was found."""
        body = SearchSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.validated_data
        agent = self.caller.agent(fields["agent"])
        user_id = self.caller.user(fields["user_id"])
        self.about_to_read()
        result = recall(
            required_tenant_id(),
            agent.id,
            user_id,
            fields["query"],
            policy=_policy(recall_policy(agent), fields),
            at=fields.get("at"),
        )
        return Response(_document(result, explain=fields["explain"]))


def _policy(standing: RecallPolicy, fields: dict[str, Any]) -> RecallPolicy:
    """Return the agent's policy with what the request says otherwise."""
    asked = {name: fields[name] for name in ("top_k", "gate", "mode") if name in fields}
    return replace(standing, neighbours=0, **asked)


def _document(result: RecallResult, *, explain: bool) -> dict[str, Any]:
    """What SearchResultSerializer describes, as the renderer writes it.

    The serializer itself would take a sixth of the time of a search.
    """
    names = _NAMES if explain else _NAMES[:-1]
    hits = [{name: getattr(hit, name) for name in names} for hit in result.hits]
    return {"results": hits, "abstained": result.abstained}
