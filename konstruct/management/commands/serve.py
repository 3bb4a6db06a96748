"""manage.py serve: migrate, then run web, worker and beat on this machine until Ctrl-C."""

import os
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from konstruct.local.serving import serving
from tenants.management.base import KonstructCommand


def port(text: str) -> int:
    """Read a TCP port."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(f"{text!r} is not a port: a number from 1 to 65535")
    return int(text)


class Command(KonstructCommand):
    """Serves, with the embedded Postgres and Valkey if no URL is set."""

    help = "Migrates, then runs web, worker and beat until Ctrl-C, which ends all processes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=port, default=os.environ.get("PORT", "8000"), help="(default: 8000)"
        )
        parser.add_argument(
            "--host",
            default=os.environ.get("KONSTRUCT_HOST", "127.0.0.1"),
            help="Address to listen at; 0.0.0.0 is reachable from other machines (default: "
            "127.0.0.1).",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with serving(
                host=options["host"],
                port=options["port"],
                write_line=self.stdout.write,
                shows_logs=True,
            ) as processes:
                processes.wait_ready()
                self.stdout.write(
                    f"\nhttp://localhost:{options['port']} serves: /admin/ for operators, "
                    "/api/docs/ for programs, SLUG.localhost for a tenant. Ctrl-C stops it.\n"
                )
                processes.wait()
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
