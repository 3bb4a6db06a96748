"""Reversible migration operations: policies, grants, column storage, vacuum.

They change the current schema only. Names of tables are always qualified, so that a missing table
of a tenant is an error instead of the table with that name in public.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import router
from django.db.migrations.operations.base import Operation

from tenants.naming import tenant_id_of
from tenants.postgresql.expressions import CURRENT_TENANT, IS_CURRENT_TENANT
from tenants.roles import APP_ROLE, OWNER_ROLE

POLICY = "tenant_isolation"
CHECK = "tenant_of_schema"


def protect_sql(table: str) -> list[str]:
    """Return the statements that make Postgres show and accept only the current tenant's rows.

    FORCE includes the table's owner. The statements can be repeated: rls_enforcement.py may have
    run them before. ``table`` is quoted.
    """
    condition = policy_condition(table)
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS {POLICY} ON {table}",
        f"CREATE POLICY {POLICY} ON {table} USING ({condition}) WITH CHECK ({condition})",
    ]


def policy_condition(table: str) -> str:
    """Return the condition of the policy: the tenant is that of the schema, and is entered.

    The schema's tenant is a literal: with any setting of the session, rows of another tenant can be
    neither put into the schema nor read from it. ``table`` is qualified and quoted.
    """
    tenant_id = tenant_id_of(table.partition(".")[0].strip('"'))
    if tenant_id is None:
        return IS_CURRENT_TENANT
    # Postgres evaluates a part without columns once per statement, before it reads a row.
    return f"tenant_id = '{tenant_id}'::uuid AND (SELECT {CURRENT_TENANT}) = '{tenant_id}'::uuid"


def check_tenant_sql(table: str) -> str:
    """Return clauses of ALTER TABLE that tie rows to the tenant of their schema; none in public.

    The check also holds for roles that bypass policies. ``table`` is qualified and quoted.
    """
    tenant_id = tenant_id_of(table.partition(".")[0].strip('"'))
    if tenant_id is None:
        return ""
    return (
        f"DROP CONSTRAINT IF EXISTS {CHECK},"
        f" ADD CONSTRAINT {CHECK} CHECK (tenant_id = '{tenant_id}'::uuid)"
    )


def add_tenant_column_sql(table: str) -> str:
    """Return the statement that adds tenant_id, which Postgres fills in. ``table`` is quoted."""
    return (
        f"ALTER TABLE {table}"
        f" ADD COLUMN IF NOT EXISTS tenant_id uuid NOT NULL DEFAULT ({CURRENT_TENANT})"
    )


class TableOperation(ABC, Operation):
    """An operation on one table that changes no model state of Django."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, table: str) -> None:
        self.table = table

    @abstractmethod
    def forwards_sql(self, table: str) -> list[str]:
        """Return the statements. ``table`` is qualified and quoted."""

    @abstractmethod
    def backwards_sql(self, table: str) -> list[str]:
        """Return the statements that undo it. ``table`` is qualified and quoted."""

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: Django's models do not change."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._run(app_label, schema_editor, self.forwards_sql)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._run(app_label, schema_editor, self.backwards_sql)

    def _run(
        self, app_label: str, schema_editor: Any, statements: Callable[[str], list[str]]
    ) -> None:
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, app_label):
            return
        quote = connection.ops.quote_name
        for statement in statements(f"{quote(connection.schema_name)}.{quote(self.table)}"):
            schema_editor.execute(statement, params=None)

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.__class__.__name__.lower()}_{self.table}"


class ForceRowLevelSecurity(TableOperation):
    """Show and accept only the current tenant's rows, also for the table's owner.

    For a new table: its rows are checked while no other session can use it.
    """

    def forwards_sql(self, table: str) -> list[str]:
        enable, *policy = protect_sql(table)
        check = check_tenant_sql(table)
        return [f"{enable}, {check}" if check else enable, *policy]

    def backwards_sql(self, table: str) -> list[str]:
        return [
            f"DROP POLICY {POLICY} ON {table}",
            f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY,"
            f" DROP CONSTRAINT IF EXISTS {CHECK}",
        ]

    def describe(self) -> str:
        return f"Force row-level security on {self.table}"


