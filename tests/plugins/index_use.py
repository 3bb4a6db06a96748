"""Which indexes of tenants' tables no query of the tests reads: a plugin of pytest.

    python -m pytest -p tests.plugins.index_use

Postgres counts the scans of each index. Unique indexes are left out: they also keep rows apart,
which Postgres does not count. Where tables are as small as in most tests, it may prefer another
index to the one that serves a million rows, so a name that is printed is worth a look, no more.
Processes that the tests start have databases of their own, and are not counted.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

_SCANS = """
    SELECT relname || ' ' || indexrelname, sum(idx_scan)::int
    FROM pg_stat_user_indexes AS used JOIN pg_index AS index USING (indexrelid)
    WHERE schemaname LIKE 't\\_%' AND NOT index.indisunique
    GROUP BY 1
"""

_scans: Counter[str] = Counter()


@pytest.fixture(scope="session", autouse=True)
def count_scans(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Read the counts before the database is gone."""
    yield
    with django_db_blocker.unblock():
        connection.close()  # what it has counted is told when it ends
        with connection.cursor() as cursor:
            cursor.execute(_SCANS)
            _scans.update(dict(cursor.fetchall()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what a worker of pytest-xdist has counted."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["index_use"] = json.dumps(_scans)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take it; a worker that was killed has counted nothing."""
    if output := getattr(node, "workeroutput", None):
        # Counter.update() keeps those that were never read.
        _scans.update(json.loads(output["index_use"]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the indexes that nothing has read."""
    terminalreporter.section("indexes that no query has read")
    for name in sorted(name for name, scans in _scans.items() if not scans):
        terminalreporter.write_line(name)
