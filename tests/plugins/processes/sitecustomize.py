"""Measure the coverage of a process that a test starts: Python imports this file at its start.

`tests.plugins.coverage` puts this folder into PYTHONPATH. A killed process leaves no measurement.
"""

import atexit
import json
import os
import tempfile
from pathlib import Path

import slipcover

ROOT = Path(__file__).resolve().parents[3]

_meter = slipcover.Slipcover(branch=True, d_miss_threshold=2**31 - 1)


def write() -> None:
    """Write the measurement of this process into the folder that the tests merge."""
    coverage = _meter.get_coverage()
    coverage["files"] = {
        os.path.relpath(ROOT / name, ROOT): file for name, file in coverage["files"].items()
    }
    with tempfile.NamedTemporaryFile(
        "w", dir=os.environ["KONSTRUCT_COVERAGE"], suffix=".json", delete=False
    ) as file:
        json.dump(coverage, file)


if "KONSTRUCT_COVERAGE" in os.environ:
    sources = [str(ROOT / package) for package in ("konstruct", "memory", "tenants")]
    files = slipcover.FileMatcher(sources=sources, omit=["*/migrations/*"])
    slipcover.ImportManager(_meter, files).__enter__()
    atexit.register(write)
