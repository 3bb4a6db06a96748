"""All tenants of a deployment are restored into another one, also by commands that are killed."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.konstruct.backups.deployment import Deployment, deployment

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("number", [3, pytest.param(50, marks=pytest.mark.long)])
def test_all_tenants_come_to_an_empty_deployment(
    lost: Deployment, journal: Path, tmp_path: Path, number: int
) -> None:
    slugs = [f"tenant-{place}" for place in range(number)]
    lost.talk("Zyxomma", *slugs)
    lost.ask(
        "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name,"
        " last_name, email, date_joined) VALUES ('operator', 'x', true, true, true, '', '', '',"
        " now()) RETURNING id"
    )
    said = lost.manage("backup", tmp_path / "backups")
    assert f"{number} tenants" in said
    lost.erase(slugs[0])
    lost.manage("delete_tenant", slugs[1], "--yes")
    lost.talk("Later", slugs[2])
    lost.stop()
    made = the_backup(tmp_path / "backups")
    with deployment("new", journal) as new:
        assert "is whole" in new.manage("verify_backup", made)
        said = new.manage("restore", made, "--all", "--public", "--yes")
        assert "tenant-1: left out, for it was deleted" in said
        assert f"{slugs[0]} is as of" in said
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
        refused = new.manage("restore", made, "--all", "--public", "--yes", status=2)
        assert "there are operators or tenants here" in refused
    lost.start()


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.long)])
def test_killed_commands_leave_whole_backups_and_whole_tenants(
    lost: Deployment, tmp_path: Path, kills: int
) -> None:
    lost.talk("Zyxomma", "one", "two")
    chance = random.Random(1)
    directory = tmp_path / "backups"
    whole_takes = _seconds(lost, "backup", directory)
    for _ in range(kills // 2):
        killed = lost.begin("backup", directory)
        time.sleep(chance.uniform(0.5, 1.0) * whole_takes)
        killed.kill()
        killed.communicate()
        for made in directory.glob("konstruct-*Z"):
            lost.manage("verify_backup", made)
    made = sorted(directory.glob("konstruct-*Z"))[0]
    lost.erase("one")
    of_two = lost.ask("SELECT id FROM tenants_tenant WHERE slug = 'two'")
    before = _rows_of(lost, "two")
    whole_takes = _seconds(lost, "restore", made, "--tenant", "one", "--yes")
    for _ in range(kills):
        killed = lost.begin("restore", made, "--tenant", "one", "--yes")
        time.sleep(chance.uniform(0.4, 1.0) * whole_takes)
        killed.kill()
        killed.communicate()
        state = lost.states()["one"]
        assert state in ("active", "restoring")
        if state == "active":
            assert "Zyxomma anna one" not in lost.dumped()
    lost.manage("restore", made, "--tenant", "one", "--yes")
    assert lost.states() == {"one": "active", "two": "active"}
    assert "Zyxomma anna one" not in lost.dumped()
    assert "Zyxomma ben one" in lost.dumped()
    lost.manage("verify_memory")
    assert lost.ask("SELECT nspname FROM pg_namespace WHERE nspname ~ '^replaced_'") == []
    assert lost.ask("SELECT id FROM tenants_tenant WHERE slug = 'two'") == of_two
    assert _rows_of(lost, "two") == before
    # What killed backups have left goes with the next one.
    lost.manage("backup", directory)
    assert list(directory.glob("*.unfinished")) == []


def _seconds(of: Deployment, *arguments: object) -> float:
    """Run a command, and return how long it took."""
    began = time.monotonic()
    of.manage(*arguments)
    return time.monotonic() - began


def _rows_of(of: Deployment, slug: str) -> list[tuple[object, ...]]:
    """Return how often rows of a tenant's tables were inserted, changed and deleted."""
    ((schema,),) = of.ask(f"SELECT schema_name FROM tenants_tenant WHERE slug = '{slug}'")
    return of.ask(f"SELECT id, content, xmin::text FROM {schema}.memory_message ORDER BY number")
