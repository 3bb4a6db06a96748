"""Checks of a Postgres server, on the connections of the application and of the owner."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, cast

import dj_database_url
from django.conf import settings
from django.db import connections

from konstruct.channels.notifications import mail
from konstruct.doctor import work
from konstruct.doctor.answers import Check, Finding, Subject, ok, rate, warning, wrong
from konstruct.doctor.machine import format_bytes
from konstruct.doctor.stores import compare_clocks
from konstruct.isolation.catalogue import MAX_SHOWN, excess_privileges, shorten
from tenants import transaction
from tenants.checks.connections import require_writable
from tenants.checks.system import check_server
from tenants.context import connection, fetch_all, fetch_row, fetch_value, server_scope
from tenants.naming import SCHEMA_PATTERN
from tenants.postgresql.base import DatabaseWrapper
from tenants.postgresql.exceptions import NotWritable
from tenants.roles import APP_ROLE
from tenants.schemas.migration_state import missing_in_public
from tenants.servers import MAIN, servers

CONNECT_SECONDS: Final = 3
# Of each check's statements. With a lock on a table the other checks go on.
LIMITS: Final = {"statement_timeout": "3s", "lock_timeout": "500ms"}
MIN_VECTOR: Final = (0, 8)
WARN_CONNECTIONS_PERCENT: Final = 80
FULL_CONNECTIONS_PERCENT: Final = 95
WARN_LOCK_SECONDS: Final = 5
BAD_LOCK_SECONDS: Final = 60
WARN_IDLE_SECONDS: Final = 60
BAD_IDLE_SECONDS: Final = 900
WARN_TRANSACTION_SECONDS: Final = 900
BAD_TRANSACTION_SECONDS: Final = 6 * 3600

_VECTOR = """
SELECT e.extversion, n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = extnamespace
WHERE e.extname = 'vector'
"""
_SESSIONS = """
SELECT coalesce(sum(numbackends), 0)::int,
       current_setting('max_connections')::int
       - current_setting('superuser_reserved_connections')::int
FROM pg_stat_database
"""
# Postgres' running estimate of rows: no row of a tenant is read.
_RECIPIENTS = """
SELECT coalesce(sum(pg_stat_get_live_tuples(c.oid)), 0)::int
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname ~ %s AND c.relname = 'orchestrator_notificationrecipient'
"""
_OWNER = """
SELECT has_database_privilege(current_database(), 'CREATE') AND NOT EXISTS (
    SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace
      AND relname = 'tenants_tenant' AND NOT pg_has_role(relowner, 'USAGE')
)
"""
# Every role sees all lock waits.
_LOCK_WAITS = """
SELECT l.pid, extract(epoch FROM clock_timestamp() - l.waitstart)::float,
       array_to_string(pg_blocking_pids(l.pid), ', '),
       coalesce(c.relname, l.locktype)
