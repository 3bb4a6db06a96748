"""Queries of messages. Each names its tenant, agent and user."""

from typing import Self, TypeVar
from uuid import UUID

from django.apps import apps
from django.db import models

from memory.conf import HISTORY_CHANNELS, STORED_CHANNEL

M = TypeVar("M", bound=models.Model, covariant=True)


class ScopedQuerySet(models.QuerySet[M]):
    """Rows of one agent's memory of one user."""

    def of(
        self,
        tenant_id: UUID | str | models.Expression,
        agent_id: UUID | str | models.Expression,
        user_id: str | models.Expression,
    ) -> Self:
        """Return the rows of this agent and user.

        The tenant is a condition too, although the schema and the policy restrict it: each check is
        independent.
        """
        return self.filter(tenant_id=tenant_id, agent_id=agent_id, user_id=user_id)


class MessageQuerySet(ScopedQuerySet[M]):
    """The transcript."""

    def window_turns(self, *, after_number: int | models.Expression) -> Self:
        """Return the last messages of the window's turns, newest first.

        They are answered messages, imported ones, and copies for this agent.

        A message without a reply is not in the window yet; it is added with the reply.
        """
        ends_a_turn = models.Q(role="assistant") | models.Q(channel__in=HISTORY_CHANNELS)
        return self.filter(
            ends_a_turn, ~models.Q(channel=STORED_CHANNEL), number__gt=after_number
        ).order_by("-created_at", "-number")

    def not_excluded(self) -> Self:
        """Return the messages that are not excluded from recall as a whole."""
        exclusions = apps.get_model("memory", "RecallExclusion").objects
        whole = exclusions.filter(message_id=models.OuterRef("pk"), start=None)
        return self.filter(~models.Exists(whole))

    def last_of_threads(self) -> Self:
        """Return the last message of every thread.

        Whether a later message exists is a probe of an index, so that the newest threads are found
        without reading the others.
        """
        same = {name: models.OuterRef(name) for name in ("agent_id", "user_id", "thread_id")}
        later = models.Q(created_at__gt=models.OuterRef("created_at")) | models.Q(
            number__gt=models.OuterRef("number")
        )
        after = self.model._default_manager.filter(
            later, created_at__gte=models.OuterRef("created_at"), **same
        )
        return self.filter(~models.Exists(after))
