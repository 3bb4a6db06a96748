"""Killed embedded services restart with their data, or report why they cannot."""

import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from konstruct.local import embedded, services
from konstruct.local.embedded import SERVICES
from konstruct.processes import is_alive
from tests.konstruct.local.embedded.services import postmaster, sql, supervisor, valkey_server
from tests.konstruct.running import eventually, kill, processes_in, run_python

pytestmark = pytest.mark.data


def test_killed_postmaster_is_replaced_and_its_busy_backends_end(home: Path) -> None:
    embedded.ensure_postgres()
    before = postmaster()
    connection = psycopg.connect(services.database_url("owner"), autocommit=True)
    orphan = psutil.Process(connection.info.backend_pid)
    connection.pgconn.send_query(
        b"SELECT sum(length(md5(n::text))) FROM generate_series(1, 10000000000) n"
    )
    kill(psutil.Process(before))
    eventually(lambda: SERVICES["postgres"].is_ready())
    assert postmaster() != before
    assert not is_alive(orphan)
    connection.close()


def test_a_killed_valkey_is_replaced_with_its_data(home: Path) -> None:
    embedded.ensure_valkey()
    with redis.Redis.from_url(services.redis_url()) as client:
        client.set("before", "the kill")
    before = valkey_server()
    kill(psutil.Process(before))
    embedded.ensure_valkey()
    assert valkey_server() != before
    with redis.Redis.from_url(services.redis_url()) as client:
        assert client.get("before") == b"the kill"


def test_a_killed_supervisor_is_replaced_by_the_next_user(home: Path) -> None:
    embedded.ensure()
    before = supervisor()
    kill(psutil.Process(before))
    embedded.ensure()
    assert supervisor() != before
    assert sql("SELECT 1") == [(1,)]
    assert embedded.wait_stopped() is True
    assert processes_in(home) == []


@pytest.mark.parametrize("program", [("watch",), ("run", "valkey")], ids=["watch", "valkey"])
def test_program_ends_if_its_supervisor_was_killed_before_start_and_signals_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("KONSTRUCT_HOME", str(home))
    services.make_home()
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    (home / "supervisord.pid").write_text(f"{killed.pid}\n")
    command = [sys.executable, "-m", "konstruct.local.embedded", *program]
    adopted_by = run_python(
        "-c", f"import subprocess; print(subprocess.run({command!r}).returncode)", timeout=60
    )
    assert (adopted_by.returncode, adopted_by.stdout) == (0, "1\n")
    assert processes_in(home) == []


def test_service_that_cannot_start_reports_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("KONSTRUCT_HOME", str(home))
    (home / "postgres").mkdir(parents=True)
    (home / "postgres" / "PG_VERSION").write_text("15\n")
    with pytest.raises(services.EmbeddedError) as raised:
        embedded.ensure_postgres()
    assert "is of PostgreSQL 15, this is 18: dump it" in str(raised.value)


def test_a_server_that_dies_at_once_ends_in_an_error_with_its_log(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.ensure_postgres()
    embedded.wait_stopped()
    configuration = SERVICES["postgres"].data / "postgresql.conf"
    original = configuration.read_text()
    configuration.write_text("no_such_parameter = 1\n")
    try:
        with pytest.raises(services.EmbeddedError, match="no_such_parameter"):
            embedded.ensure_postgres()
    finally:
        configuration.write_text(original)
    embedded.ensure_postgres()
    assert sql("SELECT 1") == [(1,)]
