"""Bring tenants back to an earlier state."""

from django.contrib.contenttypes.management import inject_rename_contenttypes_operations
from django.db.migrations import Migration

from tenants.context import connection, server_scope
from tenants.models import Tenant
from tenants.schemas.migrating import AtomicExecutor


def since(app: str, name: str) -> int:
    """Return the number of migrations in the history from this one on."""
    return len(_history()) - [
        (migration.app_label, migration.name) for migration in _history()
    ].index((app, name))


def undo(tenant: Tenant, migrations: int) -> None:
    """Unapply the last migrations of the history with Django, and update the tenant's row."""
    with server_scope(tenant.server):
        connection.set_schema(tenant.schema_name)
        plan = [(migration, True) for migration in reversed(_history()[-migrations:])]
        inject_rename_contenttypes_operations(plan=plan, using=connection.alias)
        AtomicExecutor(connection).migrate([], plan=plan)
    Tenant.objects.filter(id=tenant.id).update(migrated_to="")


def _history() -> list[Migration]:
    executor = AtomicExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes(), clean_start=True)
    return [migration for migration, _ in plan]
