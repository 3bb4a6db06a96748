"""manage.py import_history: import the history of another system from its export."""

from argparse import ArgumentParser
from dataclasses import fields
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError

from konstruct.orchestrator.history_import import chats, files, importing, lines
from konstruct.orchestrator.history_import.assistants import COLUMNS
from memory.models import PendingEmbedding
from tenants.audit import access_log, models
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, tenant_of

SHOWN = 50


class Command(KonstructCommand):
    """Imports a file or folder. Running it again adds what is missing."""

    help = (
        "Imports conversations, or facts of memories, from the export of another system. What is"
        " invalid, or of an author that is not assigned, is reported and left out. Embeddings"
        " follow in the background. See docs/import.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tenant", required=True, metavar="SLUG", help="Tenant of the history."
        )
        parser.add_argument(
            "--format",
            default="",
            choices=[*importing.FORMATS],
            help="Default: recognized from the content.",
        )
        parser.add_argument(
            "--date-order", default="", choices=[*chats.ORDERS], help="Order of ambiguous dates."
        )
        # The destinations are fields of importing.Options.
        for option, field, metavar, text in (
            ("--agent", "agent", "NAME_OR_ID", "Agent of messages."),
            ("--user", "user_id", "ID", "User of messages whose user is not named."),
            ("--thread", "thread_id", "ID", "Thread of messages without a conversation."),
            ("--time-zone", "time_zone", "ZONE", "Zone of times without one."),
        ):
            parser.add_argument(option, dest=field, default="", metavar=metavar, help=text)
        for option, field, metavar, text in (
            ("--person", "people", "NAME=ID", "User id of an author, by name or id in the export."),
            ("--agent-name", "agent_names", "NAME", "An author of the export who is the agent."),
            ("--column", "columns", "KEY=COLUMN", f"A column of CSV, for {', '.join(COLUMNS)}."),
        ):
            text = f"{text} Can be repeated."
            parser.add_argument(
                option, dest=field, action="append", default=[], metavar=metavar, help=text
            )
        parser.add_argument("--dry-run", action="store_true", help="Only show what would happen.")
        parser.add_argument(
            "file", metavar="FILE", type=Path, help="A file, zip archive or folder."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        path: Path = options["file"]
        chosen = {field.name: options[field.name] for field in fields(importing.Options)}
        chosen |= {name: importing.pairs_of(chosen[name]) for name in ("people", "columns")}

        def say(problem: files.Problem) -> None:
            self.stderr.write(f"{path}:{problem.place}: {problem.reason}")

        def record(counts: dict[str, int]) -> None:
            access_log.record_command(self.name, models.Action.IMPORT, "messages", counts=counts)

        with files.Source.open(path, path.name) as source, tenant_scope(tenant.id):
            report = importing.import_source(
                source,
                importing.Options(**chosen),
                tenant_id=tenant.id,
                import_id=uuid4(),
                is_dry_run=options["dry_run"],
                record=record,
                say=say,
            )
            pending = PendingEmbedding.objects.count()
        self._show(report)
        if options["dry_run"]:
            self.stdout.write("Nothing was imported: run it again without --dry-run")
            return
        self.stdout.write(f"{pending} messages wait for their embeddings, which workers store")
        if invalid := report.counts[lines.ImportStatus.INVALID]:
            raise CommandError(
                f"{invalid} lines were not imported, see above. Correct them and run this again: "
                "imported lines do not change."
            )

    def _show(self, report: importing.Report) -> None:
        for thread_id, thread in [*report.threads.items()][:SHOWN]:
            self.stdout.write(
                f"  {thread_id}: {thread['messages']} messages from"
                f" {thread['first']:%Y-%m-%d %H:%M} to {thread['last']:%Y-%m-%d %H:%M} UTC"
            )
        if len(report.threads) > SHOWN:
            self.stdout.write(f"  and {len(report.threads) - SHOWN} more conversations")
        for name, author in report.authors.items():
            assigned = author["assigned"] or "left out"
            self.stdout.write(f"  {name}: {author['messages']} texts, {assigned}")
        counts = ", ".join(f"{report.counts[status]} {status}" for status in lines.ImportStatus)
        self.stdout.write(
            f"{report.format}: {counts}, {report.counts['left_out']} left out,"
            f" {len(report.threads)} conversations"
        )