class AddTenantColumn(TableOperation):
    """Add tenant_id to a table that Django or a library defines."""

    def forwards_sql(self, table: str) -> list[str]:
        return [add_tenant_column_sql(table)]

    def backwards_sql(self, table: str) -> list[str]:
        return [f"ALTER TABLE {table} DROP COLUMN tenant_id"]

    def describe(self) -> str:
        return f"Add tenant_id to {self.table}"


_PRIVILEGE = re.compile(r"(SELECT|INSERT|UPDATE|DELETE)( \(\w+(, \w+)*\))?")


class GrantToApp(TableOperation):
    """Grant the application role more than SELECT, which it has on every table.

    Postgres refuses privileges without a grant (UPDATE and DELETE on an append-only table).
    A privilege may name columns: ``GrantToApp("agent", "INSERT", "UPDATE (name, persona)")``.
    """

    def __init__(self, table: str, privileges: str | Sequence[str], *more: str) -> None:
        super().__init__(table)
        first = [privileges] if isinstance(privileges, str) else privileges
        self.privileges = (*first, *more)
        for privilege in self.privileges:
            if not _PRIVILEGE.fullmatch(privilege):
                raise ValueError(f"{privilege!r} is not SELECT, INSERT, UPDATE or DELETE")

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [self.table, list(self.privileges)], {}

    def forwards_sql(self, table: str) -> list[str]:
        return [f"GRANT {', '.join(self.privileges)} ON {table} TO {APP_ROLE}"]

    def backwards_sql(self, table: str) -> list[str]:
        return [f"REVOKE {', '.join(self.privileges)} ON {table} FROM {APP_ROLE}"]

    def describe(self) -> str:
        return f"Grant {', '.join(self.privileges)} on {self.table} to {APP_ROLE}"


def protect_tables(privileges: Mapping[str, Sequence[str]]) -> list[TableOperation]:
    """Return the operations that protect new tables and grant privileges to the application.

    Args:
        privileges: by table, the privileges besides SELECT, as GrantToApp takes them.
    """
    operations: list[TableOperation] = []
    for table, granted in privileges.items():
        operations.append(ForceRowLevelSecurity(table))
        if granted:
            operations.append(GrantToApp(table, granted))
    return operations


class VectorStoragePlain(TableOperation):
    """Keep a vector column's values inside the row instead of in a side table.

    An exact scan of 10k rows of 384 dimensions with long texts takes 3.5 ms instead of 15.3.
    """

    def __init__(self, table: str, column: str = "embedding") -> None:
        super().__init__(table)
        self.column = column

    def forwards_sql(self, table: str) -> list[str]:
        return [f'ALTER TABLE {table} ALTER COLUMN "{self.column}" SET STORAGE PLAIN']

    def backwards_sql(self, table: str) -> list[str]:
        return [f'ALTER TABLE {table} ALTER COLUMN "{self.column}" SET STORAGE DEFAULT']

    def describe(self) -> str:
        return f"Store {self.table}.{self.column} inside the row"


class Vacuum(TableOperation):
    """Update the visibility map and the statistics of a table.

    For a migration without a transaction. In a transaction it is left out, since Postgres does not
    allow it: a tenant's schema is created in one transaction, with empty tables.
    """

    def forwards_sql(self, table: str) -> list[str]:
        return [f"VACUUM (ANALYZE) {table}"]

    def backwards_sql(self, table: str) -> list[str]:
        return []

    def _run(
        self, app_label: str, schema_editor: Any, statements: Callable[[str], list[str]]
    ) -> None:
        if not schema_editor.connection.in_atomic_block:
            super()._run(app_label, schema_editor, statements)

    def describe(self) -> str:
        return f"Vacuum {self.table}"


