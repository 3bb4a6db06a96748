"""A short run of the fault harness. benchmarks/deployment/survival.py has longer ones."""

from pathlib import Path

import pytest

from tests.survival import faults, harness

pytestmark = pytest.mark.data

# Each process and each store dies once. tests/end_to_end kills workers and their children.
SHORT = [
    faults.poison_outbox,
    faults.lose_valkey,
    faults.stall_llm,
    faults.crash_postgres,
    faults.kill_web,
    faults.kill_beat,
    faults.cut_connections,
]


def test_no_message_is_lost_duplicated_or_in_another_tenant(tmp_path: Path) -> None:
    report = harness.run(tmp_path / "home", seed=20261121, faults=SHORT, pause=0.8, messages=7)
    assert (report.lost, report.duplicated, report.crossed) == (0, 0, 0), str(report)
    assert report.faults.total() == len(SHORT)
    assert report.given_up in range(1 + report.accepted // harness.POISON_EVERY)
    assert report.accepted == report.answered + report.given_up == 42
