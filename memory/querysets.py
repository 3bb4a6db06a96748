"""The vocabulary of reads: every query names its tenant, agent and user."""

from typing import Self
from uuid import UUID

from django.db import models
from django.db.models.functions import Now

from memory.conf import IMPORT_CHANNEL


class ScopedQuerySet(models.QuerySet):
    """Rows that belong to what one agent knows of one user."""

    def of(self, tenant_id: UUID | str, agent_id: UUID | str, user_id: str) -> Self:
        """Only the rows of this agent and user. The tenant is said although the schema and the
        policy already decide it: each wall holds by itself."""
        return self.filter(tenant_id=tenant_id, agent_id=agent_id, user_id=user_id)


class MessageQuerySet(ScopedQuerySet):
    """The transcript."""

    def window_turns(self, *, after_number: int) -> Self:
        """What ends a turn of the window, newest first: replies, and turns that were imported.

        A message that waits for its reply is not in the window yet; it comes with the reply.
        """
        ends_a_turn = models.Q(in_reply_to__isnull=False) | models.Q(channel=IMPORT_CHANNEL)
        return (
            self.filter(ends_a_turn, number__gt=after_number)
            .select_related("in_reply_to")
            .order_by("-created_at", "-number")
        )


class PendingEmbeddingQuerySet(models.QuerySet):
    """The outbox of messages that are not embedded yet."""

    def due(self) -> Self:
        """What should be worked on now, oldest first."""
        return self.filter(due_at__lte=Now()).order_by("due_at", "message_id")
