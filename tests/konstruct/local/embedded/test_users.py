"""The embedded services are shared, and stop with the last process that uses them."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from konstruct.local import embedded, services
from tests.konstruct.local.embedded.services import (
    embedded_command,
    leave,
    postmaster,
    sql,
    valkey_server,
    wait_ready,
)
from tests.konstruct.running import PROJECT, eventually, processes_in

pytestmark = pytest.mark.long


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="role 'root' is not one of app, owner, superuser"):
        services.database_url("root")


def test_the_secret_key_is_made_once_and_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KONSTRUCT_HOME", str(tmp_path / "home"))
    key = services.local_secret_key()
    assert len(key) >= 50
    assert services.local_secret_key() == key
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["secret_key"]
    assert (tmp_path / "home" / "secret_key").stat().st_mode & 0o077 == 0


def test_concurrent_processes_share_one_instance_until_the_last_exits(
    home: Path, new_user: Callable[..., subprocess.Popen[str]]
) -> None:
    users = [new_user(home, wait=False) for _ in range(3)]
    for user in users:
        wait_ready(user)
    names = processes_in(home)
    assert names.count("valkey-server") == 1
    assert names.count("postgres") >= 2  # the cluster's own background processes
    first = (postmaster(), valkey_server())
    leave(users[0])
    users[1].kill()
    users[1].wait()
    assert (postmaster(), valkey_server()) == first
    users[2].kill()
    eventually(lambda: processes_in(home) == [])


def test_data_survives_a_restart(home: Path) -> None:
    embedded.ensure()
    sql("CREATE TABLE kept (word text)")
    sql("INSERT INTO kept VALUES ('lighthouse')")
    with redis.Redis.from_url(services.redis_url()) as client:
        client.rpush("kept", "lighthouse")
    assert embedded.wait_stopped() is True
    assert processes_in(home) == []
    assert not services.socket_directory().exists()
    embedded.ensure()
    assert sql("SELECT word FROM kept") == [("lighthouse",)]
    with redis.Redis.from_url(services.redis_url(), decode_responses=True) as client:
        assert client.lrange("kept", 0, -1) == ["lighthouse"]


def test_stop_ends_services_in_use_and_the_next_use_starts_them(
    home: Path, new_user: Callable[..., subprocess.Popen[str]]
) -> None:
    new_user(home)
    assert embedded.stop() is True
    assert processes_in(home) == []
    assert embedded.stop() is False
    embedded.ensure()
    assert sql("SELECT 1") == [(1,)]


def test_stop_ends_a_server_of_this_home_too(home: Path) -> None:
    code = (
        "import os, time\n"
        "from konstruct.local import embedded, services\n"
        "services.make_home()\n"
        "lock = embedded.try_lock(services.serve_lock(), shared=False)\n"
        "os.pwrite(lock, str(os.getpid()).encode(), 0)\n"
        "print('serving', flush=True)\n"
        "time.sleep(600)\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "serving\n"
    assert embedded_command("stop") == (0, "", "")
    server.communicate()
    assert server.returncode == -signal.SIGTERM


def test_two_homes_run_side_by_side(
    home: Path,
    tmp_path: Path,
    new_user: Callable[..., subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedded.ensure()
    sql("CREATE TABLE IF NOT EXISTS of_the_first (n int)")
    with redis.Redis.from_url(services.redis_url()) as client:
        client.set("of", "the first")
    # Longer than a socket's path may be, and below a directory that only its owner may enter.
    other = tmp_path / ("d" * 100) / ("e" * 100) / "home"
    other.parent.mkdir(parents=True)
    other.parent.chmod(0o700)
    user = new_user(other)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("KONSTRUCT_HOME", str(other))
        assert sql("SELECT to_regclass('of_the_first')") == [(None,)]
        with redis.Redis.from_url(services.redis_url()) as client:
            assert client.get("of") is None
    assert sql("SELECT to_regclass('of_the_first')::text") == [("of_the_first",)]
    leave(user)
    eventually(lambda: processes_in(other) == [])


def test_tool_runs_as_the_superuser_for_backups(home: Path) -> None:
    assert embedded_command("tool", "psql", "-XAtc", "SELECT current_user, current_database()") == (
        0,
        "postgres|konstruct\n",
        "",
    )
    embedded.ensure_postgres()
    sql("CREATE TABLE IF NOT EXISTS forced (n int)")
    sql("ALTER TABLE forced ENABLE ROW LEVEL SECURITY")
    sql("ALTER TABLE forced FORCE ROW LEVEL SECURITY")
    status, dump, _ = embedded_command("tool", "pg_dump", "--table", "forced")
    assert status == 0
    assert "COPY public.forced" in dump
