"""The inbox: what a channel has told stands here before the channel is told that it has arrived."""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now
from psycopg.types.json import Jsonb

from konstruct.channels.locks import arrivals_lock
from konstruct.channels.models import Arrival
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError, reason_of

logger = logging.getLogger(__name__)

Hear = Callable[[UUID, Mapping[str, Any]], None]

GRACE = timedelta(seconds=5)
LONGEST_BACKOFF_SECONDS = 300.0
# One statement, with no transaction around it: a channel waits for it, and so do fifty at once.
# Returned, of a row that is new: whether another that came a moment ago is still to be taken in.
_PUT = """
INSERT INTO channels_arrival (channel, workspace, key, heard, ring_at)
VALUES (%(channel)s, %(workspace)s, %(key)s, %(heard)s, now() + %(grace)s)
ON CONFLICT (key) DO NOTHING
RETURNING EXISTS (
    SELECT FROM channels_arrival AS earlier
    WHERE earlier.channel = %(channel)s AND earlier.workspace = %(workspace)s
      AND earlier.failed_at IS NULL AND earlier.attempts = 0
      AND earlier.created_at > now() - interval '1 second'
)
"""


class Put(StrEnum):
    """What became of what has arrived."""

    STANDS = "stands"  # already
    RING = "ring"  # it is new, and a worker is to be rung for
    RUNG = "rung"  # it is new, and who was rung for another a moment ago takes it in too


def put(*, channel: str, workspace: str, key: str, heard: Mapping[str, Any]) -> Put:
    """Write down what has arrived; once, by its key.

    To enqueue a task takes as long as to write a row. A worker takes in all that stands, so that of
    fifty at once one rings; should it have looked for the last time just before, the sweeper does.
    """
    values = {
        "channel": channel,
        "workspace": workspace,
        "key": key,
        "heard": Jsonb(heard),
        "grace": GRACE,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PUT, values)  # type: ignore[arg-type]  # psycopg takes what Django's stubs do not know
        row = cursor.fetchone()
    if row is None:
        return Put.STANDS
    return Put.RUNG if row[0] else Put.RING


def take_in(*, tenant_id: UUID, channel: str, workspace: str, hear: Hear) -> None:
    """Let what has arrived from a workspace be heard, in the order in which it came.

    One worker at a time, for what is said in a thread matters to what is said in it next. Who
    finds it taken leaves at once: the other looks again after it has let go.
    """
    with tenant_scope(tenant_id):
        while _oldest(channel, workspace) is not None:
            with arrivals_lock(tenant_id, channel, workspace) as ours:
                if not ours:
                    return
                while (arrival := _oldest(channel, workspace)) is not None:
                    _take_in(arrival, tenant_id, hear)


def retry(arrival_id: int) -> bool:
    """Let what was given up be tried again. Tells whether it was."""
    again = {"failed_at": None, "attempts": 0, "due_at": Now(), "ring_at": Now()}
    return bool(Arrival.objects.failed().filter(pk=arrival_id).update(**again))


def take_unheard() -> list[tuple[str, str]]:
    """Return channels and workspaces to ring for; other sweeps leave them for a while."""
    with transaction.atomic():
        ids = list(
            Arrival.objects.unheard()
            .select_for_update(skip_locked=True)
            .values_list("pk", flat=True)[:200]
        )
        rows = Arrival.objects.filter(pk__in=ids)
        places = list(rows.values_list("channel", "workspace").distinct())
        rows.update(ring_at=Now() + GRACE)
    return places


def _oldest(channel: str, workspace: str) -> Arrival | None:
    return Arrival.objects.due().filter(channel=channel, workspace=workspace).first()


def _take_in(arrival: Arrival, tenant_id: UUID, hear: Hear) -> None:
    """Hear it and remove it, or note why not and when to try again."""
    try:
        with transaction.atomic():
            hear(tenant_id, arrival.heard)
            arrival.delete()
    except Exception as error:  # whatever it is, a human must find it on the row
        _give_back(arrival, error)


def _give_back(arrival: Arrival, error: Exception) -> None:
    attempts = arrival.attempts + 1
    rows = Arrival.objects.filter(pk=arrival.pk)
    reason = reason_of(error)
    surprise = not isinstance(error, KonstructError)
    if attempts >= settings.DELIVERY_MAX_ATTEMPTS:
        rows.update(attempts=attempts, last_error=reason, failed_at=Now())
        logger.error("%s could not be taken in: %s", arrival, reason, exc_info=surprise)
        return
    later = Now() + timedelta(seconds=min(2.0 ** (attempts - 1), LONGEST_BACKOFF_SECONDS))
    rows.update(attempts=attempts, last_error=reason, due_at=later, ring_at=later)
    logger.warning("%s will be taken in later: %s", arrival, reason, exc_info=surprise)
