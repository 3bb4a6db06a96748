"""Measure line and branch coverage: a pytest plugin, active in each of its processes.

    python -m pytest -p tests.plugins.coverage

SlipCover puts its probes into the project's modules at import. The tracer of coverage.py on Python
3.11 would take half as long again. Processes that tests start measure themselves
(`processes/sitecustomize.py`) unless they are killed.
"""

import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import slipcover

PACKAGES = ["konstruct", "memory", "tenants"]
LEFT_OUT = ["*/migrations/*"]
# Probes stay: to remove them, SlipCover searches all modules for functions while tests run.
NEVER = 2**31 - 1

_is_worker = "PYTEST_XDIST_WORKER" in os.environ
_meter = slipcover.Slipcover(
    branch=True,
    d_miss_threshold=NEVER,
    source=None if _is_worker else PACKAGES,  # files without an import also count, once
    omit=LEFT_OUT,
)
_of_workers: list[dict[str, Any]] = []
if not _is_worker:
    os.environ["KONSTRUCT_COVERAGE"] = tempfile.mkdtemp(prefix="coverage")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Start before pytest-django imports the packages, in each process that runs tests."""
    if _is_worker or not early_config.known_args_namespace.numprocesses:
        files = slipcover.FileMatcher(sources=PACKAGES, omit=LEFT_OUT)
        slipcover.ImportManager(_meter, files).__enter__()
        os.environ["PYTHONPATH"] = str(Path(__file__).parent / "processes")
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the measurement of a pytest-xdist worker."""
    if _is_worker:
        session.config.workeroutput["coverage"] = json.dumps(_meter.get_coverage())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Receive it; a killed worker sends none."""
    if output := getattr(node, "workeroutput", None):
        _of_workers.append(json.loads(output["coverage"]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the lines that are not covered, file by file, and the total."""
    coverage = _meter.get_coverage()
    for measured in _of_workers:
        slipcover.merge_coverage(coverage, measured)
    for file in Path(os.environ["KONSTRUCT_COVERAGE"]).glob("*.json"):
        slipcover.merge_coverage(coverage, json.loads(file.read_text()))
    table = io.StringIO()
    slipcover.print_coverage(coverage, outfile=table, missing_width=40, skip_covered=True)
    terminalreporter.section("coverage")
    terminalreporter.write(table.getvalue())
    percent = coverage["summary"]["percent_covered"]
    terminalreporter.write_line(f"\nCoverage of lines and branches: {percent:.1f} %")
