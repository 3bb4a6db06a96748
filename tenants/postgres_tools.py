"""Advisory locks, and for the owner's role its sessions, pg_dump and pg_restore, and rows as JSON.

The sessions are separate from this thread's connections, and enter no tenant by themselves.

A tenant's schema is dumped and restored as konstruct_owner, inside the tenant: the policies show
all rows of the tenant and none of another one. No superuser is needed.
"""

import json
import os
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, cast
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections
from django.utils.module_loading import import_string
from psycopg import conninfo, sql

from tenants import context, exceptions, naming
from tenants.postgresql.base import DatabaseWrapper

# --- Advisory locks ------------------------------------------------------------------------------
#
# They are declared together so that each key has one purpose. They belong to a session: Postgres
# frees those of a killed process. A key is a pair of integers; the first identifies the purpose.
#
# No statement waits for a lock. A waiting statement keeps its snapshot, and CREATE INDEX
# CONCURRENTLY waits for all snapshots, also in the session that holds the lock: a deadlock.

FIRST_PAUSE_SECONDS = 0.005
MAX_PAUSE_SECONDS = 0.1


def poll(try_lock: Callable[[], bool], *, seconds: float) -> bool:
    """Call `try_lock` until it returns True; return False after so many seconds.

    Args:
        try_lock: tries once, for example with `SELECT pg_try_advisory_lock(…)`.
    """
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    while not try_lock():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(2 * pause, MAX_PAUSE_SECONDS)
    return True


MIGRATE_ALL: Final = (7_401, 0)
MIGRATE_SCHEMA: Final = 7_402
ERASURE: Final = 7_403
MERGE: Final = 7_404
RESTORE: Final = (7_405, 0)

# Setting up a tenant takes seconds. A migration that builds indexes of a large tenant takes longer;
# then a waiting caller gets an error.
WAIT_SECONDS: Final = 300.0


def migrate_lock() -> AbstractContextManager[bool]:
    """Hold the lock of `manage.py migrate`; yield False if another run holds it."""
    return _lock_unless_held(MIGRATE_ALL)


def restore_lock() -> AbstractContextManager[bool]:
    """Hold the lock of `manage.py restore`; yield False if another one holds it.

    A restore decides at its beginning which tenants to restore. Another one at the same time would
    restore a tenant twice, and lose its data between the two.
    """
    return _lock_unless_held(RESTORE)


