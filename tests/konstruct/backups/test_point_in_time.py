"""Recovery of Postgres to a moment: later erasures are repeated before it serves."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from konstruct.local.embedded.postgres import binaries
from tenants.locking import poll
from tests.konstruct.backups.deployment import Deployment, deployment

pytestmark = pytest.mark.data


@pytest.fixture
def archive() -> Iterator[Path]:
    """A directory that Postgres' own user can write."""
    path = Path(tempfile.mkdtemp(prefix="konstruct-archive-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def test_a_cluster_is_recovered_to_a_moment(archive: Path, tmp_path: Path) -> None:
    journal = tmp_path / "erasures.jsonl"
    journal.touch()
    with deployment("recovered", journal) as made:
        _let_it_archive(made, archive)
        made.talk("Zyxomma", "one", "two")
        base = _base_backup(made, tmp_path)
        made.talk("Second", "one")
        ((moment,),) = made.ask("SELECT now()::text")
        time.sleep(0.1)
        made.erase("one")
        made.talk("Third", "one", "two")
        made.ask("SELECT pg_switch_wal()")
        made.stop()
        _recover(made, base, archive, str(moment))
        assert "Zyxomma anna one" in made.dumped()
        output = made.manage("restore", "--recovered-to", moment, "--yes")
        assert "1 erasures repeated" in output
        left = made.dumped()
        for text in ("Zyxomma anna one", "Second anna one", "Third"):
            assert text not in left
        for kept in ("Zyxomma ben one", "Second ben one", "Zyxomma anna two"):
            assert kept in left
        assert made.states() == {"one": "active", "two": "active"}
        made.manage("verify_memory")


def _let_it_archive(made: Deployment, archive: Path) -> None:
    made.stop()
    with (made.home / "postgres" / "postgresql.auto.conf").open("a") as configured:
        configured.write(f"archive_mode = on\narchive_command = 'cp %p {archive}/%f'\n")
    made.start()


def _base_backup(made: Deployment, tmp_path: Path) -> Path:
    base, access_file = tmp_path / "base", made.home / "postgres" / "pg_hba.conf"
    before = access_file.read_text()
    with access_file.open("a") as file:
        file.write("local replication all scram-sha-256\n")
    made.ask("SELECT pg_reload_conf()")
    command = [binaries() / "pg_basebackup", "--pgdata", base, "--wal-method=stream"]
    subprocess.run([*command, "--checkpoint=fast", "--dbname", made.url()], check=True)
    (base / "pg_hba.conf").write_text(before)
    return base


def _recover(made: Deployment, base: Path, archive: Path, moment: str) -> None:
    """Follow docs/backup.md: Postgres' own recovery."""
    data = made.home / "postgres"
    owner, mode = data.stat(), data.stat().st_mode
    shutil.rmtree(data)
    subprocess.run(["cp", "-a", base, data], check=True)  # noqa: S607
    with (data / "postgresql.auto.conf").open("a") as configured:
        configured.write(
            f"restore_command = 'cp {archive}/%f %p'\nrecovery_target_time = '{moment}'\n"
            "recovery_target_action = 'promote'\narchive_mode = off\n"
        )
    (data / "recovery.signal").touch()
    for path in (data, *data.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    data.chmod(mode)
    made.start()
    assert poll(lambda: made.ask("SELECT pg_is_in_recovery()") == [(False,)], seconds=60)
