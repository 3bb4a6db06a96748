#!/usr/bin/env python
"""Django's command line, as the database role that the command needs."""

import io
import os
import sys


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
    try:
        from django.core.management import execute_from_command_line

        from tenants.roles import OWNER_COMMANDS
    except ImportError as error:
        sys.exit(f"manage.py: {error}. Run `make setup`, then use .venv/bin/python.")
    if sys.argv[1:2] and sys.argv[1] in OWNER_COMMANDS:
        os.environ.setdefault("KONSTRUCT_DB_ROLE", "owner")
    if sys.argv[1:2] == ["worker"] and not os.environ.get("DATABASE_POOL_SIZE"):
        os.environ["DATABASE_POOL_SIZE"] = "10"  # hundreds of threads, most of which wait
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # who reads a log does not wait for its end
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
