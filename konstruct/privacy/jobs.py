"""Work of tenants that only the owner's role may do, claimed from the outbox tenant by tenant."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import DatabaseError
from structlog.contextvars import bound_contextvars

from konstruct.orchestrator.identities.channel_identities import HISTORY_MERGES
from konstruct.orchestrator.identities.erasure_requests import ERASURES, MESSAGE_ERASURES
from konstruct.orchestrator.models import HistoryMerge
from konstruct.privacy import erasure
from konstruct.privacy import merge as history_merge
from konstruct.privacy.erasure import messages
from konstruct.privacy.erasure.erasing import ErasedElsewhere
from konstruct.privacy.retention import apply_rules
from tenants import outbox
from tenants.audit.models import (
    OF_THE_TENANT,
    RETENTION,
    ErasureRequest,
    MessageErasure,
    RetentionRule,
)
from tenants.context import connection, tenant_scope
from tenants.exceptions import reason_of
from tenants.models import Tenant
from tenants.postgresql.exceptions import ServerDown

logger = logging.getLogger(__name__)

# A move looks for what comes late under the old id so often, until it is done.
LOOK_AGAIN = timedelta(seconds=10)
RETAIN_EVERY = timedelta(hours=1)


@dataclass(frozen=True)
class Job:
    """One kind of the owner's work."""

    kind: outbox.Kind
    carry_out: Callable[[UUID], timedelta | None]
    """Does what the key names, in its tenant; the pause until it is done again, None if never."""
    note_failure: Callable[[UUID, Exception], object]
    """Says on the row that people see why it is not done yet."""

    def do_all(self) -> int:
        """Do what is due, of all tenants by turns; how many entries that were."""
        return sum(map(self._do, outbox.claim_of_all_servers(self.kind)))

    def _do(self, claimed: outbox.Claim) -> bool:
        key = claimed.key
        try:
            with bound_contextvars(task_name=self.kind.name), tenant_scope(claimed.tenant_id):
                try:
                    pause = self.carry_out(key)
                except ErasedElsewhere:
                    return False  # it is looked at again, later and later
                except Exception as error:
                    if not connection.is_usable():
                        raise
                    self.kind.record_failure(key, error)
                    self.note_failure(key, error)
                    return False
                if pause is None:
                    self.kind.finish(key)
                else:
                    self.kind.put_off(key, pause)
                return pause is None
        except Exception:
            logger.exception("The %s of tenant %s failed", self.kind.name, claimed.tenant_id)
            connection.close()
            return False


def _erase(key: UUID) -> None:
    request = ErasureRequest.objects.filter(pk=key).first()
    if request is not None:
        erasure.carry_out(request)


def _erase_messages(key: UUID) -> None:
    request = MessageErasure.objects.filter(pk=key).first()
    if request is not None:
        messages.carry_out(request)


def _merge(key: UUID) -> timedelta | None:
    merge = HistoryMerge.objects.open().filter(pk=key).first()
    return None if merge is None or history_merge.carry_out(merge) else LOOK_AGAIN


def _retain(key: UUID) -> timedelta | None:
    apply_rules()
    return RETAIN_EVERY if RetentionRule.objects.exists() else None


def _note_on_request(key: UUID, error: Exception) -> None:
    ErasureRequest.objects.filter(pk=key).update(last_error=reason_of(error))


def _note_on_messages(key: UUID, error: Exception) -> None:
    MessageErasure.objects.filter(pk=key).update(last_error=reason_of(error))


def _note_on_merge(key: UUID, error: Exception) -> None:
    HistoryMerge.objects.filter(pk=key).update(last_error=reason_of(error))


ERASE: Final = Job(ERASURES, _erase, _note_on_request)
ERASE_MESSAGES: Final = Job(MESSAGE_ERASURES, _erase_messages, _note_on_messages)
MERGE: Final = Job(HISTORY_MERGES, _merge, _note_on_merge)
RETAIN: Final = Job(RETENTION, _retain, lambda key, error: None)
JOBS: Final = (MERGE, ERASE, ERASE_MESSAGES, RETAIN)


def catch_up() -> None:
    """Let wait what processes of versions before the outbox ask for, which write no entries."""
    for tenant_id in list(Tenant.objects.provisioned().values_list("id", flat=True)):
        try:
            with tenant_scope(tenant_id):
                for request in ErasureRequest.objects.open():
                    ERASURES.put_if_missing(request.pk)
                for merge in HistoryMerge.objects.open():
                    HISTORY_MERGES.put_if_missing(merge.pk)
                if RetentionRule.objects.exists():
                    RETENTION.put_if_missing(OF_THE_TENANT)
        except DatabaseError as error:
            if not (isinstance(error, ServerDown) or connection.is_usable()):
                raise
            logger.warning("What waits in tenant %s is not known: %s", tenant_id, error)