class HideFromTenants(TableOperation):
    """Hide the rows of a public table from tenants, except those of the condition ``own_rows``.

    Every search_path ends with the public schema. Without this operation, a tenant that lacks a
    table (or does not exist) would read the operators' table with that name.
    """

    def __init__(self, table: str, own_rows: str = "false") -> None:
        super().__init__(table)
        self.own_rows = own_rows

    def forwards_sql(self, table: str) -> list[str]:
        current = f"(SELECT {CURRENT_TENANT})"
        visible = f"{current} IS NULL OR {self.own_rows.format(current_tenant=current)}"
        return [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY {POLICY} ON {table} USING ({visible}) WITH CHECK ({current} IS NULL)",
        ]

    backwards_sql = ForceRowLevelSecurity.backwards_sql

    def describe(self) -> str:
        return f"Hide the rows of {self.table} from tenants"


class LetWorkersClaim(TableOperation):
    """Give a tenant all privileges on its own jobs, and let sessions without a tenant claim them.

    A session without a tenant sees jobs that can be tried, and may only move a due `sweep_at` from
    the past into the future. No session may change the tenant or subject of a row.
    """

    def forwards_sql(self, table: str) -> list[str]:
        nobody = f"(SELECT {CURRENT_TENANT}) IS NULL AND failed_at IS NULL"
        return [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY {POLICY} ON {table} USING ({IS_CURRENT_TENANT})"
            f" WITH CHECK ({IS_CURRENT_TENANT})",
            f"CREATE POLICY workers_look ON {table} FOR SELECT"
            f" USING ({nobody} AND sweep_at IS NOT NULL)",
            f"CREATE POLICY workers_claim ON {table} FOR UPDATE"
            f" USING ({nobody} AND sweep_at <= statement_timestamp())"
            f" WITH CHECK ({nobody} AND sweep_at > statement_timestamp())",
            f"REVOKE UPDATE ON {table} FROM {APP_ROLE}",
            f"GRANT INSERT, DELETE, UPDATE (attempts, begun_at, error_code, last_error, due_at,"
            f" sweep_at, failed_at, held_for) ON {table} TO {APP_ROLE}",
        ]

    def backwards_sql(self, table: str) -> list[str]:
        policies = (POLICY, "workers_look", "workers_claim")
        return [
            f"REVOKE INSERT, UPDATE, DELETE ON {table} FROM {APP_ROLE}",
            *(f"DROP POLICY {policy} ON {table}" for policy in policies),
            f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY",
        ]

    def describe(self) -> str:
        return f"Let workers claim rows of {self.table}"


class Undo(Operation):
    """The reverse of an operation on one table, for a table that is removed."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, operation: TableOperation) -> None:
        self.operation = operation

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: Django's models do not change."""

    def database_forwards(self, *args: Any) -> None:
        self.operation.database_backwards(*args)

    def database_backwards(self, *args: Any) -> None:
        self.operation.database_forwards(*args)

    def describe(self) -> str:
        return f"Undo: {self.operation.describe()}"


class LetTenantsClaim(TableOperation):
    """Let a tenant add and remove its own rows of a public table. No session may change one.

    Sessions without a tenant can read all rows, to find a tenant by them. Only the owner removes
    rows there, together with the tenant.
    """

    def forwards_sql(self, table: str) -> list[str]:
        nobody = f"(SELECT {CURRENT_TENANT}) IS NULL"
        return [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY {POLICY} ON {table} FOR SELECT USING ({nobody} OR {IS_CURRENT_TENANT})",
            f"CREATE POLICY tenant_claims ON {table} FOR INSERT WITH CHECK ({IS_CURRENT_TENANT})",
            f"CREATE POLICY tenant_releases ON {table} FOR DELETE USING ({IS_CURRENT_TENANT})",
            f"CREATE POLICY owner_removes ON {table} FOR DELETE TO {OWNER_ROLE} USING ({nobody})",
            f"REVOKE UPDATE ON {table} FROM {APP_ROLE}",
        ]

    def backwards_sql(self, table: str) -> list[str]:
        policies = (POLICY, "tenant_claims", "tenant_releases", "owner_removes")
        return [
            f"GRANT UPDATE ON {table} TO {APP_ROLE}",
            *(f"DROP POLICY {policy} ON {table}" for policy in policies),
            f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY",
        ]

    def describe(self) -> str:
        return f"Let tenants claim rows of {self.table}"