FROM pg_locks AS l LEFT JOIN pg_class AS c ON c.oid = l.relation AND l.locktype = 'relation'
WHERE NOT l.granted AND l.waitstart < clock_timestamp() - make_interval(secs => %s)
ORDER BY l.waitstart LIMIT 5
"""
_MAY_READ_ALL_STATS = "SELECT pg_has_role('pg_read_all_stats', 'USAGE')"
# What the application's role may not do on a table, though it may read all, and does the rest in at
# least half of the tenants' schemas. Who is at work is read by a view of tenants_worker.
_MISSING_PRIVILEGES = """
WITH held AS (
    SELECT format('%%I.%%I', n.nspname, c.relname) AS name, c.relname,
           n.nspname ~ %(schemas)s AS ours,
           ARRAY(SELECT acl.privilege_type FROM aclexplode(c.relacl) AS acl
                 WHERE acl.grantee = %(app)s::regrole) AS privileges
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE (n.nspname = 'public' OR n.nspname ~ %(schemas)s) AND c.relkind IN ('r', 'p')
      AND c.relname <> 'tenants_worker'
), tables AS (
    SELECT relname, count(*) AS number FROM held WHERE ours GROUP BY relname
), usual AS (
    SELECT relname, privilege
    FROM held CROSS JOIN unnest(privileges) AS privilege JOIN tables USING (relname)
    WHERE ours GROUP BY relname, privilege, number HAVING 2 * count(*) >= number
), expected AS (
    SELECT name, privileges, privilege FROM held JOIN usual USING (relname) WHERE ours
    UNION SELECT name, privileges, 'SELECT' FROM held
)
SELECT name, string_agg(privilege, ', ' ORDER BY privilege) FROM expected
WHERE privilege <> ALL (privileges) GROUP BY name ORDER BY name
"""
# Neither statements nor addresses.
_LONG_TRANSACTIONS = """
SELECT pid, usename, state LIKE 'idle in transaction%%' AS is_idle,
       extract(epoch FROM clock_timestamp() - CASE
           WHEN state LIKE 'idle in transaction%%' THEN state_change ELSE xact_start END)::float
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND (state LIKE 'idle in transaction%%'
       AND state_change < clock_timestamp() - make_interval(secs => %s)
       OR xact_start < clock_timestamp() - make_interval(secs => %s))
ORDER BY xact_start LIMIT 5
"""


def subjects() -> list[Subject]:
    """Return each server, as the application and, where its URL is set, as the owner."""
    examined = []
    urls = {MAIN: settings.APPLICATION_DATABASE_URL, **settings.TENANT_DATABASES}
    owners = {MAIN: settings.OWNER_DATABASE_URL, **settings.TENANT_DATABASES_OWNER}
    for server in servers():
        setting = "DATABASE_URL" if server == MAIN else f"TENANT_DATABASES ({server})"
        remedy = (
            f"Start the server, or correct {setting} (docs/operations.md, When a server fails)."
        )
        checks: dict[str, Check] = {
            "server": partial(check_postgres, server),
            "extension": check_extension,
            "clock": check_clock,
            "size": check_size,
            "migrations": check_migrations,
        }
        if server == MAIN:
            checks |= {
                "tenants": work.check_tenants,
                "deletions": work.check_deletions,
                "slack": work.check_slack,
                "backups": work.check_backups,
            }
        checks |= {
            "queues": partial(work.check_queues, server),
            "notifications": check_notifications,
            "missing privileges": check_missing_privileges,
            "excess privileges": check_privileges,
        }
        limited: dict[str, Check] = {
            name: partial(_within_limits, check) for name, check in checks.items()
        }
        # It begins its own transactions.
        limited["isolation"] = check_isolation
        examined.append(
            Subject(f"Postgres {server}", limited, partial(_connect, server, urls[server]), remedy)
        )
        owner = f"Postgres {server} as owner"
        if owners.get(server):
            checks = {"owner": check_owner, "locks": check_locks}
            limited = {name: partial(_within_limits, check) for name, check in checks.items()}
            remedy = remedy.replace("DATABASES", "DATABASES_OWNER").replace("_URL", "_OWNER_URL")
            connect = partial(_connect, server, owners[server])
            examined.append(Subject(owner, limited, connect, remedy))
        else:
            examined.append(Subject(owner, {"locks": report_unchecked_locks}))
    return examined


@contextmanager
def _connect(server: str, url: str) -> Iterator[None]:
    """Connect this thread to the server by the URL, in the public schema."""
    options = dj_database_url.parse(url)
    original = cast(DatabaseWrapper, connections[server])
    copy = original.copy()
    copy.settings_dict.update(
        {name: options.get(name, "") for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    )
    copy.settings_dict["OPTIONS"] = {
        **options.get("OPTIONS", {}),
        "connect_timeout": str(CONNECT_SECONDS),
    }
    connections[server] = copy
    try:
        with server_scope(server):
            copy.ensure_connection()
            yield
    finally:
        copy.close()
        connections[server] = original


def _within_limits(check: Check) -> Iterator[Finding]:
    with transaction.atomic():
        connection.set_local(LIMITS)
        yield from check()


def check_postgres(server: str) -> Iterator[Finding]:
    """Whether the server is new enough, takes writes and has room for connections."""
    version, name = fetch_row(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')"
    )
    if version < 160_000:
        yield wrong(f"PostgreSQL {name} is too old.", "Install PostgreSQL 16 or newer.")
    try:
        require_writable(server)
    except NotWritable as error:
        yield wrong(f"It accepts no writes: {error}", "Make room on its disk, or name the primary.")
    used, limit = fetch_row(_SESSIONS)
    yield rate(
        100 * used / limit,
        f"PostgreSQL {name}; {used} of {limit} connections are in use.",
        "Raise max_connections, or put PgBouncer in between (docs/scaling.md, Connections).",
        warn=WARN_CONNECTIONS_PERCENT,
        bad=FULL_CONNECTIONS_PERCENT,
    )


def check_extension() -> Iterator[Finding]:
    """Look for pgvector in the schema that is on every tenant's search_path."""
    row = fetch_row(_VECTOR)
    if row is None:
        yield wrong("The database has no extension vector.", "Run deploy/bootstrap.sql.")
        return
    version, schema = row
    if tuple(int(part) for part in version.split(".")[:2]) < MIN_VECTOR:
        text = f"pgvector {version} is too old."
        yield wrong(text, "Install pgvector 0.8 or newer, then ALTER EXTENSION vector UPDATE.")
    if schema not in settings.PG_EXTRA_SEARCH_PATHS:
        text = f"pgvector is in the schema {schema}, where tenants do not find it."
        yield wrong(text, "ALTER EXTENSION vector SET SCHEMA extensions.")
    yield ok(f"pgvector {version}.")


