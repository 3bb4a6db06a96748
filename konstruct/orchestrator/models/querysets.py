"""The orchestrator's vocabulary of reads."""

import re
from typing import TYPE_CHECKING, Self
from uuid import UUID

from django.db import models
from django.db.models import OuterRef

from tenants.models import OutboxQuerySet

if TYPE_CHECKING:
    from konstruct.orchestrator.models import Agent  # noqa: F401  (in a string below)

UUID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
UUID_TEXT = re.compile(UUID_PATTERN, re.IGNORECASE)


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents of a tenant."""

    def active(self) -> Self:
        """Those that accept messages."""
        return self.filter(is_active=True)

    def named(self, name_or_id: str) -> Self:
        """The agent of that name or id; no name reads as an id, so one value is one agent."""
        if UUID_TEXT.fullmatch(name_or_id):
            return self.filter(pk=UUID(name_or_id))
        return self.filter(name=name_or_id)


class PendingReplyQuerySet(OutboxQuerySet):
    """Messages that wait for their reply."""

    def in_thread(
        self, *, agent_id: UUID | OuterRef, user_id: str | OuterRef, thread_id: str | OuterRef
    ) -> Self:
        """Those of one conversation, oldest first."""
        return self.filter(
            message__agent_id=agent_id, message__user_id=user_id, message__thread_id=thread_id
        ).order_by("message__number")
