"""Reviewers' marks on replies: setting a mark, and a random sample of replies to be marked."""

import random
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Now

from konstruct.orchestrator.exceptions import MessageNotFound
from konstruct.orchestrator.models import ReplyMark, ReplyReview
from memory.arguments import text_argument
from memory.exceptions import InvalidArgument
from memory.models import Message, RecallEvent, Role
from tenants import transaction
from tenants.audit.access_log import Actor

# A sample is drawn from this many of the newest replies.
MAX_SAMPLED: Final = 2_000
MAX_NOTE_CHARACTERS: Final = 2_000


def review_reply(
    reply_id: UUID, *, mark: str, by: Actor, note: str = ""
) -> tuple[ReplyReview, bool]:
    """Set the mark of a reviewer on a reply, or replace it.

    Args:
        reply_id: the message that is the reply.
        mark: right, wrong or unsure.
        by: the person or the API key.
        note: the reviewer's note.

    Returns:
        The review, and whether it is the first one of this reviewer.

    Raises:
        InvalidArgument: another mark, or a note that cannot be stored.
        MessageNotFound: no agent's reply has this id.
    """
    if mark not in ReplyMark.values:
        raise InvalidArgument(f"mark={mark!r}: give one of {', '.join(ReplyMark.values)}")
    if len(text_argument("note", note)) > MAX_NOTE_CHARACTERS:
        raise InvalidArgument(f"note has more than {MAX_NOTE_CHARACTERS:,} characters")
    with transaction.atomic():
        replies = Message.objects.filter(pk=reply_id, role=Role.ASSISTANT)
        reply = replies.only("agent_id", "user_id").first()
        if reply is None:
            raise MessageNotFound(f"No reply of an agent has the id {reply_id}.")
        values = {"mark": mark, "note": note, "reviewer_name": by.name}
        owner = {"agent_id": reply.agent_id, "user_id": reply.user_id}
        review, is_new = ReplyReview.objects.update_or_create(
            reply=reply,
            reviewer_kind=by.kind,
            reviewer_id=by.id,
            defaults={**values, "created_at": Now()},
            create_defaults={**values, **owner},
        )
    review.refresh_from_db()
    return review, is_new


def random_reply(
    *, reviewer: Actor, agent_id: UUID | None = None, channel: str = ""
) -> UUID | None:
    """Return a random reply of an agent that the reviewer has not marked; None if there is none.

    Args:
        reviewer: the person or the API key.
        agent_id: only replies of this agent.
        channel: only replies in this channel.
    """
    filters: dict[str, Any] = {"reply__isnull": False}
    if agent_id:
        filters["agent_id"] = agent_id
    if channel:
        filters["reply__channel"] = channel
    newest = RecallEvent.objects.filter(**filters).order_by("-created_at", "id")
    ids = set(newest.values_list("reply_id", flat=True)[:MAX_SAMPLED])
    marked = ReplyReview.objects.filter(
        reply_id__in=ids, reviewer_kind=reviewer.kind, reviewer_id=reviewer.id
    )
    unmarked = sorted(ids - set(marked.values_list("reply_id", flat=True)))
    return random.choice(unmarked) if unmarked else None  # noqa: S311  (no secret)
