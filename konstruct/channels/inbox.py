"""The inbox: what a channel has told stands here before the channel is told that it has arrived."""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db.models.functions import Now
from psycopg.types.json import Jsonb

from konstruct.channels.locks import arrivals_lock
from konstruct.channels.models import Arrival
from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.exceptions import KonstructError, detail_of, reason_of
from tenants.outbox import GRACE, Kind, attempts

logger = logging.getLogger(__name__)

# Named, for the task is above: it imports the handlers of channels.
ARRIVALS = Kind("arrival", task="konstruct.channels.tasks.take_in_arrival", queue="deliveries")

Handler = Callable[[UUID, Mapping[str, Any]], None]

LONGEST_BACKOFF_SECONDS = 300.0
# After so long a task begins with no other arrival, so that other workspaces have their turn.
TURN_SECONDS = 30.0
# One statement, with no transaction around it: a channel waits for it, and so do fifty at once.
# Returned, of a row that is new: whether another that came a moment ago is still to be processed.
_PUT = """
INSERT INTO channels_arrival (channel, workspace, key, heard)
VALUES (%(channel)s, %(workspace)s, %(key)s, %(event)s)
ON CONFLICT (key) DO NOTHING
RETURNING EXISTS (
    SELECT FROM channels_arrival AS earlier
    WHERE earlier.channel = %(channel)s AND earlier.workspace = %(workspace)s
      AND earlier.failed_at IS NULL
      AND (earlier.attempts = 0 OR earlier.begun_at > now() - interval '1 second')
      AND earlier.created_at > now() - interval '1 second'
)
"""


class Put(StrEnum):
    """What became of what has arrived."""

    STANDS = "stands"  # already
    NEW = "new"  # a worker was woken for it
    JOINED = (
        "joined"  # it is new, and the worker of another that came a moment ago processes it too
    )


def put(*, channel: str, workspace: str, key: str, event: Mapping[str, Any]) -> Put:
    """Write down what has arrived, once, by its key, and wake a worker.

    To wake one takes as long as to write a row. A worker processes all that stands, so that of
    fifty at once one is woken; should it have looked for the last time just before, the sweeper
    wakes another.
    """
    values = {
        "channel": channel,
        "workspace": workspace,
        "key": key,
        "event": Jsonb(event),
    }
    with connection.cursor() as cursor:
        cursor.execute(_PUT, values)
        row = cursor.fetchone()
    if row is None:
        return Put.STANDS
    if row[0]:
        return Put.JOINED
    ARRIVALS.wake()
    return Put.NEW


def process(*, tenant_id: UUID, channel: str, workspace: str, handler: Handler) -> None:
    """Hand what has arrived from a workspace to its handler, in the order in which it came.

    One worker at a time, for what is said in a thread matters to what is said in it next. Who
    finds it taken leaves at once: the other looks again after it has let go.
    """
    until = time.monotonic() + TURN_SECONDS
    with tenant_scope(tenant_id):
        # Ends: each turn takes what waits, and none is begun after TURN_SECONDS.
        while True:
            with arrivals_lock(tenant_id, channel, workspace) as ours:
                if not ours:
                    return
                while (arrival := _oldest(channel, workspace)) is not None:
                    if time.monotonic() > until:
                        return  # the sweeper wakes a worker for the rest
                    _process(arrival, tenant_id, handler)
            if _oldest(channel, workspace) is None:
                return


def process_arrival(*, tenant_id: UUID, arrival_id: int, handlers: Mapping[str, Handler]) -> None:
    """Process what has arrived from where this one came, if it stands; handlers are by channel."""
    with tenant_scope(tenant_id):
        place = Arrival.objects.filter(pk=arrival_id).values_list("channel", "workspace").first()
    if place is not None:
        channel, workspace = place
        handler = handlers[channel]
        process(tenant_id=tenant_id, channel=channel, workspace=workspace, handler=handler)


def retry(arrival_id: int) -> bool:
    """Let what was given up be tried again. Tells whether it was."""
    again = {
        "failed_at": None, "attempts": 0, "begun_at": None, "due_at": Now(), "sweep_at": Now()
    }  # fmt: skip
    return bool(Arrival.objects.failed().filter(pk=arrival_id).update(**again))


def _oldest(channel: str, workspace: str) -> Arrival | None:
    return Arrival.objects.due().filter(channel=channel, workspace=workspace).first()


def _process(arrival: Arrival, tenant_id: UUID, handler: Handler) -> None:
    """Count an attempt, handle it and remove it; or note why not and when to try again."""
    rows = Arrival.objects.filter(pk=arrival.pk)
    try:
        if not attempts.begin(rows, most=settings.DELIVERY_MAX_ATTEMPTS, sweep_at=Now() + GRACE):
            return
        with transaction.atomic():
            handler(tenant_id, arrival.event)
            arrival.delete()
    except Exception as error:  # whatever it is, a human must find it on the row
        _record_failure(arrival, attempts.failure_of(error))
        if isinstance(error, SoftTimeLimitExceeded):
            raise
    except BaseException:
        attempts.take_back_if_stopping(rows)
        raise


def _record_failure(arrival: Arrival, error: Exception) -> None:
    rows = Arrival.objects.filter(pk=arrival.pk)
    attempt = attempts.end(rows)
    if attempt is None:
        return
    reason = reason_of(error)
    surprise = not isinstance(error, KonstructError)
    if attempt >= settings.DELIVERY_MAX_ATTEMPTS:
        rows.update(last_error=reason, failed_at=Now())
        logger.error("%s could not be processed: %s", arrival, detail_of(error), exc_info=surprise)
        return
    later = Now() + timedelta(seconds=min(2.0 ** (attempt - 1), LONGEST_BACKOFF_SECONDS))
    rows.update(last_error=reason, due_at=later, sweep_at=later)
    logger.warning("%s will be processed later: %s", arrival, detail_of(error), exc_info=surprise)
