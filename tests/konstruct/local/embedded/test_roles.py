"""Roles of the embedded Postgres: privileges, and passwords."""

import os
import socket
from pathlib import Path

import psutil
import psycopg
import pytest

from konstruct.local import embedded, services
from konstruct.local.embedded import SERVICES
from tests.konstruct.local.embedded.services import may_connect, sql
from tests.konstruct.running import run_python

pytestmark = pytest.mark.long


def test_other_users_of_the_machine_cannot_reach_the_sockets_or_the_data(home: Path) -> None:
    embedded.ensure()
    for directory in (services.socket_directory(), home, SERVICES["postgres"].data):
        assert directory.stat().st_mode & 0o077 == 0
    for name in (".s.PGSQL.5432", "valkey.sock"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(services.socket_directory() / name))


def test_a_socket_directory_prepared_by_another_user_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    another = os.geteuid() + 54321
    monkeypatch.setattr(os, "geteuid", lambda: another)
    trap = services.socket_directory().parent
    trap.mkdir()
    try:
        with pytest.raises(services.EmbeddedError, match="is not a directory of this user"):
            services.make_socket_directory()
    finally:
        trap.rmdir()


def test_roles_have_only_their_privileges(home: Path) -> None:
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


def texts_of_processes_and_files(home: Path) -> str:
    """Return the command lines and environments of all processes, and the logs below the home."""
    processes = "".join(
        str(process.info["cmdline"]) for process in psutil.process_iter(["cmdline"])
    )
    return processes + "".join(path.read_text() for path in home.glob("*.log*"))


def test_every_role_requires_its_own_password_which_appears_nowhere(home: Path) -> None:
    embedded.ensure_postgres()
    passwords = {role: services.password_of(role) for role in services.ROLES}
    assert len(set(passwords.values())) == 3
    for role, password in passwords.items():
        assert services.password_file(role).stat().st_mode & 0o777 == 0o600
        assert password not in services.database_url(role)
        for other, user in services.ROLES.items():
            assert may_connect(user, password) is (other == role)
        assert not may_connect(services.ROLES[role], None)
    seen = texts_of_processes_and_files(home)
    assert "postgres" in seen
    assert not [password for password in passwords.values() if password in seen]


def test_application_has_no_password_of_the_embedded_owner(home: Path) -> None:
    code = """
import os
import django
django.setup()
from django.conf import settings
from django.db import connection
from konstruct.local import services
from konstruct.logs import UrlHidingFilter
connection.ensure_connection()
every = {name: getattr(settings, name) for name in dir(settings)}
held = repr(every) + repr(os.environ) + repr(UrlHidingFilter().get_safe_settings())
held += repr(connection.get_connection_params()) + connection.connection.info.dsn
print([role for role in services.ROLES if services.password_of(role) in held], connection.vendor)
"""
    variables = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "KONSTRUCT_DB_ROLE")
    environment = {name: value for name, value in os.environ.items() if name not in variables}
    ran = run_python(
        "-c", code, env={**environment, "DJANGO_SETTINGS_MODULE": "konstruct.settings"}
    )
    assert (ran.stdout, ran.stderr) == ("[] postgresql\n", "")


def test_removed_password_file_is_a_new_password_from_the_next_start_on(home: Path) -> None:
    embedded.ensure_postgres()
    before = services.password_of("app")
    assert embedded.wait_stopped()
    services.password_file("app").unlink()
    embedded.ensure_postgres()
    assert not may_connect("konstruct_app", before)
    assert may_connect("konstruct_app", services.password_of("app"))
