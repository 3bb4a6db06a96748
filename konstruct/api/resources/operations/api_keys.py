"""API keys: a program makes keys that allow no more than its own, and revokes them."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from konstruct.api.auth.keys import Program, derive_key, issue_key, revoke_key
from konstruct.api.http import bodies, schema, views
from konstruct.api.models import DEFAULT_SCOPES, ApiKey, KeyScope
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.context import required_tenant_id


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
        it.
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
