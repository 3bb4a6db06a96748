"""Kinds of work that wait in the outbox, and how an entry gets in, through, and out of it."""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Now

from tenants import transaction
from tenants.context import current_server, required_tenant_id, tenant_connection
from tenants.exceptions import KonstructError, code_of, detail_of, reason_of
from tenants.models import OutboxEntry, OutboxQuerySet
from tenants.outages import is_outage
from tenants.outbox import attempts
from tenants.outbox.enqueue import enqueue_by_name
from tenants.servers import MAIN

logger = logging.getLogger(__name__)

# The task that claims an entry and does it: named, for it is above.
WORK = "tenants.tasks.work"
# How soon work that was begun can be claimed again: by then it is done, or its worker was killed.
GRACE = timedelta(seconds=5)
# What is claimed over and over, such as while its thread is taken, is claimed more and more rarely.
LONGEST_GRACE = timedelta(minutes=5)

_PUT = """
INSERT INTO tenants_outboxentry (tenant_id, kind, key) VALUES (%(tenant_id)s, %(kind)s, %(key)s)
"""

KINDS: Final[dict[str, "Kind"]] = {}


def _once() -> int:
    return 1


def _never(error: Exception) -> bool:
    return False


@dataclass(frozen=True)
class Kind:
    """One kind of work. Whoever makes one lets workers find it by its name.

    Its methods work in the tenant that we are in. An attempt is counted before the work, so that
    what kills its worker is given up like anything else that fails. A kind whose table says by a
    trigger when it is due (tenants/operations/outbox.py) counts its attempts there.
    """

    name: str
    task: str
    """Name of the TenantTask that does it, given the tenant's id and the entry's key."""
    queue: str
    """The queue of the workers that do it; empty: nobody is woken, and who does it looks itself."""
    most_attempts: Callable[[], int] = _once
    first_backoff: float = 1.0
    """Seconds until the second attempt; each further pause is twice as long."""
    longest_backoff: float = 300.0
    is_final: Callable[[Exception], bool] = _never
    """Whether trying again is of no use after this error."""
    of_suspended_too: bool = False
    """Whether it is done for tenants that are suspended."""

    def __post_init__(self) -> None:
        KINDS[self.name] = self

    def put(self, key: UUID) -> None:
        """Let the work wait for a worker. Call it in the transaction that makes the work."""
        entry = {"tenant_id": required_tenant_id(), "kind": self.name, "key": key}
        tenant_connection().queue(_PUT, entry)
        self.wake_on_commit()

    def put_if_missing(self, key: UUID) -> None:
        """Let the work wait, unless it does so already."""
        entry = OutboxEntry(tenant_id=required_tenant_id(), kind=self.name, key=key)
        OutboxEntry.objects.bulk_create([entry], ignore_conflicts=True)
        self.wake_on_commit()

    def put_off(self, key: UUID, pause: timedelta) -> None:
        """Let the work, which went well, be done again after a pause."""
        later = Now() + pause
        anew: dict[str, Any] = {"attempts": 0, "error_code": "", "last_error": ""}
        self._rows(key).update(**anew, due_at=later, sweep_at=later)

    def begin(self, key: UUID) -> bool:
        """Count an attempt, before the work; False if there is nothing to do any more.

        Raises WorkerLost if workers keep dying over it; see tenants/outbox/attempts.py.
        """
        rows = self._rows(key)
        return attempts.begin(rows, most=self.most_attempts(), sweep_at=Now() + GRACE)

    def look_again(self, key: UUID) -> None:
        """Let another worker claim it at once."""
        self._rows(key).update(sweep_at=Now())
        self.wake_on_commit()

    def take_back(self, key: UUID) -> None:
        """Let the attempt that was begun not count: it was neither done nor did it fail."""
        attempts.take_back(self._rows(key))

    def take_back_if_stopping(self, key: UUID) -> None:
        """Let the attempt not count if this worker was told to end in the middle of it."""
        attempts.take_back_if_stopping(self._rows(key))

    def finish(self, key: UUID) -> None:
        """Remove the work: it is done. Call it in the transaction that does it, if there is one."""
        self._rows(key).delete()

    def record_failure(self, key: UUID, error: Exception) -> bool:
        """Note why the attempt failed, and when to try again; True if it is given up instead.

        What is final, or was the last attempt, ends the trying. The entry stays with its reason.
        An error with `retry_after` (seconds) is not tried again before.
        """
        error = attempts.failure_of(error)
        with transaction.atomic():
            rows = self._rows(key)
            attempt = attempts.end(rows)
            if attempt is None:
                return False
            given_up = self.is_final(error) or attempt >= self.most_attempts()
            later = Now() + self._backoff(attempt, error)
            when = {"failed_at": Now()} if given_up else {"due_at": later, "sweep_at": later}
            rows.update(error_code=code_of(error), last_error=reason_of(error), **when)
        logger.log(
            logging.ERROR if given_up else logging.WARNING,
            "The %s of %s %s: %s",
            self.name,
            key,
            "was given up" if given_up else f"failed (attempt {attempt}) and will be tried again",
            detail_of(error),
            exc_info=not (isinstance(error, KonstructError) or is_outage(error)),
        )
        return given_up

    def hold(self, key: UUID, held_for: str, *, at_most: timedelta | None = None) -> bool:
        """Let it wait for somebody; False if it does not wait for a worker.

        After `at_most` a worker is given it again, held as it is.
        """
        sweep_at = None if at_most is None else Now() + at_most
        waiting = self._rows(key).filter(failed_at__isnull=True)
        return bool(waiting.update(held_for=held_for, begun_at=None, sweep_at=sweep_at))

    def release(self, key: UUID) -> bool:
        """Let what is held be done, as if for the first time; False if it is not held."""
        return self._try_anew(self._rows(key).held())

    def retry(self, key: UUID) -> bool:
        """Let what was given up be tried again, as if for the first time; False if it was not."""
        return self._try_anew(self._rows(key).failed())

    def give_up(self, key: UUID, *, code: str, reason: str) -> None:
        """End the trying, or the holding, for a reason that stays."""
        self._rows(key).update(
            held_for="",
            failed_at=Now(),
            attempts=0,
            begun_at=None,
            error_code=code,
            last_error=reason,
        )

    def wake(self, server: str = MAIN) -> None:
        """Let a worker claim whatever is due on the server and has its turn."""
        if self.queue:
            where = () if server == MAIN else (server,)
            enqueue_by_name(WORK, self.name, *where, queue=self.queue)

    def wake_on_commit(self) -> None:
        """Do so for this thread's server when the transaction that we are in is committed."""
        transaction.on_commit(partial(self.wake, current_server()))

    def _rows(self, key: UUID) -> OutboxQuerySet:
        return OutboxEntry.objects.filter(tenant_id=required_tenant_id(), kind=self.name, key=key)

    def _try_anew(self, rows: OutboxQuerySet) -> bool:
        anew: dict[str, Any] = {"attempts": 0, "begun_at": None, "error_code": "", "last_error": ""}
        now = {"due_at": Now(), "sweep_at": Now(), "failed_at": None, "held_for": ""}
        if not rows.update(**anew, **now):
            return False
        self.wake_on_commit()
        return True

    def _backoff(self, attempt: int, error: Exception) -> timedelta:
        seconds = self.first_backoff * 2.0 ** (attempt - 1)
        seconds = max(seconds, getattr(error, "retry_after", None) or 0.0)
        return timedelta(seconds=min(seconds, self.longest_backoff))


def kind_of_owner(name: str) -> Kind:
    """A kind of work that only the owner's role may do, and that is tried until it is done."""
    return Kind(
        name=name,
        task="",
        queue="",
        most_attempts=lambda: sys.maxsize,
        first_backoff=10.0,
        longest_backoff=3600.0,
        of_suspended_too=True,
    )
