"""Usage by REST: counts of rows, activity by day, calls of language models; and API keys."""

from dataclasses import asdict
from datetime import date, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Model, OuterRef, Q, QuerySet
from django.utils import timezone
from rest_framework import decorators, mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth.keys import Program, derive_key, issue_key, revoke_key
from konstruct.api.http import bodies, schema, views
from konstruct.api.models import DEFAULT_SCOPES, ApiKey, KeyScope
from konstruct.orchestrator import models, usage
from konstruct.orchestrator.activity import MAX_DAYS, activity
from memory.models import ConversationEmbedding, Message, PendingEmbedding, Scope
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import fetch_value, required_tenant_id
from tenants.limits.quotas import UNLIMITED, Quota, limits_of, next_month
from tenants.models import has_failed

M = TypeVar("M", bound=Model)

# The days of the usage of language models without `since`, and the rows of an answer.
DAYS: Final = 30
MAX_ROWS: Final = 1_000
# Counting this far takes a few hundredths of a second.
MAX_COUNT = 100_000
# Counts without a limit, for which Postgres has an estimate for the whole tenant.
ESTIMATED: dict[str, type[Model]] = {
    "users": Scope,
    "messages": Message,
    "embeddings": ConversationEmbedding,
}


class QuotaSerializer(serializers.Serializer):
    """A quota of this tenant, and its usage."""

    quota = serializers.ChoiceField([quota.value for quota in Quota])
    used = serializers.FloatField(allow_null=True, help_text="null: not measured, or not yet.")
    soft_limit = serializers.FloatField(allow_null=True, help_text="Warns the team. null: never.")
    hard_limit = serializers.FloatField(allow_null=True, help_text="More is refused. null: none.")
    resets_at = serializers.DateTimeField(
        allow_null=True, help_text="When the usage is reset. null: never, or each second."
    )


class UsageSerializer(serializers.Serializer):
    """Counts of this tenant."""

    agents = serializers.IntegerField()
    users = serializers.IntegerField(help_text="Pairs of an agent and a user with memories.")
    messages = serializers.IntegerField(help_text="Turns of the transcript.")
    embeddings = serializers.IntegerField(help_text="Vectors; a message has one per piece.")
    pending_embeddings = serializers.IntegerField(help_text="Messages not yet searchable.")
    failed_embeddings = serializers.IntegerField(help_text="Of these, those that are retried.")
    pending_replies = serializers.IntegerField(help_text="Messages not yet answered.")
    failed_replies = serializers.IntegerField(help_text="Messages whose reply has failed.")
    quotas = QuotaSerializer(many=True, required=False, help_text="Not for bound keys.")
    not_exact = bodies.TextsField(
        required=False,
        help_text=f"The counts above {MAX_COUNT:,}, if there are any: they are estimates, or "
        "for a bound key the least that there are.",
    )


