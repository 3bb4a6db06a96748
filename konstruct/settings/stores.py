"""Settings of database, tenants and cache: by URL, or embedded."""

import sys
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from konstruct.local import embedded
from konstruct.local.embedded.supervision import EmbeddedConnection
from konstruct.settings.deployment import (
    DATABASE_OWNER_URL,
    DATABASE_URL,
    REDIS_URL,
    TENANT_DATABASES,
    TENANT_DATABASES_CLOSED,
    TENANT_DATABASES_OWNER,
)
from konstruct.settings.environment import number, text
from tenants.postgresql.pool import pool_options

# Web and workers are the application role; migrate, provision and erase are the owner
# (manage.py chooses by command).
DB_ROLE = text("KONSTRUCT_DB_ROLE", "app")
if DB_ROLE not in ("app", "owner"):
    raise ImproperlyConfigured(f"KONSTRUCT_DB_ROLE={DB_ROLE!r} is neither app nor owner")
EMBEDDED_DATABASE = not DATABASE_URL
if DB_ROLE == "owner" and DATABASE_URL and not DATABASE_OWNER_URL:
    sys.exit(
        "konstruct: DATABASE_OWNER_URL is not set; this command needs the owner's role "
        "(see docs/operations.md)."
    )
# The role of the application, for every user of this process.
APPLICATION_DATABASE_URL = DATABASE_URL or embedded.database_url("app")
# The URL of the owner's role; empty in processes that must not have it.
OWNER_DATABASE_URL = embedded.database_url("owner") if EMBEDDED_DATABASE else DATABASE_OWNER_URL
if DB_ROLE == "app":
    _databases = {"default": APPLICATION_DATABASE_URL, **TENANT_DATABASES}
else:
    _databases = {
        "default": OWNER_DATABASE_URL,
        **TENANT_DATABASES_OWNER,
    }
if _missing := sorted(TENANT_DATABASES.keys() - _databases.keys()):
    sys.exit(
        f"konstruct: TENANT_DATABASES_OWNER names no {', '.join(_missing)}; this command needs the "
        "owner's role on each server of TENANT_DATABASES."
    )
if _unknown := sorted(
    {*TENANT_DATABASES_OWNER, *TENANT_DATABASES_CLOSED} - {"default", *TENANT_DATABASES}
):
    sys.exit(
        f"konstruct: {', '.join(_unknown)} is not a server of TENANT_DATABASES: remove it from "
        "TENANT_DATABASES_OWNER and TENANT_DATABASES_CLOSED."
    )
# Seconds. The backend of a connection uses memory for every tenant that it has served.
_CONN_MAX_AGE = 600
# Connections that all threads of the process share, for each server; 0: each thread keeps its own.
# The owner's statements belong to a session.
DATABASE_POOL_SIZE = number("DATABASE_POOL_SIZE", 0, minimum=0) if DB_ROLE == "app" else 0
DATABASES: dict[str, dict[str, Any]] = {
    _server: {
        **dj_database_url.parse(
            _server_url,
            conn_max_age=0 if DATABASE_POOL_SIZE else _CONN_MAX_AGE,
            conn_health_checks=not DATABASE_POOL_SIZE,  # take_from_pool checks without asking
        ),
        "ENGINE": "tenants.postgresql",
    }
    for _server, _server_url in _databases.items()
}
# A server that does not answer must not block a thread that serves all tenants. Connections to a
# lost machine end within half a minute (libpq; a Unix socket does not need it).
_PATIENCE = {
    "connect_timeout": "5",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
for _server, _database in DATABASES.items():
    _database["OPTIONS"] = {
        **_PATIENCE,
        **_database.get("OPTIONS", {}),
        "server_side_binding": True,
    }
    if DATABASE_POOL_SIZE:
        _database["OPTIONS"]["pool"] = pool_options(_server, DATABASE_POOL_SIZE, _CONN_MAX_AGE)
# Called before a connection is opened; starts the embedded Postgres where there is no URL.
DATABASE_BEFORE_CONNECT = "konstruct.local.embedded.ensure_postgres" if EMBEDDED_DATABASE else None
# django-tenants requires the second one, which has no effect after the first.
DATABASE_ROUTERS = ["tenants.routers.ServerRouter", "django_tenants.routers.TenantSyncRouter"]
# Called for the directory of pg_dump and pg_restore. None: wherever PATH finds them.
POSTGRES_BIN = "konstruct.local.embedded.postgres.binaries" if EMBEDDED_DATABASE else None
# The journal of erasures, outside of the database: see tenants/journal.py.
ERASURE_JOURNAL = text("ERASURE_JOURNAL")
if EMBEDDED_DATABASE and not ERASURE_JOURNAL:
    ERASURE_JOURNAL = str(embedded.local_journal())
TENANT_MODEL = "tenants.Tenant"
TENANT_DOMAIN_MODEL = "tenants.Domain"
# The vector type lives here, so that every tenant's schema finds it.
PG_EXTRA_SEARCH_PATHS = ["extensions"]
# Validation would connect to the database at every start, for a name that is known to be right.
SKIP_PG_EXTRA_VALIDATION = True
# True leaks across tenants after a rollback: see docs/tenancy.md.
TENANT_LIMIT_SET_CALLS = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

EMBEDDED_CACHE = not REDIS_URL
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": embedded.redis_url() if EMBEDDED_CACHE else REDIS_URL,
        "KEY_FUNCTION": "tenants.redis_keys.key_of_current_tenant",
        "OPTIONS": {
            # The default is pickle, by which a writer to the cache runs code in its readers.
            "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
            "SOCKET_CONNECT_TIMEOUT": 2,
            "SOCKET_TIMEOUT": 5,
            "CONNECTION_POOL_KWARGS": (
                {"connection_class": EmbeddedConnection} if EMBEDDED_CACHE else {}
            ),
        },
    }
}
