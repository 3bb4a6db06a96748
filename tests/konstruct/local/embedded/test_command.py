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


@pytest.mark.parametrize("arguments", [(), ("run", "mysql")])
def test_a_wrong_call_of_the_module_prints_the_usage(arguments: tuple[str, ...]) -> None:
    status, printed, error = embedded_command(*arguments)
    assert (status, printed) == (2, "")
    assert error.startswith("usage: python -m konstruct.local.embedded stop\n")


def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    status, _, error = embedded_command("tool", "pg_magic")
    assert status == 1
    assert error.startswith("konstruct.local.embedded: there is no pg_magic; there are clusterdb, ")
