"""The outbox of posts: what is to be shown in channels, when it is tried, and what came of it."""

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Case, DateTimeField, F, When
from django.db.models.functions import Now

from konstruct.channels.exceptions import ChannelBusy, ChannelRefused
from konstruct.channels.models import Delivery
from tenants.exceptions import KonstructError, detail_of, reason_of
from tenants.outbox import GRACE, Kind, attempts

logger = logging.getLogger(__name__)

DELIVERIES = Kind("delivery", task="konstruct.channels.delivery.tasks.deliver", queue="deliveries")
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 300.0


def due(message_id: UUID) -> Delivery | None:
    """Return the delivery if there is something to do about it now."""
    return Delivery.objects.due().filter(pk=message_id).first()


def begin(delivery: Delivery) -> bool:
    """Count an attempt, before the work; False if there is nothing to show any more.

    The sweeper looks again in a moment: by then it is done, or its worker was killed. Raises
    WorkerLost if workers keep dying over it; see tenants/outbox/attempts.py.
    """
    rows = Delivery.objects.filter(pk=delivery.pk)
    most = settings.DELIVERY_MAX_ATTEMPTS
    return attempts.begin(rows, most=most, sweep_at=Now() + GRACE)


def take_back_if_stopping(delivery: Delivery) -> None:
    """Let the attempt not count if this worker was told to end in the middle of it."""
    attempts.take_back_if_stopping(Delivery.objects.filter(pk=delivery.pk))


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
        due_at=None, attempts=0, begun_at=None, last_error="", delivered_at=Now()
    )


def record_failure(delivery: Delivery, error: Exception) -> None:
    """Note why it failed, and when to try again; give it up where that is of no use.

    What the channel refuses for good, or as many attempts as DELIVERY_MAX_ATTEMPTS, end the trying.
    The row stays with its reason, for the admin and `redeliver`. To be told to wait is no failure.
    What has changed since is due all the same: the failure was another state's.
    """
    error = attempts.failure_of(error)
    rows = Delivery.objects.filter(pk=delivery.pk, version=delivery.version)
    is_busy = isinstance(error, ChannelBusy)
    if is_busy:
        attempts.take_back(rows)
    attempt = 0 if is_busy else attempts.end(rows)
    if attempt is None:
        return
    fields = {"last_error": reason_of(error)}
    surprise = not isinstance(error, KonstructError)
    if isinstance(error, ChannelRefused) or attempt >= settings.DELIVERY_MAX_ATTEMPTS:
        rows.update(failed_at=Now(), **fields)
        logger.error(
            "The reply to %s could not be delivered: %s",
            delivery.pk, detail_of(error), exc_info=surprise,
        )  # fmt: skip
        return
    later = Now() + _backoff(attempt, error)
    rows.update(due_at=later, sweep_at=later, **fields)
    logger.warning(
        "The reply to %s could not be delivered (attempt %s) and will be tried again: %s",
        delivery.pk, attempt, detail_of(error), exc_info=surprise,
    )  # fmt: skip


def reset(message_id: UUID) -> bool:
    """Let what was given up be tried again. Tells whether it was."""
    return bool(Delivery.objects.failed().filter(pk=message_id).update(failed_at=None, **_anew()))


def show_anew(message_id: UUID) -> bool:
    """Note that what is to be shown has changed. Tells whether it is shown at all."""
    return bool(Delivery.objects.filter(pk=message_id).update(failed_at=None, **_anew()))


def show_more(message_id: UUID) -> bool:
    """Note that there is more to show, if all before it is shown. Tells whether it was."""
    shown = Delivery.objects.filter(pk=message_id, due_at__isnull=True, failed_at__isnull=True)
    return bool(shown.update(**_anew()))


def _backoff(attempt: int, error: Exception) -> timedelta:
    if isinstance(error, ChannelBusy):
        return timedelta(seconds=error.retry_after)
    seconds = FIRST_BACKOFF_SECONDS * 2.0 ** (attempt - 1)
    return timedelta(seconds=min(seconds, LONGEST_BACKOFF_SECONDS))


def _anew() -> dict[str, Any]:
    # Who was told to wait, and has not failed, waits on.
    is_busy = When(attempts=0, due_at__gt=Now(), then=F("due_at"))
    at = Case(is_busy, default=Now(), output_field=DateTimeField())
    return {
        "version": F("version") + 1,
        "attempts": 0,
        "begun_at": None,
        "due_at": at,
        "sweep_at": at,
    }