class DaysQuery(bodies.StrictSerializer):
    """Query parameters of the activity by day."""

    first = serializers.DateField(help_text="First day (UTC).")
    last = serializers.DateField(help_text=f"Last day, up to {MAX_DAYS - 1} days after the first.")
    agent = bodies.ChannelIdField(required=False, help_text="Only of this agent (name or id).")
    channel = bodies.TextField(required=False, max_length=100, help_text="Only of this channel.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a range that is empty, too long or outside of a calendar's usual years."""
        first, last = attrs["first"], attrs["last"]
        if not date(2000, 1, 1) <= first <= last <= date(2999, 12, 31):
            raise serializers.ValidationError({"last": "Give a day from `first` on."})
        if (last - first).days >= MAX_DAYS:
            raise serializers.ValidationError({"last": f"Give at most {MAX_DAYS} days."})
        return attrs


class UsageOfDaySerializer(serializers.Serializer):
    """The activity of one day."""

    day = serializers.DateField(help_text="The day (UTC).")
    messages = serializers.IntegerField(help_text="Messages of users.")
    replies = serializers.IntegerField(help_text="Replies of agents with a recall event.")
    from_facts = serializers.IntegerField(help_text="Replies with facts in their prompt.")
    from_memories = serializers.IntegerField(help_text="Replies with memories and no facts.")
    from_turns = serializers.IntegerField(help_text="Replies with recent turns alone.")
    from_nothing = serializers.IntegerField(help_text="Replies without any of them.")
    escalations = serializers.IntegerField(help_text="Escalations to people that were opened.")
    p50_seconds = serializers.FloatField(
        allow_null=True, help_text="Median of the reply times, within a fifth."
    )
    p95_seconds = serializers.FloatField(
        allow_null=True, help_text="95th percentile of the reply times, within a fifth."
    )
    prompt_tokens = serializers.IntegerField(help_text="Tokens sent for replies, as reported.")
    completion_tokens = serializers.IntegerField(help_text="Tokens received for replies.")
    extraction_tokens = serializers.IntegerField(help_text="Tokens of the extraction of facts.")
    cost = serializers.DecimalField(
        max_digits=14,
        decimal_places=6,
        help_text="Cost of calls of language models, by the prices at that time.",
    )


class UsageByDaySerializer(serializers.Serializer):
    """The activity of some days."""

    days = UsageOfDaySerializer(many=True, help_text="Oldest first.")
    is_complete = serializers.BooleanField(help_text="false: days are still being counted.")


class ModelUsageQuery(bodies.StrictSerializer):
    """Query parameters of the usage of language models."""

    agent = bodies.ChannelIdField(required=False, help_text="Only of this agent (name or id).")
    since = bodies.AwareDateTimeField(
        required=False,
        help_text=f"Only calls from this moment on (with a time zone). Default: {DAYS} days ago.",
    )
    until = bodies.AwareDateTimeField(required=False, help_text="Only calls before this moment.")


class ModelUsageRowSerializer(serializers.Serializer):
    """The calls of one day, agent, purpose and model."""

    day = serializers.DateField(help_text="The day (UTC).")
    agent = views.AgentNameField(allow_null=True, help_text="The agent's name. null: no agent.")
    agent_id = serializers.UUIDField(allow_null=True)
    purpose = serializers.CharField(help_text="Purpose of the calls, such as extraction.")
    language_model = serializers.CharField(help_text="The tenant's model. Empty: the deployment's.")
    model = serializers.CharField(help_text="Name of the model for its server.")
    calls = serializers.IntegerField(help_text="All calls.")
    failed = serializers.IntegerField(help_text="Calls that failed.")
    unknown = serializers.IntegerField(help_text="Calls without an outcome: their process ended.")
    prompt_tokens = serializers.IntegerField(help_text="Tokens sent.")
    completion_tokens = serializers.IntegerField(help_text="Tokens received.")
    cost = serializers.DecimalField(
        max_digits=None, decimal_places=6, help_text="By the prices at the time of the calls."
    )


class ModelUsageSerializer(serializers.Serializer):
    """Usage of language models, newest day first."""

    results = ModelUsageRowSerializer(many=True)
    is_complete = serializers.BooleanField(
        help_text=f"Whether these are all rows. False: there are more than {MAX_ROWS:,}; ask for a"
        " shorter time."
    )


class UsageViewSet(views.ApiViewSet):
    """The numbers of rows of the tenant, or of those that a bound key sees."""

    subject = "usage"
    allows_bound_keys = True

    @views.operation(
        Action.VIEW,
        permission="memory.view_message",
        returns=UsageSerializer,
    )
    def retrieve(self, request: Request) -> Response:
        """Count stored and pending rows."""
        of_caller = self.caller.rows
        of_message = {"agent": "message__agent_id", "user": "message__user_id"}
        pending_embeddings = of_caller(PendingEmbedding.objects.all(), **of_message)
        pending_replies = of_caller(models.PendingReply.objects.all(), **of_message)
        rows_by_name: dict[str, QuerySet[Any]] = {
            "agents": self.caller.agents(),
            "users": of_caller(Scope.objects.all()),
            "messages": of_caller(Message.objects.all()),
            "embeddings": of_caller(ConversationEmbedding.objects.all()),
            "pending_embeddings": pending_embeddings,
            "failed_embeddings": pending_embeddings.filter(
                has_failed("embedding", OuterRef("message_id"))
            ),
            "pending_replies": pending_replies.filter(failed_at__isnull=True),
            "failed_replies": pending_replies.filter(failed_at__isnull=False),
        }
        counts: dict[str, Any] = {  # up to MAX_COUNT + 1, which means any larger number
            name: rows.order_by().values("pk")[: MAX_COUNT + 1].count()
            for name, rows in rows_by_name.items()
        }
        inexact = [name for name, count in counts.items() if count > MAX_COUNT]
        for name in inexact:
            counts[name] = MAX_COUNT
        if not self.caller.is_bound:
            for name in {*inexact} & ESTIMATED.keys():  # by Postgres' statistics
                statement = "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass"
                estimate = fetch_value(statement, [ESTIMATED[name]._meta.db_table])
                counts[name] = max(int(estimate), MAX_COUNT)
        optional_fields: dict[str, Any] = {"not_exact": inexact} if inexact else {}
        if not self.caller.is_bound:
            optional_fields["quotas"] = _quotas()
        return Response(UsageSerializer({**counts, **optional_fields}).data)


class UsageByDayViewSet(views.ApiViewSet):
    """Activity and language models by day. Bound keys have no access."""

    subject = "usage"

    @decorators.action(detail=False, url_path="days")
    @views.operation(
        Action.VIEW, permission="memory.view_message", query=DaysQuery, returns=UsageByDaySerializer
    )
    def get_usage_by_day(self, request: Request) -> Response:
        """Get messages, replies by source, reply times and tokens by day.

        A day that has ended is counted once: later imports and erasures do not change its numbers
        until it is counted again in the admin.
        """
        query = self.query
        agent_id = self.caller.agent(query["agent"]).id if "agent" in query else None
        period = activity(
            first=query["first"],
            last=query["last"],
            agent_id=agent_id,
            channel=query.get("channel", ""),
        )
        days = [
            {
                **asdict(numbers),
                "day": day,
                "p50_seconds": numbers.percentile(0.5),
                "p95_seconds": numbers.percentile(0.95),
            }
            for day, numbers in period.days.items()
        ]
        document = UsageByDaySerializer({"days": days, "is_complete": period.is_complete})
        return Response(document.data)

    @decorators.action(detail=False, url_path="models")
    @views.operation(
        Action.VIEW,
        "model usage",
        permission="orchestrator.view_modelcall",
        query=ModelUsageQuery,
        returns=ModelUsageSerializer,
    )
    def get_model_usage(self, request: Request) -> Response:
        """Sum calls, tokens and money of language models by day, agent, purpose and model."""
        agent = self.query.get("agent")
        rows = usage.model_usage(
            since=self.query.get("since") or timezone.now() - timedelta(days=DAYS),
            until=self.query.get("until"),
            agent_id=None if agent is None else self.caller.agent(agent).id,
            limit=MAX_ROWS + 1,
        )
        documents = self.documents(rows[:MAX_ROWS], ModelUsageRowSerializer)
        return Response({"results": documents, "is_complete": len(rows) <= MAX_ROWS})


def _quotas() -> list[dict[str, Any]]:
    tenant = usage.tenant_row()
    limits, used = limits_of(tenant.quotas), usage.usage_of(tenant, Quota)
    next_reset = next_month(timezone.now())
    return [
        {
            "quota": quota.value,
            "used": used[quota],
            "soft_limit": limits.get(quota, UNLIMITED).soft,
            "hard_limit": limits.get(quota, UNLIMITED).hard,
            "resets_at": next_reset if quota.is_monthly else None,
        }
        for quota in Quota
    ]


class ApiKeyFields(bodies.StrictSerializer):
    """A new API key."""

    name = bodies.TextField(max_length=120, help_text="Name of the program that uses it.")
    scopes = bodies.BoundedListField(
        child=serializers.ChoiceField(choices=KeyScope.choices),
        default=list(DEFAULT_SCOPES),
        min_length=1,
        max_length=len(KeyScope),
        help_text="Its scopes, of those of your key. Default: read and write.",
    )
    agent = bodies.ChannelIdField(
        required=False,
        help_text="Name or id of the only agent that it can use. Default: your key's, or all.",
    )
    user_id = bodies.ChannelIdField(
        required=False,
        help_text="The only user that it can write for and read. Default: your key's, or all.",
    )
    expires_at = bodies.AwareDateTimeField(
        required=False,
        allow_null=True,
        help_text="It is refused from then on; null: never. Default: the time of your key.",
    )


class ApiKeySerializer(bodies.RowSerializer):
    """An API key, without its secret."""

    url = views.UrlField("api-key-detail")
    agent = views.AgentNameField(allow_null=True, help_text="The only agent that it can use.")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=KeyScope.choices), help_text="Its scopes."
    )

    class Meta:
        model = ApiKey
        fields = [
            *("id", "url", "name", "prefix", "scopes", "agent", "agent_id", "user_id"),
            *("parent_id", "created_at", "last_used_at", "expires_at", "revoked_at"),
        ]