def check_clock() -> Iterator[Finding]:
    """Compare the server's clock with that of this machine."""
    before = time.time()
    server_time = fetch_value("SELECT extract(epoch FROM clock_timestamp())::float")
    yield compare_clocks(before, server_time, time.time())


def check_size() -> Iterator[Finding]:
    """State the size of the database. SQL does not show the free space of the server's disk."""
    number = fetch_value("SELECT pg_database_size(current_database())")
    yield ok(
        f"The database has {format_bytes(number)}. Its disk cannot be seen by SQL: watch it on the"
        " server."
    )


def check_migrations() -> Iterator[Finding]:
    """Look for migrations of this code that the public schema lacks."""
    missing = missing_in_public()
    if missing:
        yield wrong(f"The public schema lacks {shorten(missing)}.", "Run manage.py migrate.")
    else:
        yield ok("The public schema has all migrations.")


def check_notifications() -> Iterator[Finding]:
    """Whether mail is configured where tenants have added recipients of notifications."""
    number = fetch_value(_RECIPIENTS, [SCHEMA_PATTERN])
    if number and not mail.is_configured():
        yield warning(
            f"Tenants have about {number} recipients of notifications, and no mail is sent.",
            "Set EMAIL_HOST for web and workers (docs/notifications.md), unless all are in Slack.",
        )
    else:
        yield ok(f"Tenants have about {number} recipients of notifications.")


def check_isolation() -> Iterator[Finding]:
    """Make the system checks of tenancy: role, pooler, policies, walls, and logging.

    `manage.py check --database default` also reads the text of each policy.
    """
    messages = check_server(reads_policies=False)
    for message in messages:
        yield (wrong if message.is_serious() else warning)(message.msg, str(message.hint))
    if not messages:
        route = (
            "by a pooler, of which SQL does not show pool_mode; no statement is prepared"
            if connection.is_pooled
            else "without a pooler; statements are prepared"
        )
        yield ok(f"The role is bound by a policy on each table of tenants. Connected {route}.")


