"""The inbox: what a channel has told stands here before the channel is told that it has arrived."""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
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
_PUT = """
INSERT INTO channels_arrival (channel, workspace, key, heard, ring_at)
VALUES (%s, %s, %s, %s, now() + %s) ON CONFLICT (key) DO NOTHING
"""


def put(*, channel: str, workspace: str, key: str, heard: Mapping[str, Any]) -> bool:
    """Write down what has arrived. Tells whether it is new; ring for a worker then."""
    values: list[Any] = [channel, workspace, key, Jsonb(heard), GRACE]
    with connection.cursor() as cursor:
        cursor.execute(_PUT, values)
        return cursor.rowcount == 1


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
