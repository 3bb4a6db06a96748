"""Postgres' programs pg_dump and pg_restore, and rows of public tables as JSON.

A tenant's schema is dumped and restored as konstruct_owner, inside the tenant: the policies show
all rows of the tenant and none of another one. No superuser is needed.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string
from psycopg.conninfo import make_conninfo

from tenants.exceptions import KonstructError
from tenants.moving.rows import Session, quoted, run

# Rows that are inserted by one statement.
INSERT_BATCH: Final = 500
_COLUMNS: Final = """
SELECT attname FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
"""
_MAJOR: Final = re.compile(r"\) (\d+)")
# A line of `pg_restore --list`: numbers, type, schema and name.
_TABLE_DATA: Final = re.compile(r"^\d+; \d+ \d+ TABLE DATA (\S+) (\S+) ", re.MULTILINE)


class ToolFailed(KonstructError):
    """A program of Postgres is missing, of the wrong version, or has failed."""


def dump_schema(session: Session, tenant_id: UUID, schema: str, snapshot: str, to: Path) -> None:
    """Dump a tenant's schema in the snapshot of another session.

    Raises:
        ToolFailed: pg_dump failed, for example because the disk is full.
    """
    _run_tool(
        session,
        "pg_dump",
        *("--format=custom", f"--schema={schema}", f"--snapshot={snapshot}", f"--file={to}"),
        # The policies show the tenant's rows; without the setting pg_dump refuses such tables.
        *("--enable-row-security", "--no-password", "--lock-wait-timeout=60s"),
        tenant_id=tenant_id,
    )


def restore_session_name(schema: str) -> str:
    """Return the `application_name` of the session that restores a schema."""
    return f"restore of {schema}"


def restore_schema(session: Session, schema: str, dump: Path) -> None:
    """Create the schema of a dump, with its rows: all of it or nothing.

    Raises:
        ToolFailed: pg_restore failed. Nothing was changed.
    """
    # pg_dump adds grants of the language plpgsql, which concurrent restores cannot set.
    contents = _run_tool(session, "pg_restore", "--list", str(dump), connects=False)
    _run_tool(
        session,
        "pg_restore",
        *("--single-transaction", "--exit-on-error", "--no-password", "--use-list=/dev/stdin"),
        str(dump),
        application_name=restore_session_name(schema),
        stdin="".join(line for line in contents.splitlines(keepends=True) if schema in line),
    )


def tables_in(session: Session, dump: Path) -> set[tuple[str, str]]:
    """Return the tables with rows in a dump, each with its schema.

    Raises:
        ToolFailed: the dump cannot be read.
    """
    contents = _run_tool(session, "pg_restore", "--list", str(dump), connects=False)
    return {(schema, table) for schema, table in _TABLE_DATA.findall(contents)}


def read_rows(session: Session, table: str, where: str = "true") -> Iterator[str]:
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


def _run_tool(
    session: Session,
    name: str,
    *arguments: str,
    tenant_id: UUID | None = None,
    connects: bool = True,
    application_name: str | None = None,
    stdin: str = "",
) -> str:
    """Run a program on the database of a session, as its role, and return its output.

    Args:
        stdin: its standard input.
    """
    program = _program(session, name)
    options = f"-c app.current_tenant={tenant_id}" if tenant_id else ""
    # Messages in English: some are searched for.
    environment = {**os.environ, "PGOPTIONS": options, "LC_ALL": "C"}
    if connects:
        # Passed by the environment, so that no process list shows the password.
        environment["PGPASSWORD"] = session.info.password
        parameters: dict[str, Any] = {
            **session.info.get_parameters(),
            "options": None,
            "application_name": application_name,
        }
        arguments = (f"--dbname={make_conninfo('', **parameters)}", *arguments)
    result = subprocess.run(
        [program, *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        output = result.stderr.strip().splitlines()[:3] or [f"exit status {result.returncode}"]
        raise ToolFailed(f"{name} failed: {' '.join(output)}")
    return result.stdout


def _program(session: Session, name: str) -> str:
    """Return the path of a program whose version supports this server."""
    program = name
    if settings.POSTGRES_BIN:
        program = str(import_string(settings.POSTGRES_BIN)() / name)
    try:
        version = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ToolFailed(
            f"{program} cannot be run: install PostgreSQL's client programs where PATH finds them"
        ) from error
    version_match, server_version = _MAJOR.search(version), session.info.server_version // 10_000
    if version_match is None or int(version_match[1]) < server_version:
        raise ToolFailed(
            f"{program} is {version.strip()!r}, and the server is PostgreSQL {server_version}: put"
            " the programs of that version into PATH"
        )
    return program
