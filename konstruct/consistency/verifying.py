"""Verifies and repairs a tenant's memory."""

import time
from collections.abc import Iterable
from itertools import groupby
from uuid import UUID

from konstruct.consistency import facts, indexing, jobs, metadata, names, replies, windows
from konstruct.consistency.records import Finding, Report
from tenants import transaction
from tenants.context import tenant_scope

CHECKS = (replies, jobs, indexing, windows, facts, metadata, names)
# Running work may look inconsistent for a short time: only findings of two runs are reported.
SECOND_RUN_SECONDS = 1.0
REPAIR_BATCH = 1000


def verify(tenant_id: UUID, name: str, *, repair: bool = False) -> Report:
    """Run all checks of a tenant, also while it is served.

    Args:
        tenant_id: the tenant.
        name: the name of the tenant in the report.
        repair: whether to repair the findings. `Report.repaired` has those that were repaired. Some
            repairs need the owner's role.

    Returns:
        The counts, and the findings of two consecutive runs.
    """
    with tenant_scope(tenant_id):
        findings = _findings()
        repaired: list[Finding] = []
        if findings and repair:
            _repair(findings)
            remaining = _findings()
            repaired = [finding for finding in findings if finding not in remaining]
            findings = remaining
        counts = {label: number for check in CHECKS for label, number in check.count().items()}
        return Report(name, counts, findings, repaired)


def _findings() -> list[Finding]:
    findings = _run_checks()
    if findings:
        time.sleep(SECOND_RUN_SECONDS)
        second_run = set(_run_checks())
        findings = [finding for finding in findings if finding in second_run]
    return findings


def _run_checks() -> list[Finding]:
    findings: list[Finding] = []
    for check in CHECKS:
        # Postgres keeps a cursor only in a transaction.
        with transaction.atomic():
            findings += check.check()
    return findings


def _repair(findings: Iterable[Finding]) -> None:
    repairs = {kind: repair for check in CHECKS for kind, repair in check.REPAIRS.items()}
    for kind, group in groupby(sorted(findings), key=lambda finding: finding.kind):
        if kind in repairs:
            of_kind = list(group)
            for start in range(0, len(of_kind), REPAIR_BATCH):
                repairs[kind](of_kind[start : start + REPAIR_BATCH])
