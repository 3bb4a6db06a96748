"""The outbox of posts: what is to be shown in channels, when it is tried, and what came of it."""

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F, Value
from django.db.models.functions import Coalesce, Greatest, Least, Now

from konstruct.channels.exceptions import ChannelBusy, ChannelRefused
from konstruct.channels.models import Delivery
from tenants.exceptions import KonstructError, reason_of

logger = logging.getLogger(__name__)

# The bell's head start, and how soon the sweeper looks again at work that somebody began.
GRACE = timedelta(seconds=5)
LONGEST_GRACE = timedelta(minutes=5)
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 300.0


def due(message_id: UUID) -> Delivery | None:
    """Return the delivery if there is something to do about it now."""
    return Delivery.objects.due().filter(pk=message_id).first()


def begin(delivery: Delivery) -> None:
    """Ask the sweeper to look again in a moment: by then it is done, or its worker was killed."""
    Delivery.objects.filter(pk=delivery.pk).update(ring_at=Now() + GRACE)


def intend(delivery: Delivery, part: int | None) -> None:
    """Write down which post is about to be made, or that none is any more."""
    delivery.intent = part
    delivery.save(update_fields=["intent"])


def note_posted(delivery: Delivery, part: int, posted: str, digest: str) -> None:
    """Write down that the post stands, and what it shows."""
    delivery.posted[part : part + 1] = [{"id": posted, "digest": digest}]
    delivery.intent = None
    delivery.save(update_fields=["posted", "intent"])


def settle(delivery: Delivery) -> None:
    """Note that what is shown is right, unless it has changed while it was being shown."""
    Delivery.objects.filter(pk=delivery.pk, version=delivery.version).update(
        due_at=None, attempts=0, last_error="", delivered_at=Now()
    )


def give_back(delivery: Delivery, error: Exception) -> None:
    """Note why it failed, and when to try again; give it up where that is of no use.

    What the channel refuses for good, or as many failures as DELIVERY_MAX_ATTEMPTS, end the trying.
    The row stays with its reason, for the admin and `redeliver`. To be told to wait is no failure.
    What has changed since is due all the same: the failure was another state's.
    """
    fields = {"last_error": reason_of(error)}
    attempts = delivery.attempts + (not isinstance(error, ChannelBusy))
    rows = Delivery.objects.filter(pk=delivery.pk, version=delivery.version)
    surprise = not isinstance(error, KonstructError)
    if isinstance(error, ChannelRefused) or attempts >= settings.DELIVERY_MAX_ATTEMPTS:
        rows.update(attempts=attempts, failed_at=Now(), **fields)
        logger.error(
            "The reply to %s could not be delivered: %s",
            delivery.pk, fields["last_error"], exc_info=surprise,
        )  # fmt: skip
        return
    later = Now() + _backoff(attempts, error)
    rows.update(attempts=attempts, due_at=later, ring_at=later, **fields)
    logger.warning(
        "The reply to %s could not be delivered (attempt %s) and will be tried again: %s",
        delivery.pk, attempts, fields["last_error"], exc_info=surprise,
    )  # fmt: skip


def reset(message_id: UUID) -> bool:
    """Let what was given up be tried again. Tells whether it was."""
    return bool(Delivery.objects.failed().filter(pk=message_id).update(failed_at=None, **_anew()))


def show_anew(message_id: UUID) -> bool:
    """Note that what is to be shown has changed. Tells whether it is shown at all."""
    return bool(Delivery.objects.filter(pk=message_id).update(failed_at=None, **_anew()))


def take_unheard(limit: int) -> list[UUID]:
    """Return deliveries to ring for, the longest unheard first; other sweeps leave them a while.

    The pause grows with the age of what is due, so that a long queue is not filled with its echoes.
    """
    age = ExpressionWrapper(Now() - Coalesce(F("due_at"), Now()), output_field=DurationField())
    pause = Greatest(Value(GRACE), Least(age, Value(LONGEST_GRACE)), output_field=DurationField())
    with transaction.atomic():
        ids = list(
            Delivery.objects.unheard()
            .select_for_update(skip_locked=True)
            .values_list("message_id", flat=True)[:limit]
        )
        Delivery.objects.filter(pk__in=ids).update(ring_at=Now() + pause)
    return ids


def _backoff(attempts: int, error: Exception) -> timedelta:
    if isinstance(error, ChannelBusy):
        return timedelta(seconds=error.retry_after)
    seconds = FIRST_BACKOFF_SECONDS * 2.0 ** (attempts - 1)
    return timedelta(seconds=min(seconds, LONGEST_BACKOFF_SECONDS))


def _anew() -> dict[str, Any]:
    return {
        "version": F("version") + 1,
        "attempts": 0,
        "due_at": Now(),
        "ring_at": Now() + GRACE,
    }
