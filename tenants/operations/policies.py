"""Reversible migration operations: policies, grants, column storage.

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
from tenants.roles import APP_ROLE

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