def check_missing_privileges() -> Iterator[Finding]:
    """Look for tables on which the application's role lacks a privilege."""
    missing = fetch_all(_MISSING_PRIVILEGES, {"app": APP_ROLE, "schemas": SCHEMA_PATTERN})
    for table, privileges in missing[:MAX_SHOWN]:
        yield wrong(
            f"The application's role lacks {privileges} on {table}.",
            "Run manage.py migrate. If it is still missing, run as konstruct_owner:"
            f" GRANT {privileges} ON {table} TO {APP_ROLE};",
        )
    if more := missing[MAX_SHOWN:]:
        yield wrong(f"It lacks privileges on {len(more)} more tables.", "Run doctor again then.")
    if not missing:
        yield ok("The application's role can read each table, and write as in most tenants.")


def check_privileges() -> Iterator[Finding]:
    """Look for privileges of the application's role that no migration of ours grants."""
    excess = {label: names for label, names in excess_privileges().items() if names}
    for label, names in excess.items():
        yield wrong(
            f"{label[0].upper()}{label[1:]}: {shorten(names)}.",
            "Revoke it as a superuser; run deploy/bootstrap.sql and manage.py migrate again.",
        )
    if not excess:
        yield ok("The application's role has no privilege that it must not have.")


def check_owner() -> Iterator[Finding]:
    """Whether the owner can migrate: by its privileges, and without a pooler."""
    if connection.is_pooled:
        yield wrong(
            "The owner connects through a pooler, behind which migrate refuses to run.",
            "Name Postgres itself in DATABASE_OWNER_URL (docs/tenancy.md, Behind a pooler).",
        )
    if not fetch_value(_OWNER):
        role = fetch_value("SELECT current_user::text")
        text = f"{role} may not create schemas here, or does not own the tables."
        yield wrong(text, "Use konstruct_owner, and run deploy/bootstrap.sql.")
    else:
        yield ok("The owner can migrate.")


def check_locks() -> Iterator[Finding]:
    """Look for sessions that wait for locks, and for those that keep a transaction open."""
    findings = [
        rate(
            seconds,
            f"Process {pid} of Postgres has waited for {seconds:.0f} s for a lock on {name}, which"
            f" process {blockers or '(unknown)'} holds.",
            "Find the holder in pg_stat_activity; end it by pg_terminate_backend.",
            warn=WARN_LOCK_SECONDS,
            bad=BAD_LOCK_SECONDS,
        )
        for pid, seconds, blockers, name in fetch_all(_LOCK_WAITS, [WARN_LOCK_SECONDS])
    ]
    if fetch_value(_MAY_READ_ALL_STATS):
        for pid, role, is_idle, seconds in fetch_all(
            _LONG_TRANSACTIONS, [WARN_IDLE_SECONDS, WARN_TRANSACTION_SECONDS]
        ):
            what = "is idle in a transaction" if is_idle else "has had a transaction open"
            findings.append(
                rate(
                    seconds,
                    f"Process {pid} of Postgres ({role}) {what} for {seconds:.0f} s.",
                    "It keeps locks and dead rows: find its program, or end it by"
                    " pg_terminate_backend.",
                    warn=WARN_IDLE_SECONDS if is_idle else WARN_TRANSACTION_SECONDS,
                    bad=BAD_IDLE_SECONDS if is_idle else BAD_TRANSACTION_SECONDS,
                )
            )
    else:
        text = "Transactions of other roles cannot be seen, only waits for locks."
        findings.append(warning(text, "Run deploy/bootstrap.sql again as a superuser."))
    yield from findings or [ok("No session waits for a lock, or keeps a transaction open.")]


def report_unchecked_locks() -> Iterator[Finding]:
    """State that the application's role does not see the sessions of others."""
    yield warning(
        "Locks and long transactions are not looked at: this process has no owner's URL.",
        "Run doctor with DATABASE_OWNER_URL (and TENANT_DATABASES_OWNER), where migrate runs.",
    )
