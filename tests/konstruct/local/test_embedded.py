"""The embedded services, as real processes: shared, stopped with the last user, healed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from konstruct.local import embedded
from konstruct.local.cache import EmbeddedConnection
from konstruct.local.embedded import paths, postgres
from konstruct.local.embedded.users import SERVICES
from konstruct.processes import is_alive
from tests.konstruct.running import PROJECT, eventually, kill, processes_in

pytestmark = pytest.mark.slow

USER = """
import sys
from konstruct.local import embedded
embedded.ensure()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded") / "home"


@pytest.fixture
def home(module_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose cluster exists, with nobody using it."""
    monkeypatch.setenv("KONSTRUCT_HOME", str(module_home))
    held = dict(embedded.users._held)
    embedded.users._held.clear()  # the suite's own services are those of another home
    yield module_home
    embedded.stop()
    embedded.users._held.update(held)
    # A supervisor that came too late for a service that was killed ends by itself.
    eventually(lambda: processes_in(module_home) == [])


@pytest.fixture
def new_user() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start another process that uses the services until its standard input is closed."""
    started = []

    def start(home: Path, *, wait: bool = True) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", USER],
            cwd=PROJECT,
            env={**os.environ, "KONSTRUCT_HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        if wait:
            wait_ready(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def leave(process: subprocess.Popen[str]) -> None:
    process.communicate("")
    assert process.returncode == 0


def supervisor_of(name: str) -> int:
    return embedded.users._status(SERVICES[name]).pid


def postmaster() -> int:
    return int((SERVICES["postgres"].data / "postmaster.pid").read_text().split()[0])


def valkey_server() -> int:
    with redis.Redis.from_url(embedded.redis_url()) as client:
        return client.info("server")["process_id"]


def sql(query: str, role: str = "owner", database: str = "konstruct") -> list[tuple]:
    with psycopg.connect(embedded.database_url(role, database), autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else []


def may_connect(user: str, password: str | None) -> bool:
    try:
        psycopg.connect(
            host=str(paths.socket_directory()),
            user=user,
            dbname="konstruct",
            password=password,
            passfile=str(paths.socket_directory() / "none"),
        ).close()
    except psycopg.OperationalError as error:
        if "password" not in str(error):
            raise
        return False
    return True


def test_names_are_computed_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "none"
    monkeypatch.setenv("KONSTRUCT_HOME", str(home))
    sockets = paths.socket_directory()
    quoted = str(sockets).replace("/", "%2F")
    passwords = str(home.resolve()).replace("/", "%2F")
    assert embedded.database_url("app") == (
        f"postgresql://konstruct_app@{quoted}:5432/konstruct"
        f"?passfile={passwords}%2Fkonstruct_app.pgpass"
    )
    assert embedded.database_url("owner", "other") == (
        f"postgresql://konstruct_owner@{quoted}:5432/other"
        f"?passfile={passwords}%2Fkonstruct_owner.pgpass"
    )
    assert embedded.redis_url(3) == f"unix://{sockets}/valkey.sock?db=3"
    assert embedded.broker_url() == f"redis+socket://{sockets}/valkey.sock?virtual_host=1"
    assert not home.exists()
    assert not sockets.exists()


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="role 'root' is none of app, owner, superuser"):
        embedded.database_url("root")


def test_homes_of_different_names_have_different_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = set()
    for name in ("one", "two"):
        monkeypatch.setenv("KONSTRUCT_HOME", str(tmp_path / name))
        directories.add(paths.socket_directory())
    assert len(directories) == 2


def test_the_secret_key_is_made_once_and_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KONSTRUCT_HOME", str(tmp_path / "home"))
    key = embedded.local_secret_key()
    assert len(key) >= 50
    assert embedded.local_secret_key() == key
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["secret_key"]
    assert (tmp_path / "home" / "secret_key").stat().st_mode & 0o077 == 0


def test_processes_that_start_together_share_one_instance_until_the_last_one_leaves(
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
    leave(users[2])
    eventually(lambda: processes_in(home) == [])


def test_data_survives_a_restart(home: Path) -> None:
    embedded.ensure()
    sql("CREATE TABLE kept (word text)")
    sql("INSERT INTO kept VALUES ('lighthouse')")
    with redis.Redis.from_url(embedded.redis_url()) as client:
        client.rpush("kept", "lighthouse")
    assert embedded.wait_stopped() is True
    assert processes_in(home) == []
    assert not paths.socket_directory().exists()
    embedded.ensure()
    assert sql("SELECT word FROM kept") == [("lighthouse",)]
    with redis.Redis.from_url(embedded.redis_url(), decode_responses=True) as client:
        assert client.lrange("kept", 0, -1) == ["lighthouse"]


def test_waiting_for_the_stop_says_that_somebody_else_is_still_there(
    home: Path, new_user: Callable[..., subprocess.Popen[str]]
) -> None:
    new_user(home)
    embedded.ensure()
    assert embedded.wait_stopped() is False
    assert sql("SELECT 1") == [(1,)]


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a long query"])
def test_a_killed_postmaster_is_replaced_and_its_orphans_are_gone(home: Path, busy: bool) -> None:
    embedded.ensure_postgres()
    before = postmaster()
    connection = psycopg.connect(embedded.database_url("owner"), autocommit=True)
    orphan = psutil.Process(connection.info.backend_pid)
    if busy:
        connection.pgconn.send_query(
            b"SELECT sum(length(md5(n::text))) FROM generate_series(1, 10000000000) n"
        )
    kill(psutil.Process(before))
    eventually(lambda: SERVICES["postgres"].answers())
    assert postmaster() != before
    assert not is_alive(orphan)
    connection.close()


def test_a_killed_valkey_is_replaced_with_its_data(home: Path) -> None:
    embedded.ensure_valkey()
    with redis.Redis.from_url(embedded.redis_url()) as client:
        client.set("before", "the kill")
    before = valkey_server()
    kill(psutil.Process(before))
    embedded.ensure_valkey()
    assert valkey_server() != before
    with redis.Redis.from_url(embedded.redis_url()) as client:
        assert client.get("before") == b"the kill"


def test_a_cache_connection_starts_what_was_killed_when_it_connects_again(home: Path) -> None:
    url = embedded.redis_url()
    pool = redis.ConnectionPool.from_url(url, connection_class=EmbeddedConnection)
    with redis.Redis(connection_pool=pool) as client:
        client.set("before", "the kill")
        kill(psutil.Process(supervisor_of("valkey")))
        eventually(lambda: processes_in(home) == [])
        assert client.get("before") == b"the kill"
    pool.disconnect()


@pytest.mark.parametrize("name", ["postgres", "valkey"])
def test_a_killed_supervisor_is_replaced_by_the_next_user(home: Path, name: str) -> None:
    embedded.ensure()
    before = supervisor_of(name)
    kill(psutil.Process(before))
    embedded.ensure()
    assert supervisor_of(name) != before
    assert sql("SELECT 1") == [(1,)]
    assert embedded.wait_stopped() is True
    assert processes_in(home) == []


def test_a_killed_supervisor_leaves_no_server_behind(
    home: Path, new_user: Callable[..., subprocess.Popen[str]]
) -> None:
    user = new_user(home)
    for name in SERVICES:
        kill(psutil.Process(supervisor_of(name)))
    user.kill()
    eventually(lambda: processes_in(home) == [])


def test_a_killed_user_is_no_user(
    home: Path, new_user: Callable[..., subprocess.Popen[str]]
) -> None:
    new_user(home).kill()
    eventually(lambda: processes_in(home) == [])


def test_everything_killed_and_the_process_ids_given_to_others(home: Path) -> None:
    embedded.ensure()
    sql("CREATE TABLE IF NOT EXISTS killed (n int)")
    running = postmaster()
    pid_file = SERVICES["postgres"].data / "postmaster.pid"
    written = pid_file.read_text()
    for pid in (supervisor_of("postgres"), supervisor_of("valkey"), running, valkey_server()):
        kill(psutil.Process(pid))
    eventually(lambda: processes_in(home) == [])
    pid_file.write_text(written.replace(str(running), str(os.getpid()), 1))
    socket_lock = paths.socket_directory() / ".s.PGSQL.5432.lock"
    socket_lock.write_text(f"{os.getpid()}\n")
    embedded.ensure()
    assert sql("SELECT count(*) FROM killed") == [(0,)]


def test_a_forked_child_is_a_user_after_its_parent(home: Path) -> None:
    code = (
        "import os, sys, time\n"
        "from konstruct.local import embedded\n"
        "embedded.ensure_valkey()\n"
        "child = os.fork()\n"
        "if child: print(child, flush=True); os._exit(0)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert parent.wait() == 0
    parent.stdout.close()
    embedded.ensure_valkey()
    assert embedded.wait_stopped() is False
    kill(psutil.Process(child))
    eventually(lambda: processes_in(home) == [])


def test_a_process_that_lost_its_open_files_registers_again(home: Path) -> None:
    embedded.ensure_valkey()
    (descriptor,) = embedded.users._held.values()
    os.close(descriptor)  # as a program that becomes a daemon does
    embedded.ensure_valkey()
    before = valkey_server()
    time.sleep(1)  # several looks of the supervisor
    assert valkey_server() == before


def test_stop_stops_whoever_uses_it_and_the_next_use_starts_again(
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
        "from konstruct.local.embedded import locks, paths\n"
        "paths.make_home()\n"
        "lock = locks.try_lock(paths.serve_lock(), shared=False)\n"
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


def test_one_service_starts_without_the_other(home: Path) -> None:
    embedded.ensure_valkey()
    assert sorted(processes_in(home)) == ["valkey", "valkey-server"]


def test_two_homes_run_side_by_side(
    home: Path,
    tmp_path: Path,
    new_user: Callable[..., subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedded.ensure()
    sql("CREATE TABLE IF NOT EXISTS of_the_first (n int)")
    with redis.Redis.from_url(embedded.redis_url()) as client:
        client.set("of", "the first")
    # Deeper than a socket's path may be, and below a directory that only its owner may enter.
    other = tmp_path / ("d" * 100) / ("e" * 100) / "home"
    other.parent.mkdir(parents=True)
    other.parent.chmod(0o700)
    user = new_user(other)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("KONSTRUCT_HOME", str(other))
        assert sql("SELECT to_regclass('of_the_first')") == [(None,)]
        with redis.Redis.from_url(embedded.redis_url()) as client:
            assert client.get("of") is None
    assert sql("SELECT to_regclass('of_the_first')::text") == [("of_the_first",)]
    leave(user)
    eventually(lambda: processes_in(other) == [])


def test_a_home_moved_away_and_made_anew_under_the_same_name_starts_afresh(
    tmp_path: Path,
    new_user: Callable[..., subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("KONSTRUCT_HOME", str(home))
    first = new_user(home)
    sql("CREATE TABLE of_the_first (n int)")
    home.rename(tmp_path / "gone")
    second = new_user(home)
    assert sql("SELECT to_regclass('of_the_first')") == [(None,)]
    leave(first)
    leave(second)
    eventually(lambda: processes_in(home) == [])


def test_an_initdb_that_was_killed_is_done_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "home"
    monkeypatch.setenv("KONSTRUCT_HOME", str(other))
    (other / "postgres.new").mkdir(parents=True)
    (other / "postgres.new" / "PG_VERSION").write_text("18\n")
    SERVICES["postgres"].prepare()
    assert (other / "postgres" / "global" / "pg_control").exists()
    assert not (other / "postgres.new").exists()


def test_a_service_that_cannot_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("KONSTRUCT_HOME", str(home))
    (home / "postgres").mkdir(parents=True)
    (home / "postgres" / "PG_VERSION").write_text("15\n")
    with pytest.raises(embedded.EmbeddedError) as raised:
        embedded.ensure_postgres()
    assert "is of PostgreSQL 15, this is 18: dump it" in str(raised.value)
    embedded.release()


def test_a_server_that_dies_at_once_ends_in_an_error_with_its_log(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.ensure_postgres()
    embedded.wait_stopped()
    configuration = SERVICES["postgres"].data / "postgresql.conf"
    original = configuration.read_text()
    configuration.write_text("no_such_parameter = 1\n")
    try:
        with pytest.raises(embedded.EmbeddedError, match="no_such_parameter"):
            embedded.ensure_postgres()
    finally:
        configuration.write_text(original)
    embedded.ensure_postgres()
    assert sql("SELECT 1") == [(1,)]


def test_other_users_of_the_machine_cannot_reach_the_sockets_or_the_data(home: Path) -> None:
    embedded.ensure()
    for directory in (paths.socket_directory(), home, SERVICES["postgres"].data):
        assert directory.stat().st_mode & 0o077 == 0
    for name in (".s.PGSQL.5432", "valkey.sock"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(paths.socket_directory() / name))


def test_a_socket_directory_prepared_by_another_user_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    another = os.geteuid() + 54321
    monkeypatch.setattr(os, "geteuid", lambda: another)
    trap = paths.socket_directory().parent
    trap.mkdir()
    try:
        with pytest.raises(embedded.EmbeddedError, match="is not a directory of this user"):
            paths.make_socket_directory()
    finally:
        trap.rmdir()


def test_the_roles_can_do_their_work_and_nothing_more(home: Path) -> None:
    embedded.ensure_postgres()
    assert sql(
        "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles"
        " WHERE rolname LIKE 'konstruct%' ORDER BY 1"
    ) == [("konstruct_app", False, False, False), ("konstruct_owner", False, False, False)]
    sql("CREATE TABLE IF NOT EXISTS public.shared (n int)")
    sql("CREATE SCHEMA IF NOT EXISTS t_one")
    sql("CREATE TABLE IF NOT EXISTS t_one.private (n int, v extensions.vector(3))")
    assert sql("SELECT * FROM public.shared", role="app") == []
    assert sql("SELECT * FROM t_one.private", role="app") == []
    for refused in (
        "INSERT INTO t_one.private VALUES (1)",
        "INSERT INTO public.shared VALUES (1)",
        "CREATE TABLE public.mine (n int)",
        "CREATE SCHEMA mine",
        "CREATE TEMPORARY TABLE mine (n int)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql(refused, role="app")


def test_databases_made_for_tests_begin_with_extension_and_grants(home: Path) -> None:
    embedded.ensure_postgres()
    sql("CREATE DATABASE made_for_a_test")
    try:
        sql("CREATE TABLE public.shared (v extensions.vector(3))", database="made_for_a_test")
        sql("INSERT INTO shared VALUES ('[1,2,3]')", database="made_for_a_test")
        read = sql("SELECT v::text FROM shared", role="app", database="made_for_a_test")
        assert read == [("[1,2,3]",)]
    finally:
        sql("DROP DATABASE made_for_a_test")


def test_the_bootstrap_works_for_an_administrator_who_is_no_superuser_and_twice(
    home: Path,
) -> None:
    embedded.ensure_postgres()
    sql("DROP ROLE IF EXISTS manager", role="superuser")
    sql("CREATE ROLE manager LOGIN CREATEROLE CREATEDB PASSWORD 'managing'", role="superuser")
    # As on a managed service, where the roles do not exist before and were made by the manager.
    sql("GRANT konstruct_owner, konstruct_app TO manager WITH ADMIN OPTION", role="superuser")
    url = f"host={paths.socket_directory()} user=manager dbname=managed"
    sql("CREATE DATABASE managed OWNER manager", role="superuser")
    try:
        for _ in range(2):
            ran = subprocess.run(
                [postgres.binaries() / "psql", "-X", "-q", "-d", url, "-f", postgres.BOOTSTRAP],
                env={
                    "PGPASSWORD": "managing",
                    "KONSTRUCT_OWNER_PASSWORD": "o'wner",
                    "KONSTRUCT_APP_PASSWORD": "a pp",
                },
                capture_output=True,
                text=True,
            )
            warned = "konstruct: only a superuser can keep SQL from entering a tenant"
            assert (ran.stderr.partition(":")[0], ran.returncode) == ("konstruct", 0)
            assert ran.stderr.startswith(warned)
            assert len(ran.stderr.splitlines()) == 1
        assert may_connect("konstruct_owner", "o'wner")
        assert may_connect("konstruct_app", "a pp")
        give_kept_passwords()
        sql("CREATE SCHEMA t_two", database="managed")
        sql("CREATE TABLE t_two.rows (v extensions.vector(3))", database="managed")
        assert sql("SELECT * FROM t_two.rows", role="app", database="managed") == []
    finally:
        sql("DROP DATABASE managed", role="superuser")
        give_kept_passwords()
        sql("DROP ROLE manager", role="superuser")


def give_kept_passwords() -> None:
    for role in ("owner", "app"):
        password = paths.password_of(role)
        sql(f"ALTER ROLE {paths.ROLES[role]} PASSWORD '{password}'", role="superuser")


def texts_of_processes_and_files(home: Path) -> str:
    """What every process of this machine was started with, and every log below the home."""
    processes = "".join(str(each.info["cmdline"]) for each in psutil.process_iter(["cmdline"]))
    return processes + "".join(path.read_text() for path in home.glob("*.log*"))


def test_every_role_is_asked_for_its_own_password_which_is_seen_nowhere(home: Path) -> None:
    embedded.ensure_postgres()
    passwords = {role: paths.password_of(role) for role in paths.ROLES}
    assert len(set(passwords.values())) == 3
    for role, password in passwords.items():
        assert paths.password_file(role).stat().st_mode & 0o777 == 0o600
        assert password not in embedded.database_url(role)
        for other, user in paths.ROLES.items():
            assert may_connect(user, password) is (other == role)
        assert not may_connect(paths.ROLES[role], None)
    seen = texts_of_processes_and_files(home)
    assert "postgres" in seen
    assert not [password for password in passwords.values() if password in seen]


def test_what_an_application_holds_has_no_password_of_the_embedded_postgres(home: Path) -> None:
    said = """
import os
import django
django.setup()
from django.conf import settings
from django.db import connection
from konstruct.local.embedded import paths
from konstruct.logs import UrlHidingFilter
connection.ensure_connection()
every = {name: getattr(settings, name) for name in dir(settings)}
held = repr(every) + repr(os.environ) + repr(UrlHidingFilter().get_safe_settings())
held += repr(connection.get_connection_params()) + connection.connection.info.dsn
print([role for role in paths.ROLES if paths.password_of(role) in held], connection.vendor)
"""
    ours = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "KONSTRUCT_DB_ROLE")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    ran = subprocess.run(
        [sys.executable, "-c", said],
        cwd=PROJECT,
        env={**environment, "DJANGO_SETTINGS_MODULE": "konstruct.settings"},
        capture_output=True,
        text=True,
    )
    assert (ran.stdout, ran.stderr) == ("[] postgresql\n", "")


def test_a_cluster_that_asked_for_no_password_asks_from_the_next_start_on(home: Path) -> None:
    embedded.ensure_postgres()
    sql("CREATE TABLE IF NOT EXISTS before (n int)")
    for role in paths.ROLES.values():
        sql(f"ALTER ROLE {role} PASSWORD NULL", role="superuser")
    cluster = SERVICES["postgres"].data
    assert embedded.wait_stopped()
    # As older versions have left it.
    (cluster / "pg_hba.conf").write_text("local all all trust\n")
    (cluster / "konstruct.bootstrap").write_text("of another version")
    for role in paths.ROLES:
        paths.password_file(role).unlink()
    embedded.ensure_postgres()
    for role, user in paths.ROLES.items():
        assert not may_connect(user, None)
        assert may_connect(user, paths.password_of(role))
    assert sql("SELECT * FROM before") == []


def test_a_password_whose_file_was_removed_is_made_anew(home: Path) -> None:
    embedded.ensure_postgres()
    before = {role: paths.password_of(role) for role in paths.ROLES}
    assert embedded.wait_stopped()
    for role in paths.ROLES:
        paths.password_file(role).unlink()
    embedded.ensure_postgres()
    for role, user in paths.ROLES.items():
        assert not may_connect(user, before[role])
        assert sql("SELECT current_user::text", role=role) == [(user,)]


def embedded_command(*arguments: str) -> tuple[int, str, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "konstruct.local.embedded", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_a_tool_works_on_the_database_as_the_superuser_who_may_back_it_up(home: Path) -> None:
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


@pytest.mark.parametrize("arguments", [(), ("start",), ("supervise", "mysql"), ("tool",)])
def test_a_wrong_call_of_the_module_prints_the_usage(arguments: tuple[str, ...]) -> None:
    status, printed, error = embedded_command(*arguments)
    assert (status, printed) == (2, "")
    assert error.startswith("usage: python -m konstruct.local.embedded stop\n")


def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    status, _, error = embedded_command("tool", "pg_magic")
    assert status == 1
    assert error.startswith("konstruct.local.embedded: there is no pg_magic; there are clusterdb, ")
