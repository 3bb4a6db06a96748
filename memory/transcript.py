"""The transcript: every turn, verbatim, written before anything else happens with it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Now
from django.utils.timezone import is_naive

from memory.arguments import id_argument, role_argument, text_argument, uuid_argument
from memory.conf import IMPORT_CHANNEL, OUTBOX_GRACE
from memory.entering import known_tenant
from memory.exceptions import InvalidArgument
from memory.models import Message, PendingEmbedding, WindowClear
from memory.turns import Turn
from tenants.context import asynchronous


def record_message(
    *,
    tenant_id: UUID | str,
    agent_id: UUID | str,
    user_id: str,
    thread_id: str,
    channel: str,
    role: str,
    content: str,
    name: str = "",
    idempotency_key: str | None = None,
    external_id: str | None = None,
    in_reply_to: UUID | str | None = None,
    created_at: datetime | None = None,
    recall_trace: dict[str, Any] | None = None,
) -> tuple[Message, bool]:
    """Write a turn down, and with it, in one transaction, that it is to be embedded.

    Safe to run twice: where a message with this idempotency key, this external id (of this agent
    and user) or this `in_reply_to` stands already, that one is returned and nothing is written.

    Args:
        created_at: when it was said, for imported turns; otherwise Postgres says now.
        recall_trace: what was recalled for this reply; becomes a RecallEvent when it is embedded.

    Returns:
        The message, and whether it is new.

    Raises:
        InvalidArgument: a value that cannot be stored; the message names it.
        UnknownTenant: no such tenant.
    """
    message = Message(
        agent_id=uuid_argument("agent_id", agent_id),
        user_id=id_argument("user_id", user_id),
        thread_id=id_argument("thread_id", thread_id),
        channel=id_argument("channel", channel),
        role=role_argument(role),
        name=text_argument("name", name),
        content=text_argument("content", content),
        idempotency_key=_key_argument("idempotency_key", idempotency_key),
        external_id=_key_argument("external_id", external_id),
        in_reply_to_id=None if in_reply_to is None else uuid_argument("in_reply_to", in_reply_to),
    )
    if created_at is not None:
        if is_naive(created_at):
            raise InvalidArgument(f"created_at={created_at} has no time zone")
        message.created_at = created_at
    with known_tenant(tenant_id):
        try:
            with transaction.atomic():
                message.save(force_insert=True)
                PendingEmbedding.objects.create(
                    message=message, recall_trace=recall_trace, due_at=Now() + OUTBOX_GRACE
                )
        except IntegrityError:
            standing = _standing(message)
            if standing is None:
                raise
            return standing, False
    return message, True


arecord_message = asynchronous(record_message)


def _key_argument(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    id_argument(name, value)
    if len(value) > 255:
        raise InvalidArgument(f"{name}={value[:80]!r}… is longer than 255 characters")
    return value


def _standing(message: Message) -> Message | None:
    """The message that was first with this one's unique values."""
    same = Q(pk__in=[])
    if message.in_reply_to_id is not None:
        same |= Q(in_reply_to=message.in_reply_to_id)
    if message.idempotency_key is not None:
        same |= Q(idempotency_key=message.idempotency_key)
    if message.external_id is not None:
        same |= Q(
            agent_id=message.agent_id, user_id=message.user_id, external_id=message.external_id
        )
    return Message.objects.filter(same).first()


# --- What the short-term window is rebuilt from ---------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a turn stands in its conversation."""

    cleared: bool
    before: UUID | None


# In the way of every reply, and by the ORM four times as long.
_PLACE = """
WITH cleared AS MATERIALIZED (
    SELECT coalesce((
        SELECT last_number FROM memory_windowclear
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND user_id = %(user)s
        ORDER BY id DESC LIMIT 1
    ), 0) AS number
)
SELECT turn.number <= cleared.number, (
    SELECT before.id FROM memory_message AS before
    WHERE before.tenant_id = %(tenant)s AND before.agent_id = %(agent)s
      AND before.user_id = %(user)s
      AND (before.created_at, before.number) < (turn.created_at, turn.number)
      AND before.number > cleared.number
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
        their own accord; and imported turns.
        """
        ends = Message.objects.of(self.tenant_id, self.agent_id, self.user_id).window_turns(
            after_number=after_number
        )[:limit]
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
