"""manage.py import_transcript: import history from a file of JSON lines."""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from konstruct.orchestrator import history_import
from konstruct.strict_json import NotStrictJSON, read_json
from memory.conversations.importing import DerivedIds
from memory.models import PendingEmbedding
from tenants import transaction
from tenants.audit.access_log import record_command
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, UsageError, tenant_of

BATCH = 500


class Command(KonstructCommand):
    """Imports a transcript. Running it again writes no message twice."""

    help = (
        "Imports history into a tenant from a file of JSON lines, each an object with "
        f"{history_import.LINE_FORMAT}. Lines that cannot be taken are reported and the others "
        "imported; embeddings follow in the background. Lines without an external_id are known "
        "again by what they say, and by the name of the file."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tenant", required=True, metavar="SLUG", help="Tenant of the history."
        )
        parser.add_argument(
            "--agent", metavar="NAME_OR_ID", help="Agent of lines without an agent."
        )
        parser.add_argument("--user", metavar="ID", help="User of lines without a user_id.")
        parser.add_argument(
            "--thread",
            metavar="ID",
            help="Thread of lines without a thread_id (default: the user's id).",
        )
        parser.add_argument("file", metavar="FILE", type=Path, help="JSON lines, UTF-8.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        path: Path = options["file"]
        counts: Counter[history_import.ImportStatus] = Counter()
        names = {"agent": "agent", "user_id": "user", "thread_id": "thread"}
        defaults = {name: options[option] for name, option in names.items()}
        ids, seen = DerivedIds(f"file {path.name}"), dict[str, str]()
        try:
            with path.open("rb") as file, tenant_scope(tenant.id):
                lines = _numbered_lines(file)
                while batch := list(islice(lines, BATCH)):
                    with transaction.atomic():
                        results = history_import.import_history(
                            [line for _, line in batch],
                            tenant_id=tenant.id,
                            defaults=defaults,
                            ids=ids,
                            seen=seen,
                        )
                        came: dict[str, Any] = Counter(result.status.value for result in results)
                        record_command(self.name, Action.IMPORT, "messages", counts=dict(came))
                    for (number, _), result in zip(batch, results, strict=True):
                        counts[result.status] += 1
                        if result.error:
                            self.stderr.write(f"{path}:{number}: {result.error}")
                    summary = ", ".join(
                        f"{counts[outcome]} {outcome}" for outcome in history_import.ImportStatus
                    )
                    self.stdout.write(f"{counts.total()} lines read, {summary}")
                pending = PendingEmbedding.objects.count()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from error
        if not counts:
            raise UsageError(f"{path} has no lines")
        self.stdout.write(f"{pending} messages wait for their embeddings, which workers store")
        if invalid := counts[history_import.ImportStatus.INVALID]:
            raise CommandError(
                f"{invalid} lines were not imported, see above. Correct them and run this again: "
                "imported lines do not change."
            )


def _numbered_lines(file: Any) -> Iterator[tuple[int, Any]]:
    """Yield the lines that are not blank with their numbers; invalid JSON as None."""
    for number, raw in enumerate(file, start=1):
        if raw.strip():
            try:
                yield number, read_json(raw)
            except NotStrictJSON:
                yield number, None
