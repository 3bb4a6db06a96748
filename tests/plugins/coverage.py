"""Which lines and branches the tests run through: a plugin of pytest, in each of its processes.

    python -m pytest -p tests.plugins.coverage

SlipCover puts its probes into our modules as they are imported. A tracer, which is what coverage.py
has for Python 3.11, makes what it measures take half as long again. Processes that the tests start
are not measured.
"""

import io
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import slipcover

PACKAGES = ["konstruct", "memory", "tenants"]
LEFT_OUT = ["*/migrations/*"]
# Probes stay: to take them out again, functions are looked for in all modules while tests run.
NEVER = 2**31 - 1

_is_worker = "PYTEST_XDIST_WORKER" in os.environ
_meter = slipcover.Slipcover(
    branch=True,
    d_miss_threshold=NEVER,
    source=None if _is_worker else PACKAGES,  # files that nobody imports count too, once
    omit=LEFT_OUT,
)
_of_workers: list[dict[str, Any]] = []


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Begin before pytest-django imports our packages, in each process that runs tests."""
    if _is_worker or not early_config.known_args_namespace.numprocesses:
        files = slipcover.FileMatcher(sources=PACKAGES, omit=LEFT_OUT)
        slipcover.ImportManager(_meter, files).__enter__()
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what a worker of pytest-xdist has measured."""
    if _is_worker:
        session.config.workeroutput["coverage"] = json.dumps(_meter.get_coverage())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take it; a worker that was killed has measured nothing."""
    if output := getattr(node, "workeroutput", None):
        _of_workers.append(json.loads(output["coverage"]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what nothing has run through, file by file, and how much that is."""
    coverage = _meter.get_coverage()
    for measured in _of_workers:
        slipcover.merge_coverage(coverage, measured)
    table = io.StringIO()
    slipcover.print_coverage(coverage, outfile=table, missing_width=40, skip_covered=True)
    terminalreporter.section("coverage")
    terminalreporter.write(table.getvalue())
    percent = coverage["summary"]["percent_covered"]
    terminalreporter.write_line(f"\nCoverage of lines and branches: {percent:.1f} %")