class NewApiKeySerializer(ApiKeySerializer):
    """An API key with its secret."""

    key = serializers.CharField(help_text="The key, for `Authorization: Bearer`. Shown once.")

    class Meta(ApiKeySerializer.Meta):
        fields = [*ApiKeySerializer.Meta.fields, "key"]


class ApiKeyViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, views.ApiViewSet):
    """API keys. A program sees its own key and those that it made."""

    queryset = ApiKey.objects.all()
    serializer_class = ApiKeySerializer
    subject = "api key"
    lookup_url_kwarg = "key_id"
    allows_bound_keys = True

    def get_queryset(self) -> Any:
        """Return the keys that the caller may see."""
        keys = super().get_queryset()
        own = self._own_key()
        return keys if own is None else keys.filter(Q(pk=own.pk) | Q(parent_id=own.pk))

    @views.operation(Action.LIST, scope=KeyScope.KEYS)
    def list(self, request: Request) -> Response:
        """List API keys, newest first.

        A program gets its own key and those that it made, also revoked ones.
        """
        return super().list(request)

    @views.operation(Action.VIEW, scope=KeyScope.KEYS)
    def retrieve(self, request: Request, key_id: UUID) -> Response:
        """Get an API key."""
        return super().retrieve(request)

    @views.operation(
        Action.CREATE,
        scope=KeyScope.KEYS,
        body=ApiKeyFields,
        returns={201: NewApiKeySerializer},
        errors=(402, 409),
        headers=[schema.LOCATION],
    )
    def create(self, request: Request) -> Response:
        """Create an API key.

        `key` is the secret, which no later response shows. A program's key allows no more than the
        key that makes it: some of its scopes, the same agent and user if that is bound, and no
        later expiry. Anything wider is a 403 `outside-of-key`. It is revoked with the key that made
        it. A tenant without a quota of keys has at most 200 valid ones: one more is a 409
        `limit-reached`.
        """
        fields, own = self.fields, self._own_key()
        values: dict[str, Any] = {
            "name": fields["name"],
            "scopes": fields["scopes"],
            "agent_id": self.caller.agent_id_in(fields),
            "user_id": self.caller.user_id_in(fields),
            "expires_at": fields.get("expires_at", own and own.expires_at),
        }
        if own is not None:
            key, text = derive_key(own, **values)
        else:
            key, text = issue_key(
                tenant_id=required_tenant_id(), created_by=self.caller.person_id, **values
            )
        self.log_created(key, is_new=True)
        document = {**self.document(key), "key": str(text)}
        return Response(document, status=201, headers={"Location": document["url"]})

    @views.operation(
        Action.EDIT,
        scope=KeyScope.KEYS,
        id="revoke_api_key",
        returns={204: None},
    )
    def destroy(self, request: Request, key_id: UUID) -> Response:
        """Revoke an API key.

        Requests with the key are refused at once, and so are those with keys that it made. A
        revoked key is kept in the list, and cannot be restored.
        """
        key = self.get_object()
        before = row_state(key)
        revoke_key(key.pk)
        key.refresh_from_db()
        self.log(key, before=before, after=row_state(key))
        return Response(status=204)

    def _own_key(self) -> ApiKey | None:
        """Return the key of the request; None for a person."""
        user = self.request.user
        return user.key if isinstance(user, Program) else None
