"""Counters of processes in files, and their settings."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from konstruct.settings.environment import address
from tenants.metrics import remove_dead_processes

# Greater than every process id of the kernel.
DEAD = 2**22 + 1


def test_the_levels_of_dead_processes_are_forgotten_and_their_counts_stay(
    settings: Any, tmp_path: Path
) -> None:
    settings.METRICS_DIR = tmp_path
    counts = {f"counter_{DEAD}.db", f"histogram_{DEAD}.db", f"counter_{os.getpid()}.db"}
    alive, own_file = f"gauge_livesum_{os.getppid()}.db", f"gauge_livesum_{os.getpid()}.db"
    for name in (*counts, alive, own_file, f"gauge_livesum_{DEAD}.db"):
        (tmp_path / name).touch()
    remove_dead_processes()
    assert set(os.listdir(tmp_path)) == {*counts, alive, own_file}
    remove_dead_processes(include_own_pid=True)
    assert set(os.listdir(tmp_path)) == {*counts, alive}


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", None), ("127.0.0.1:9464", ("127.0.0.1", 9464)), ("[::1]:9464", ("::1", 9464))],
)
def test_an_address_is_a_host_and_a_port(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: tuple[str, int] | None
) -> None:
    monkeypatch.setenv("METRICS_ADDRESS", value)
    assert address("METRICS_ADDRESS") == expected


@pytest.mark.parametrize("value", ["9464", ":9464", "localhost", "localhost:0", "a:65536", "a:b"])
def test_invalid_address_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("METRICS_ADDRESS", value)
    with pytest.raises(ImproperlyConfigured, match=r"is not like 127\.0\.0\.1:9464"):
        address("METRICS_ADDRESS")
