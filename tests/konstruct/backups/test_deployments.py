"""Restoring all tenants of a deployment into another one, including killed commands."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tenants.locking import poll
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
    lost.ask(
        "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name,"
        " last_name, email, date_joined) VALUES ('operator', 'x', true, true, true, '', '', '',"
        " now()) RETURNING id"
    )
    output = lost.manage("backup", tmp_path / "backups")
    assert f"{number} tenants" in output
    lost.erase(slugs[0])
    lost.manage("delete_tenant", slugs[1], "--yes")
    lost.talk("Later", slugs[2])
    lost.stop()
    made = the_backup(tmp_path / "backups")
    with deployment("new", journal) as new:
        assert "is whole" in new.manage("verify_backup", made)
        output = new.manage("restore", made, "--all", "--public", "--yes")
        assert f"{slugs[1]}: left out, because it was deleted" in output
        assert f"{slugs[0]} is as of" in output
        assert new.states() == {slug: "active" for slug in slugs if slug != slugs[1]}
        assert new.ask("SELECT username FROM auth_user") == [("operator",)]
        left = new.dumped()
        assert f"Zyxomma anna {slugs[0]}" not in left
        assert f"Zyxomma anna {slugs[1]}" not in left
        assert f"Zyxomma ben {slugs[0]}" in left
        assert f"Zyxomma anna {slugs[2]}" in left
        assert "Later" not in left
        new.manage("verify_memory")
        new.talk("Goes on", slugs[0])
        # A second run has nothing to do, and loses no row.
        output = new.manage("restore", made, "--all", "--public", "--yes")
        assert "the operators are restored already" in output
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
