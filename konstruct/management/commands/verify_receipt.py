"""manage.py verify_receipt: check whether a downloaded receipt of an erasure was changed."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from konstruct.orchestrator.identities.erasure_requests import MAX_RECEIPT_BYTES, verify_receipt
from tenants.management.base import KonstructCommand, UsageError


class Command(KonstructCommand):
    """Compares the digest of a receipt with its content, without a database."""

    help = (
        "Checks that a downloaded receipt of an erasure is from this deployment and "
        "unchanged. Exit status 1 if not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="The receipt as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with Path(options["file"]).open("rb") as file:
                content = file.read(MAX_RECEIPT_BYTES + 1)
        except OSError as error:
            raise UsageError(f"{options['file']} cannot be read: {error.strerror}") from error
        found = verify_receipt(content)
        self.stdout.write(
            f"unchanged: erasure {found['erasure']} of tenant {found['tenant']},"
            f" done at {found['done_at']}"
        )
