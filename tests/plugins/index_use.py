"""List the indexes of tenants' tables that no query of the tests reads: a pytest plugin.

    python -m pytest -p tests.plugins.index_use

Postgres counts the scans of each index. Unique indexes are left out, because they also enforce
uniqueness, which Postgres does not count. With tables as small as in most tests, Postgres may
prefer another index to the one that serves a million rows, so a listed index is only a candidate.
Processes started by tests have their own databases, which are not counted.
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
    """Read the counts before the database is dropped."""
    yield
    with django_db_blocker.unblock():
        connection.close()  # a backend reports its counts when it ends
        with connection.cursor() as cursor:
            cursor.execute(_SCANS)
            _scans.update(dict(cursor.fetchall()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts of a pytest-xdist worker."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["index_use"] = json.dumps(_scans)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Receive them; a killed worker sends none."""
    if output := getattr(node, "workeroutput", None):
        # Counter.update() keeps indexes with a count of zero.
        _scans.update(json.loads(output["index_use"]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the indexes without reads."""
    terminalreporter.section("indexes that no query has read")
    for name in sorted(name for name, scans in _scans.items() if not scans):
        terminalreporter.write_line(name)
