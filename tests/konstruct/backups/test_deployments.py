"""Restoring all tenants of a deployment into another one, including killed commands."""

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from konstruct.local.services import binaries
from tenants.postgres_tools import poll
from tests.konstruct.backups.deployment import Deployment, deployment

pytestmark = pytest.mark.data


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "erasures.jsonl"
    path.touch()
    return path


@pytest.fixture
def lost(journal: Path) -> Iterator[Deployment]:
    """The deployment that is backed up."""
    with deployment("lost", journal) as made:
        yield made


def the_backup(directory: Path) -> Path:
    (found,) = directory.glob("konstruct-*Z")
    return found


@pytest.mark.parametrize("number", [5, pytest.param(50, marks=pytest.mark.long)])
def test_all_tenants_are_restored_into_an_empty_deployment(
    lost: Deployment, journal: Path, tmp_path: Path, number: int
) -> None:
    slugs = [f"tenant-{place:02}" for place in range(number)]  # none begins with another
    lost.talk("Zyxomma", *slugs)
    output = lost.manage("backup", tmp_path / "backups")
    assert f"{number} tenants" in output
    lost.erase(slugs[0])
    lost.manage("delete_tenant", slugs[1], "--yes")
    lost.talk("Later", slugs[2])
    lost.stop()
    made = the_backup(tmp_path / "backups")
    with deployment("new", journal) as new:
        assert "is whole" in new.manage("verify_backup", made)
        output = new.manage("restore", made, "--all", "--yes")
        assert f"{slugs[1]}: left out, because it was deleted" in output
        assert f"{slugs[0]} is as of" in output
        assert new.states() == {slug: "active" for slug in slugs if slug != slugs[1]}
        left = new.dumped()
        assert f"Zyxomma anna {slugs[0]}" not in left
        assert f"Zyxomma anna {slugs[1]}" not in left
        assert f"Zyxomma ben {slugs[0]}" in left
        assert f"Zyxomma anna {slugs[2]}" in left
        assert "Later" not in left
        new.manage("verify_memory")
        new.talk("Goes on", slugs[0])
        # A second run has nothing to do, and loses no row.
        output = new.manage("restore", made, "--all", "--yes")
        assert output.count("left out, because an earlier run restored it") == number - 1
        assert "Goes on" in new.dumped()
    lost.start()


@pytest.mark.parametrize(("kills", "number"), [(4, 2), pytest.param(40, 5, marks=pytest.mark.long)])
def test_killed_commands_leave_complete_backups_and_tenants(
    lost: Deployment, tmp_path: Path, kills: int, number: int
) -> None:
    slugs = [f"tenant-{place}" for place in range(number)]
    lost.talk("Zyxomma", *slugs, "other")
    chance = random.Random(1)
    directory = tmp_path / "backups"
    back_up = ("backup", directory, *(f"--tenant={slug}" for slug in slugs))
    whole_takes = _seconds(lost, *back_up)
    (made,) = directory.glob("konstruct-*Z")
    for _ in range(kills // 2):
        _kill(lost, chance.uniform(0.4, 1.0) * whole_takes, *back_up)
        for backup in directory.glob("konstruct-*Z"):
            lost.manage("verify_backup", backup)
        time.sleep(1)  # a name has a precision of a second
        newest = Path(lost.manage(*back_up).partition(":")[0])
        assert f"is whole: {number} tenants" in lost.manage("verify_backup", newest)
        assert list(directory.glob("*.unfinished")) == []
        assert poll(lambda: not _programs_of(lost), seconds=30)
    for slug in slugs:
        lost.erase(slug)
    of_other = lost.ask("SELECT * FROM tenants_tenant WHERE slug = 'other'"), _rows(lost, "other")
    whole_takes = _seconds(lost, "restore", made, "--all", "--yes")
    for kill in range(kills // 2):
        which = ["--all", "--again"] if kill % 2 else ["--tenant", slugs[0]]
        _kill(lost, chance.uniform(0.3, 1.0) * whole_takes, "restore", made, *which, "--yes")
        served = [slug for slug, state in lost.states().items() if state == "active"]
        contents = {slug: {content for _, content, _ in _rows(lost, slug)} for slug in served}
        assert not [slug for slug in slugs if f"Zyxomma anna {slug}" in contents.get(slug, ())]
        lost.manage("restore", made, "--all", "--yes")
        assert set(lost.states().values()) == {"active"}
        left = lost.dumped()
        for slug in slugs:
            assert f"Zyxomma anna {slug}" not in left
            assert f"Zyxomma ben {slug}" in left
        lost.manage("verify_memory")
        assert poll(lambda: not _programs_of(lost), seconds=30)
        assert of_other == (
            lost.ask("SELECT * FROM tenants_tenant WHERE slug = 'other'"),
            _rows(lost, "other"),
        )


def _kill(of: Deployment, after: float, *arguments: object) -> None:
    """Start a command, and kill it after some seconds."""
    killed = of.begin(*arguments)
    time.sleep(after)
    killed.kill()
    killed.communicate()


def _programs_of(of: Deployment) -> list[str]:
    """Return the names of Postgres' programs that still use the databases."""
    return [
        process.info["name"]
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] in ("pg_dump", "pg_restore")
        and str(of.home) in " ".join(process.info["cmdline"] or ())
    ]


def _seconds(of: Deployment, *arguments: object) -> float:
    """Run a command. Return its duration."""
    began = time.monotonic()
    of.manage(*arguments)
    return time.monotonic() - began


def _rows(of: Deployment, slug: str) -> list[tuple[object, ...]]:
    """Return a tenant's messages with the transactions that wrote them."""
    ((schema,),) = of.ask(f"SELECT schema_name FROM tenants_tenant WHERE slug = '{slug}'")
    return of.ask(f"SELECT id, content, xmin::text FROM {schema}.memory_message ORDER BY number")


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