@contextmanager
def schema_lock(schema_name: str, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Keep other processes from creating, migrating or dropping this schema.

    Raises:
        SchemaBusy: another process held the lock for all of this time.
    """
    # Two names with the same checksum wait for each other: slower, but correct.
    key = (MIGRATE_SCHEMA, zlib.crc32(schema_name.encode()) - 2**31)
    if not poll(partial(_try_lock, key), seconds=wait_seconds):
        raise exceptions.SchemaBusy(
            f"another process makes, migrates or drops the schema {schema_name}: wait for its end,"
            " or end it, and try again"
        )
    try:
        yield
    finally:
        _unlock(key)


def owner_lock(purpose: int, request_id: UUID) -> AbstractContextManager[bool]:
    """Hold the lock of an erasure or a merge; yield False if another process holds it.

    Args:
        purpose: ERASURE or MERGE.
        request_id: of the request.
    """
    return _lock_unless_held((purpose, zlib.crc32(request_id.bytes) - 2**31))


@contextmanager
def _lock_unless_held(key: tuple[int, int]) -> Iterator[bool]:
    is_held = _try_lock(key)
    try:
        yield is_held
    finally:
        if is_held:
            _unlock(key)


def _try_lock(key: tuple[int, int]) -> bool:
    refuse_pooled_owner()
    return bool(context.fetch_value("SELECT pg_try_advisory_lock(%s, %s)", key))


def refuse_pooled_owner() -> None:
    """Refuse an operation that needs a session, if the owner connects through a pooler.

    Raises:
        PooledOwner: this process reaches Postgres through a pooler.
    """
    connection = context.tenant_connection()
    if connection.is_owners and connection.is_pooled:
        raise exceptions.PooledOwner(
            "DATABASE_OWNER_URL goes through a connection pooler: migrating and provisioning hold"
            " locks of their session and build indexes outside of transactions. Set it to the"
            " address of Postgres itself; DATABASE_URL may keep the pooler's"
        )


def _unlock(key: tuple[int, int]) -> None:
    connection = context.tenant_connection()
    # In a broken transaction, or without a connection, the lock ends with the session.
    if connection.connection is not None and not connection.needs_rollback:
        try:
            context.execute("SELECT pg_advisory_unlock(%s, %s)", key)
        except (InterfaceError, OperationalError):
            connection.close()


# --- Sessions and programs -----------------------------------------------------------------------

Session = psycopg.Connection[Any]

# Rows that are inserted by one statement.
INSERT_BATCH: Final = 500
_COLUMNS: Final = """
SELECT attname FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""
# The policies show the tenant's rows; without the setting pg_dump refuses tables with policies.
_DUMP: Final = ("--enable-row-security", "--no-password", "--lock-wait-timeout=60s")
# Time for the session of a killed restore or move to end.
_KILLED_MILLISECONDS: Final = 30_000
# A line of `pg_restore --list`: numbers, type, schema and name.
_TABLE_DATA: Final = re.compile(r"^\d+; \d+ \d+ TABLE DATA (\S+) (\S+) ", re.MULTILINE)


class ToolFailed(exceptions.KonstructError):
    """A program of Postgres is missing, or has failed."""


@contextmanager
def session_on(server: str) -> Iterator[Session]:
    """Open a session of this process' role on a server, in autocommit. It is closed at the end.

    The driver's errors are raised as Django's.

    Raises:
        ServerDown: the server takes no connections.
    """
    wrapper = cast(DatabaseWrapper, connections[server]).copy()
    try:
        wrapper.ensure_connection()
        with wrapper.wrap_database_errors:
            yield wrapper.connection
    finally:
        wrapper.close()


def run(session: Session, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement, or several if there are no values, and return the rows."""
    cursor = session.execute(statement.encode(), values or None)
    return cursor.fetchall() if cursor.description else []


def quoted(*names: str) -> str:
    """Return a quoted name, such as "schema"."table"."""
    return sql.Identifier(*names).as_string()


def literal(value: object) -> str:
    """Return a quoted value, for statements that take no parameters."""
    return sql.Literal(value).as_string()


def set_tenant(session: Session, tenant_id: UUID) -> None:
    """Set the tenant of the session's transaction, for tables with a policy."""
    run(session, f"SET LOCAL app.current_tenant = {literal(str(tenant_id))}")


def dump_schema(session: Session, tenant_id: UUID, schema: str, *options: str) -> str:
    """Dump a tenant's schema, and return the output of pg_dump.

    Args:
        session: of the server.
        tenant_id: the tenant.
        schema: the schema.
        options: further options of pg_dump, such as `--format`, `--file` and `--snapshot`.

    Raises:
        ToolFailed: pg_dump failed, for example because the disk is full.
    """
    options = (f"--schema={schema}", *_DUMP, *options)
    return _run_tool(session, "pg_dump", *options, tenant_id=tenant_id)


def copy_schema(source: Session, target: Session, tenant_id: UUID, schema: str) -> None:
    """Copy a tenant's schema to another server: all of it or nothing.

    Raises:
        ToolFailed: pg_dump or psql failed.
    """
    dump = (source, "pg_dump", "--format=plain", f"--schema={schema}", *_DUMP)
    _load(target, schema, "", *_command(*dump, tenant_id=tenant_id))


def _load(
    session: Session, schema: str, first: str, command: list[str], environment: dict[str, str]
) -> None:
    """Run the SQL that a program writes, after other statements, in one transaction.

    It passes through this process, which sends COMMIT at the end: if it or the program is killed,
    psql ends without it.
    """
    psql, psql_environment = _command(
        *(session, "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null"),
        application_name=restore_session_name(schema),
    )
    with (
        TemporaryFile() as errors,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors
        ) as writing,
        subprocess.Popen(
            psql, env=psql_environment, stdin=subprocess.PIPE, stderr=errors
        ) as loading,
    ):
        with (
            suppress(BrokenPipeError),
            cast(BinaryIO, writing.stdout) as written,
            cast(BinaryIO, loading.stdin) as loaded,
        ):
            loaded.write(f"BEGIN; {first}\n".encode())
            shutil.copyfileobj(written, loaded)
            if writing.wait() == 0:
                loaded.write(b"COMMIT;\n")
        statuses = writing.wait(), loading.wait()
        if any(statuses):
            errors.seek(0)
            name = f"{Path(command[0]).name} | psql"
            raise _failure(name, errors.read().decode(), max(statuses))


def restore_session_name(schema: str) -> str:
    """Return the `application_name` of the session that restores a schema."""
    return f"restore of {schema}"


def end_killed_restores(session: Session, schema: str) -> None:
    """End the sessions of killed restores and moves to this schema, which would continue."""
    run(
        session,
        "SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity"
        " WHERE application_name = %s AND datname = current_database()",
        *(_KILLED_MILLISECONDS, restore_session_name(schema)),
    )


def restore_schema(session: Session, schema: str, dump: Path) -> None:
    """Replace a schema by that of a dump, with its rows, in one transaction.

    Raises:
        ToolFailed: pg_restore or psql failed. Nothing was changed.
    """
    first = (
        f"SET LOCAL lock_timeout = '60s'; DROP SCHEMA IF EXISTS {schema} CASCADE;"
        f" CREATE SCHEMA {schema};"
        f" GRANT USAGE ON SCHEMA {schema} TO {naming.APP_ROLE};"
    )
    # --schema leaves out the schema itself, and grants of the language plpgsql.
    restore = _command(None, "pg_restore", f"--schema={schema}", "--file=-", str(dump))
    _load(session, schema, first, *restore)


def tables_in(dump: Path) -> set[tuple[str, str]]:
    """Return the tables with rows in a dump, each with its schema.

    Raises:
        ToolFailed: the dump cannot be read.
    """
    contents = _run_tool(None, "pg_restore", "--list", str(dump))
    return {(schema, table) for schema, table in _TABLE_DATA.findall(contents)}


def read_rows(session: Session, table: str, where: str) -> Iterator[str]:
    """Yield rows of a table as JSON."""
    for (row,) in run(session, f"SELECT to_jsonb(kept)::text FROM {table} AS kept WHERE {where}"):  # noqa: S608
        yield row


def insert_rows(session: Session, table: str, rows: Iterable[dict[str, Any]]) -> int:
    """Insert rows into a table, and return their number.

    Columns that no longer exist are left out.
    """
    existing = {name for (name,) in run(session, _COLUMNS, table)}
    rows_to_insert = list(rows)
    for start in range(0, len(rows_to_insert), INSERT_BATCH):
        chunk = rows_to_insert[start : start + INSERT_BATCH]
        names = ", ".join(quoted(name) for name in chunk[0] if name in existing)
        run(
            session,
            f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE"  # noqa: S608
            f" SELECT {names} FROM jsonb_populate_recordset(NULL::{table}, %s::jsonb)",
            json.dumps(chunk),
        )
    return len(rows_to_insert)


def _run_tool(session: Session | None, name: str, *arguments: str, **options: Any) -> str:
    """Run a program, and return its output: see `_command`."""
    command, environment = _command(session, name, *arguments, **options)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise _failure(name, result.stderr, result.returncode)
    return result.stdout


def _command(
    session: Session | None,
    name: str,
    *arguments: str,
    tenant_id: UUID | None = None,
    application_name: str | None = None,
) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of a program.

    With a session the program connects to its database, as its role.
    """
    options = f"-c app.current_tenant={tenant_id}" if tenant_id else ""
    # Messages in English: some are searched for.
    environment = {**os.environ, "PGOPTIONS": options, "LC_ALL": "C"}
    if session is not None:
        # Passed by the environment, so that no process list shows the password.
        environment["PGPASSWORD"] = session.info.password
        parameters: dict[str, Any] = {
            **session.info.get_parameters(),
            "options": None,
            "application_name": application_name,
        }
        arguments = (f"--dbname={conninfo.make_conninfo('', **parameters)}", *arguments)
    # Each program refuses a server of a newer version itself.
    program = str(import_string(settings.POSTGRES_BIN)() / name) if settings.POSTGRES_BIN else name
    if shutil.which(program) is None:
        raise ToolFailed(
            f"{program} cannot be run: install PostgreSQL's client programs where PATH finds them"
        )
    return [program, *arguments], environment


def _failure(name: str, output: str, status: int) -> ToolFailed:
    lines = output.strip().splitlines()[:3] or [f"exit status {status}"]
    return ToolFailed(f"{name} failed: {' '.join(lines)}")
