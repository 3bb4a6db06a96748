"""The module of the embedded services as a command."""

from pathlib import Path

import pytest

from konstruct.local import embedded
from tests.konstruct.local.embedded.services import embedded_command, sql

pytestmark = pytest.mark.long


def test_tool_runs_as_the_superuser_for_backups(home: Path) -> None:
    assert embedded_command("tool", "psql", "-XAtc", "SELECT current_user, current_database()") == (
        0,
        "postgres|konstruct\n",
        "",
    )
    embedded.ensure_postgres()
    sql("CREATE TABLE IF NOT EXISTS forced (n int)")
    sql("ALTER TABLE forced ENABLE ROW LEVEL SECURITY")
    sql("ALTER TABLE forced FORCE ROW LEVEL SECURITY")
    status, dump, _ = embedded_command("tool", "pg_dump", "--table", "forced")
    assert status == 0
    assert "COPY public.forced" in dump
