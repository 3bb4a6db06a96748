"""A temporary tenant for one benchmark, created and removed by the operators' commands."""

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import django

PROJECT = Path(__file__).resolve().parents[2]


def set_up() -> None:
    """Set up Django with the application's role for a benchmark."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
    # A line in the log for each prompt would hide the figures.
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    django.setup()


@contextlib.contextmanager
def throwaway_tenant() -> Iterator[UUID]:
    """Migrate, create a tenant, yield its id, and remove it in any case."""
    from konstruct.local import embedded
    from tenants.models import Tenant

    embedded.ensure()
    manage("migrate")
    slug = f"benchmark-{secrets.token_hex(4)}"
    manage("create_tenant", slug)
    try:
        yield Tenant.objects.get(slug=slug).id
    finally:
        manage("delete_tenant", slug, "--yes")


def manage(*arguments: str) -> None:
    """Run a command of manage.py, which chooses the role. Print the output only if it fails."""
    run = subprocess.run(
        [sys.executable, PROJECT / "manage.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        sys.exit(f"manage.py {' '.join(arguments)}: {run.stderr or run.stdout}")
