"""manage.py verify_memory: check that every accepted message is stored, indexed and answered."""

import json
from argparse import ArgumentParser
from collections import Counter
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from konstruct.consistency import Finding, Report, verify
from memory import indexing, models
from memory.embedding.embedder import model_version
from tenants import context
from tenants.audit import access_log, models as audit
from tenants.management.base import KonstructCommand, tenant_of
from tenants.models import Tenant

SHOWN = 10


class Command(KonstructCommand):
    """Verifies each tenant, also while it is served."""

    help = (
        "Verifies that accepted = answered + given up + held + waiting, that every waiting row "
        "has its job, that every message is embedded or queued for it, and that extracted facts "
        "quote their messages. Exit status 1 if there are findings."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", metavar="SLUG", help="One tenant (default: all).")
        parser.add_argument(
            "--repair",
            action="store_true",
            help="Repair findings if possible, and print the others.",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenants = (
            [tenant_of(options["tenant"])]
            if options["tenant"]
            else Tenant.objects.provisioned().order_by("slug")
        )
        reports = []
        for tenant in tenants:
            if options["repair"]:
                with context.tenant_scope(tenant.id):
                    # Before it begins: each repair has its own transaction.
                    access_log.record_command(self.name, audit.Action.EDIT, "memory", repair=True)
            report = verify(tenant.id, tenant.slug, repair=options["repair"])
            reports.append(report)
            if not options["json"]:
                self._show(report)
                # What `reembed` has left to do.
                version = model_version()
                with context.tenant_scope(tenant.id):
                    messages = indexing.without_vectors(version).count()
                    facts = models.MemoryEntry.objects.exclude(embedding_model=version).count()
                if messages or facts:
                    self.stdout.write(
                        f"  without a vector of {version}: {messages} messages, {facts} facts: run"
                        " reembed"
                    )
        if options["json"]:
            self.stdout.write(json.dumps([*map(asdict, reports)], indent=2))
        if wrong := sum(len(report.findings) for report in reports):
            raise CommandError(
                f"{wrong} findings" + ("" if options["repair"] else ": see --repair")
            )

    def _show(self, report: Report) -> None:
        counts = report.counts
        self.stdout.write(
            f"{report.tenant}: {counts['accepted']} accepted = {counts['answered']} answered +"
            f" {counts['failed']} given up + {counts['held']} held + {counts['waiting']} waiting;"
            f" {counts['to be embedded']} messages = {counts['embedded']} embedded +"
            f" {counts['pending']} pending; {counts['facts']} facts"
        )
        self._list("repaired", report.repaired)
        self._list("wrong", report.findings)

    def _list(self, heading: str, findings: list[Finding]) -> None:
        for kind, number in Counter(finding.kind for finding in findings).items():
            self.stdout.write(f"  {heading}: {number} × {kind}")
            for finding in [item for item in findings if item.kind == kind][:SHOWN]:
                self.stdout.write(f"    {finding.subject}")
