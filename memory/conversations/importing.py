"""History from elsewhere: turns with their own ids and times, written in bulk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models.functions import Now
from django.utils.timezone import is_naive
from django.utils.timezone import now as time_now

from memory.arguments import role_argument, text_argument, uuid_argument
from memory.conf import IMPORT_CHANNEL
from memory.conversations.derived_ids import DerivedIds, Place, Said
from memory.conversations.metadata import metadata_argument, write_attributes
from memory.conversations.short_term import refresh_window
from memory.exceptions import InvalidArgument
from memory.ids import new_id_argument
from memory.models import Message, PendingEmbedding
from tenants import transaction
from tenants.context import asynchronous, known_tenant

MAX_EXTERNAL_ID = 255


@dataclass(frozen=True, slots=True)
class ImportedTurn:
    """One turn of a history.

    Raises InvalidArgument, which names the value that cannot be.
    """

    external_id: str | None
    """Its id where it comes from; unique for one agent and user. None: it is given one."""
    agent_id: UUID
    user_id: str
    thread_id: str
    role: str
    content: str
    created_at: datetime | None
    """When it was said; None: now."""
    name: str = ""
    metadata: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("user_id", "thread_id"):
            new_id_argument(name, getattr(self, name))
        if self.external_id is not None:
            new_id_argument("external_id", self.external_id)
            if len(self.external_id) > MAX_EXTERNAL_ID:
                raise InvalidArgument(
                    f"external_id={self.external_id[:80]!r}… is longer than {MAX_EXTERNAL_ID}"
                    " characters"
                )
        uuid_argument("agent_id", self.agent_id)
        role_argument(self.role)
        text_argument("name", self.name)
        metadata_argument(self.metadata)
        if not text_argument("content", self.content).strip():
            raise InvalidArgument(f"content={self.content[:80]!r} is blank")
        if self.created_at is not None and is_naive(self.created_at):
            raise InvalidArgument(f"created_at={self.created_at} has no time zone")

    @property
    def identity(self) -> tuple[UUID, str, str | None]:
        """What makes it the same turn when it comes again."""
        return self.agent_id, self.user_id, self.external_id


@dataclass(frozen=True, slots=True)
class Imported:
    """Where and how a turn stands now, and whether this import wrote it."""

    message: Message
    created: bool


def import_turns(
    tenant_id: UUID | str, turns: Sequence[ImportedTurn], *, ids: DerivedIds | None = None
) -> list[Imported]:
    """Write turns into the transcript, all or none, and let them wait for their embeddings.

    Idempotent by external id: a turn that stands already, or that comes twice, is written once and
    stays as it was first.

    Args:
        ids: gives ids to turns without; by default those of `DerivedIds()`.

    Returns:
        One answer per turn, in their order.

    Raises:
        UnknownTenant: no such tenant.
    """
    with known_tenant(tenant_id), transaction.atomic():
        turns = _with_ids(turns, ids or DerivedIds())
        moment = time_now()
        rows: dict[tuple[UUID, str, str | None], Message] = {}
        for turn in turns:
            rows.setdefault(turn.identity, _message(turn, turn.created_at or moment))
        # In one order for everybody, so that two imports of the same history cannot deadlock;
        # numbers follow it, so that turns of one moment keep the order of the history.
        in_order = sorted(rows.values(), key=lambda row: row.created_at)
        Message.objects.bulk_create(in_order, ignore_conflicts=True)
        standing = {
            (row.agent_id, row.user_id, row.external_id): row
            for row in Message.objects.filter(
                agent_id__in={row.agent_id for row in in_order},
                user_id__in={row.user_id for row in in_order},
                external_id__in={row.external_id for row in in_order},
            ).only("agent_id", "user_id", "thread_id", "external_id", "created_at")
        }
        new = {row.pk for row in in_order} & {row.pk for row in standing.values()}
        write_attributes(row for row in in_order if row.pk in new)
        PendingEmbedding.objects.bulk_create(
            PendingEmbedding(message_id=row.pk, due_at=Now()) for row in in_order if row.pk in new
        )
        for agent_id, user_id in {(r.agent_id, r.user_id) for r in in_order if r.pk in new}:
            transaction.on_commit(partial(refresh_window, tenant_id, agent_id, user_id))
    answers = []
    for turn in turns:
        message = standing[turn.identity]
        answers.append(Imported(message, created=message.pk in new))
        new.discard(message.pk)
    return answers


aimport_turns = asynchronous(import_turns)


def _with_ids(turns: Sequence[ImportedTurn], ids: DerivedIds) -> list[ImportedTurn]:
    derived = iter(ids.of([_said(turn) for turn in turns if turn.external_id is None]))
    return [
        replace(turn, external_id=next(derived)) if turn.external_id is None else turn
        for turn in turns
    ]


def _said(turn: ImportedTurn) -> Said:
    place = Place(turn.agent_id, turn.user_id, turn.thread_id)
    at = "" if turn.created_at is None else turn.created_at.astimezone(UTC).isoformat()
    return Said(place, turn.role, turn.name, turn.content, at)


def _message(turn: ImportedTurn, created_at: datetime) -> Message:
    return Message(
        agent_id=turn.agent_id,
        user_id=turn.user_id,
        thread_id=turn.thread_id,
        channel=IMPORT_CHANNEL,
        role=turn.role,
        name=turn.name,
        metadata=metadata_argument(turn.metadata),
        content=turn.content,
        created_at=created_at,
        external_id=turn.external_id,
    )
