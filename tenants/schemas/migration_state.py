"""Whether a schema is up to date, and the SQL script that creates the schema of a new tenant.

`manage.py make_schema_script` writes it, with tables and first rows, from a schema that Django has
migrated. Django applies the migrations that it lacks, such as those of another version of Django,
after the script.
"""

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final
from uuid import UUID

from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Exists, OuterRef, QuerySet

from tenants.context import fetch_column, fetch_value, server_scope, tenant_connection
from tenants.exceptions import SchemaOutdated, UnknownTenant
from tenants.models import SchemaState, Tenant
from tenants.naming import SCHEMA_PATTERN
from tenants.outages import ServerDown
from tenants.schemas.rls_enforcement import unprotected_schemas
from tenants.servers import servers

FILE: Final = Path(__file__).with_name("new_schema.sql")
# In the script, for the name of the schema and the id of its tenant.
SCHEMA: Final = "__schema__"
TENANT: Final = "__tenant__"


def digest_of(lines: Iterable[str]) -> str:
    """Return a digest of 16 characters."""
    return blake2b("\0".join(lines).encode(), digest_size=8).hexdigest()


@cache
def known_migrations() -> frozenset[str]:
    """Return the migrations of this code, such as ``memory.0001_initial``."""
    found = MigrationLoader(None).disk_migrations or {}
    return frozenset(f"{app}.{name}" for app, name in found)


@cache
def get_script() -> str:
    """Return the script with its placeholders."""
    return FILE.read_text()


def script_for(schema_name: str, tenant_id: UUID) -> str:
    """Return the script for the schema of a tenant."""
    return get_script().replace(SCHEMA, schema_name).replace(TENANT, str(tenant_id))


def current_state() -> str:
    """Return the value of `Tenant.migrated_to` for a schema that is up to date.

    It changes with the script, because `migrate` also brings permissions, roles and policies of
    existing tenants up to date.
    """
    return digest_of([*sorted(known_migrations()), get_script()])


def missing_in_public() -> list[str]:
    """Return the migrations of this code that the public schema of the current server lacks."""
    applied = MigrationRecorder(tenant_connection()).applied_migrations()
    return sorted(known_migrations() - {f"{app}.{name}" for app, name in applied})


def fitting_states() -> QuerySet[SchemaState]:
    """Return the states in which this code can serve a tenant: no migration of it is missing.

    A state of a later version may have more migrations.
    """
    return SchemaState.objects.filter(migrations__contains=sorted(known_migrations()))


def is_fitting() -> Exists:
    """Return an expression for a queryset of tenants: whether this code can serve the tenant."""
    return Exists(fitting_states().filter(name=OuterRef("migrated_to")))


# States that fit this code. The migrations of a state never change.
_fitting: set[str] = set()


def fits(migrated_to: str) -> bool:
    """Return whether this code can serve a tenant in that state. Known states need no query."""
    if migrated_to not in _fitting:
        _fitting.update(fitting_states().values_list("name", flat=True))
    return migrated_to in _fitting


def schema_exists(schema_name: str) -> bool:
    """Return whether the current server has a schema of this name."""
    return bool(fetch_value("SELECT to_regnamespace(%s) IS NOT NULL", [schema_name]))


_TENANT_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname ~ %s"


def schemas_to_visit(state: str) -> set[str]:
    """Return the names of the schemas in which migrate has something to do.

    They are in another state, or gone, or have an unprotected table; or their server is down.
    It sends three queries for each server.

    Args:
        state: the state of a schema that is up to date.
    """
    found: set[str] = set()
    for server in servers():
        tenants = Tenant.objects.provisioned().filter(server=server)
        states = dict(tenants.values_list("schema_name", "migrated_to"))
        try:
            with server_scope(server):
                found |= unprotected_schemas(SCHEMA_PATTERN)
                existing = set(fetch_column(_TENANT_SCHEMAS, [SCHEMA_PATTERN]))
        except ServerDown:
            existing = set()
        found |= {name for name in states if states[name] != state or name not in existing}
    return found


def require_migrated(tenant_id: UUID | None = None) -> None:
    """Raise if the tenant, or any tenant that serves, lacks migrations of this code.

    Raises:
        UnknownTenant: there is no such tenant.
        SchemaOutdated: with the tenants, up to five by name.
    """
    tenants = Tenant.objects.filter(id=tenant_id) if tenant_id else Tenant.objects.serving()
    if tenant_id and not tenants.exists():
        raise UnknownTenant(f"no tenant has the id {tenant_id}")
    if slugs := tenants.exclude(is_fitting()).values_list("slug", flat=True)[:5]:
        raise SchemaOutdated(
            f"tenant {', '.join(slugs)} lacks tables or columns of this version: run"
            " `manage.py migrate`"
        )
