"""API keys, events for programs, webhooks, and the deliveries of events to webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from konstruct_client import documents
from konstruct_client._calls import Call, Page, given, listing, segment
from konstruct_client._methods import Resource, S, call, pages
from konstruct_client.resources.messages import Moment

EventType = Literal[
    "message.answered", "message.failed", "message.closed", "escalation.opened",
    "escalation.waiting", "escalation.answered", "escalation.resolved", "tool_call.waiting",
    "fact.proposed", "fact.active", "fact.superseded", "fact.retracted", "erasure.requested",
    "erasure.done", "import.done", "quota.reached", "job.failed",
]  # fmt: skip


class ApiKeys(Resource[S]):
    """The key of this program, and the keys that it made. They need the scope `keys`."""

    @call
    def create(
        self,
        name: str,
        *,
        scopes: Sequence[Literal["read", "write", "erase", "keys"]] | None = None,
        agent: str | None = None,
        user_id: str | None = None,
        expires_at: Moment | None = None,
    ) -> Call[documents.NewApiKey]:
        """Create a key that allows no more than this one. Its `key` is shown once.

        Args:
            name: the name of its program.
            scopes: by default read and write.
            agent, user_id: the only agent and user of the key.
            expires_at: by default when this key expires.
        """
        body = given(name=name, scopes=scopes, agent=agent, user_id=user_id, expires_at=expires_at)
        return Call("POST", "api-keys/", body=body, repeatable=False)

    @call
    def get(self, key_id: str) -> Call[documents.ApiKey]:
        """Get a key, without its secret."""
        return Call("GET", f"api-keys/{segment(key_id)}/")

    @call
    def revoke(self, key_id: str) -> Call[None]:
        """Revoke a key for good, with the keys that it made."""
        return Call("DELETE", f"api-keys/{segment(key_id)}/")

    @pages
    def list(self, *, limit: int | None = None) -> Call[Page[documents.ApiKey]]:
        """List keys, newest first."""
        return listing("api-keys/", limit=limit)


class Events(Resource[S]):
    """Events, in their order."""

    @call
    def read(self, *, after: int | None = None, limit: int | None = None) -> Call[documents.Events]:
        """Read the events after a place. The response has the place for the next call."""
        return Call("GET", "events/", query=given(after=after, limit=limit))


class Webhooks(Resource[S]):
    """Addresses of programs that get events."""

    @call
    def create(
        self,
        *,
        url: str,
        types: Sequence[EventType] | None = None,
        includes_content: bool | None = None,
        description: str | None = None,
    ) -> Call[documents.NewWebhook]:
        """Create a webhook. The response has its secret, which no later one shows."""
        body = given(
            url=url, types=types, includes_content=includes_content, description=description
        )
        return Call("POST", "webhooks/", body=body, repeatable=False)

    @call
    def get(self, webhook_id: str) -> Call[documents.Webhook]:
        """Get a webhook."""
        return Call("GET", f"webhooks/{segment(webhook_id)}/")

    @call
    def update(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        types: Sequence[EventType] | None = None,
        includes_content: bool | None = None,
        description: str | None = None,
        is_active: bool | None = None,
    ) -> Call[documents.Webhook]:
        """Change a webhook."""
        body = given(
            url=url, types=types, includes_content=includes_content, description=description,
            is_active=is_active,
        )  # fmt: skip
        return Call("PATCH", f"webhooks/{segment(webhook_id)}/", body=body)

    @call
    def delete(self, webhook_id: str) -> Call[None]:
        """Delete a webhook, with its deliveries."""
        return Call("DELETE", f"webhooks/{segment(webhook_id)}/")

    @call
    def rotate_secret(self, webhook_id: str) -> Call[documents.NewWebhook]:
        """Replace the secret. For a day events are signed by each of the two."""
        return Call("POST", f"webhooks/{segment(webhook_id)}/secret/", repeatable=False)

    @pages
    def list(self, *, limit: int | None = None) -> Call[Page[documents.Webhook]]:
        """List webhooks, oldest first."""
        return listing("webhooks/", limit=limit)


class WebhookDeliveries(Resource[S]):
    """Events that are, or were, sent to webhooks."""

    @call
    def get(self, delivery_id: str) -> Call[documents.WebhookDelivery]:
        """Get a delivery."""
        return Call("GET", f"webhook-deliveries/{segment(delivery_id)}/")

    @call
    def retry(self, delivery_id: str) -> Call[documents.WebhookDelivery]:
        """Send an event again, also one that was delivered."""
        path = f"webhook-deliveries/{segment(delivery_id)}/retry/"
        return Call("POST", path, repeatable=False)

    @pages
    def list(
        self,
        *,
        webhook_id: str | None = None,
        event_id: str | None = None,
        state: Literal["waiting", "delivered", "failed"] | None = None,
        limit: int | None = None,
    ) -> Call[Page[documents.WebhookDelivery]]:
        """List deliveries, newest first."""
        return listing(
            "webhook-deliveries/", webhook_id=webhook_id, event_id=event_id, state=state,
            limit=limit,
        )  # fmt: skip
