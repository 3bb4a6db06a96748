"""Jobs of the owner's worker, which need the owner's role. Tenants take turns."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.db.models import Model

from konstruct.orchestrator.identities.channel_identities import HISTORY_MERGES
from konstruct.orchestrator.identities.erasure_requests import ERASURES, MESSAGE_ERASURES
from konstruct.orchestrator.models import HistoryMerge
from konstruct.privacy import merge as history_merge
from konstruct.privacy.erasure import erasing, messages
from konstruct.privacy.erasure.erasing import ErasureInProgress
from konstruct.privacy.erasure.messages import apply_rules
from tenants import jobs
from tenants.audit.models import RETENTION, ErasureRequest, MessageErasure, RetentionRule
from tenants.audit.tombstones import TOMBSTONES, write_tombstones
from tenants.context import connection
from tenants.exceptions import reason_of
from tenants.outages import ServerDown
from tenants.servers import servers

logger = logging.getLogger(__name__)

# How often a merge is repeated for late messages under the old id, until it is finished.
MERGE_INTERVAL = timedelta(seconds=10)
RETENTION_INTERVAL = timedelta(hours=1)
# How long an erasure waits that another process, such as a command, carries out.
IN_PROGRESS_INTERVAL = timedelta(seconds=5)


@dataclass(frozen=True)
class OwnerJob:
    """A kind of job in the owner's worker, with its function."""

    kind: jobs.JobKind
    carry_out: Callable[[UUID], timedelta | None]
    """Runs the job with this key, in its tenant. Returns None if it is finished, or else the time
    until it runs again."""
    requests: type[Model] | None = None
    """The model of the requests, with `last_error`. The key of a job is the id of a request."""

    def run_due(self) -> int:
        """Run all due jobs of all tenants, by turns; return the number of finished ones.

        A server that is down is skipped.
        """
        finished: list[UUID] = []
        for server in servers():
            try:
                jobs.work(self.kind, server, do=partial(self._run, finished))
            except ServerDown as error:
                logger.warning("The %s of its tenants wait: %s", self.kind.name, error)
        return len(finished)

    def _run(self, finished: list[UUID], lease: jobs.Lease) -> None:
        try:
            self.kind.run(
                lease, partial(self._carry_out, finished), on_failure=partial(self._fail, lease.key)
            )
        except Exception:  # the next job is done
            logger.exception("The %s of tenant %s failed", self.kind.name, lease.tenant_id)
            connection.close()
            lease.abandon()

    def _carry_out(self, finished: list[UUID], lease: jobs.Lease) -> None:
        try:
            pause = self.carry_out(lease.key)
        except ErasureInProgress:
            pause = IN_PROGRESS_INTERVAL  # another process runs it
        if pause is not None:
            self.kind.postpone(lease.key, pause)
        elif self.kind.finish(lease.key):
            finished.append(lease.key)

    def _fail(self, key: UUID, error: Exception) -> bool:
        if self.requests is not None:
            rows = self.requests._default_manager.filter(pk=key)
            rows.update(last_error=reason_of(error))
        return self.kind.record_failure(key, error)


def _erase(key: UUID) -> None:
    request = ErasureRequest.objects.filter(pk=key).first()
    if request is not None:
        erasing.carry_out(request)


def _erase_messages(key: UUID) -> None:
    request = MessageErasure.objects.filter(pk=key).first()
    if request is not None:
        messages.carry_out(request)


def _merge(key: UUID) -> timedelta | None:
    merge = HistoryMerge.objects.open().filter(pk=key).first()
    return None if merge is None or history_merge.carry_out(merge) else MERGE_INTERVAL


def _retain(key: UUID) -> timedelta | None:
    apply_rules()
    return RETENTION_INTERVAL if RetentionRule.objects.exists() else None


ERASE: Final = OwnerJob(ERASURES, _erase, ErasureRequest)
ERASE_MESSAGES: Final = OwnerJob(MESSAGE_ERASURES, _erase_messages, MessageErasure)
MERGE: Final = OwnerJob(HISTORY_MERGES, _merge, HistoryMerge)


RETAIN: Final = OwnerJob(RETENTION, _retain)
WRITE_TOMBSTONES: Final = OwnerJob(TOMBSTONES, lambda _: write_tombstones())
JOBS: Final = (MERGE, ERASE, ERASE_MESSAGES, RETAIN, WRITE_TOMBSTONES)
