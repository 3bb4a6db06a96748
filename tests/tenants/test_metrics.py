"""Counters of processes in files, and their settings."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from konstruct.settings.environment import address
from tenants.metrics import AllocatedFile, remove_dead_processes

# Greater than every process id of the kernel.
DEAD = 2**22 + 1


def test_files_of_dead_processes_are_removed_and_their_counts_stay(
    settings: Any, tmp_path: Path
) -> None:
    settings.METRICS_DIR = tmp_path
    alive, own_file = f"gauge_livesum_{os.getppid()}.db", f"gauge_livesum_{os.getpid()}.db"
    kept = {alive, f"counter_{os.getpid()}.db", "counter_0.db", "lock"}
    for name in (*kept, own_file, f"gauge_livesum_{DEAD}.db", f"histogram_{DEAD + 2}.db"):
        (tmp_path / name).touch()
    for pid, count in ((DEAD, 2.0), (DEAD + 1, 3.0)):
        file = AllocatedFile(str(tmp_path / f"counter_{pid}.db"))
        file.write_value("sent", count, 0.0)
        file.close()
    remove_dead_processes()
    assert set(os.listdir(tmp_path)) == {*kept, own_file}
    remove_dead_processes(include_own_pid=True)
    assert set(os.listdir(tmp_path)) == kept
    values = AllocatedFile.read_all_values_from_file(str(tmp_path / "counter_0.db"))
    assert [value[:2] for value in values] == [("sent", 5.0)]


_ON_A_FULL_DISK = """
mount -t tmpfs -o size=64k tmpfs "$1" && dd if=/dev/zero of="$1/full" 2>/dev/null
exec "$2" -c 'import django; django.setup(); from konstruct.worker import metrics; print("counts")'
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")
def test_process_with_metrics_on_a_full_disk_counts_in_its_memory(
    process_environment: dict[str, str], tmp_path: Path
) -> None:
    command = ["unshare", "--mount", "sh", "-c", _ON_A_FULL_DISK, "sh", tmp_path, sys.executable]
    environment = {**process_environment, "METRICS_DIR": str(tmp_path)}
    ran = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, b"counts\n"), ran.stderr


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
