"""An agent's conversation with a user, read for the short-term window."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from django.db.models import Max, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from memory.conf import IMPORT_CHANNEL
from memory.conversations.turns import Turn
from memory.models import Message, WindowClear
from tenants.context import connection

_EVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Place:
    """Where a turn stands in its conversation."""

    cleared: bool
    before: UUID | None


# In the way of every reply, and by the ORM four times as long.
_PLACE = """
WITH cleared AS MATERIALIZED (
    SELECT coalesce(max(last_number), 0) AS number, coalesce(max(created_at), '-infinity') AS at
    FROM (
        SELECT last_number, created_at FROM memory_windowclear
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND user_id = %(user)s
        ORDER BY id DESC LIMIT 1
    ) AS last
)
SELECT turn.number <= cleared.number OR turn.created_at < cleared.at, (
    SELECT before.id FROM memory_message AS before
    WHERE before.tenant_id = %(tenant)s AND before.agent_id = %(agent)s
      AND before.user_id = %(user)s
      AND (before.created_at, before.number) < (turn.created_at, turn.number)
      AND before.number > cleared.number AND before.created_at >= cleared.at
      AND (before.role = 'assistant' OR before.channel = %(import)s)
    ORDER BY before.created_at DESC, before.number DESC LIMIT 1
)
FROM memory_message AS turn, cleared
WHERE turn.id = %(message)s
  AND turn.tenant_id = %(tenant)s AND turn.agent_id = %(agent)s AND turn.user_id = %(user)s
  AND (turn.role = 'assistant' OR turn.channel = %(import)s)
"""


@dataclass(frozen=True)
class Conversation:
    """An agent's conversation with a user, across all threads and channels, in one tenant."""

    tenant_id: UUID
    agent_id: UUID
    user_id: str

    def cleared_up_to(self) -> int:
        """Number of the last message that an explicit clear covers, 0 without one."""
        return self._clears().values_list("last_number", flat=True).first() or 0

    def recent_turns(self, limit: int, *, after_number: int) -> list[Turn]:
        """The last turns of the window, oldest first.

        Answered messages with their replies, in the order of the replies; what a person said of
        their own accord; and imported turns. A turn counts as cleared where it was said before the
        last clear, whenever it was imported, and where it stood in the transcript then.
        """
        cleared_at = Coalesce(Subquery(self._clears().values("created_at")[:1]), Value(_EVER))
        ends = (
            Message.objects.of(self.tenant_id, self.agent_id, self.user_id)
            .window_turns(after_number=after_number)
            .filter(created_at__gte=cleared_at)[:limit]
        )
        turns: list[Turn] = []
        for message in reversed(ends):
            if message.in_reply_to is not None and message.channel != IMPORT_CHANNEL:
                turns.append(Turn.of(message.in_reply_to))
            turns.append(Turn.of(message))
        return turns[-limit:]

    def place_of(self, message_id: str) -> Place | None:
        """Where a message stands that ends a turn of this conversation; None for any other."""
        with connection.cursor() as cursor:
            cursor.execute(
                _PLACE,
                {
                    "tenant": self.tenant_id,
                    "agent": self.agent_id,
                    "user": self.user_id,
                    "message": message_id,
                    "import": IMPORT_CHANNEL,
                },
            )
            found = cursor.fetchone()
        return None if found is None else Place(*found)

    def clear(self) -> int:
        """Write down that nothing up to here comes back; the number of the last message."""
        messages = Message.objects.of(self.tenant_id, self.agent_id, self.user_id)
        last = messages.aggregate(last=Max("number"))["last"] or 0
        WindowClear.objects.create(agent_id=self.agent_id, user_id=self.user_id, last_number=last)
        return int(last)

    def _clears(self) -> QuerySet[WindowClear]:
        """Explicit clears, the last one first."""
        return WindowClear.objects.of(self.tenant_id, self.agent_id, self.user_id).order_by("-id")
