"""Reversible migration operations, and the row-level security of tables that libraries make.

The operations are policies, grants, column storage, indexes and comments.

They change the current schema only. Names of tables are always qualified, so that a missing table
of a tenant is an error instead of the table with that name in public.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.postgres import operations
from django.db import router, transaction  # noqa: TID251 (of the connection that is migrated)
from django.db.migrations.operations.base import Operation

from tenants import context, exceptions, fields, naming

POLICY: Final = "tenant_isolation"
CHECK: Final = "tenant_of_schema"

# Comments on columns that many tables have, with fields without a help text.
COMMENTS: Final = {
    "id": "Id of the row.",
    "tenant_id": "The tenant whose row this is.",
    "embedding": "Vector of the text, by the model that embedding_model names.",
}


def protect_sql(table: str) -> list[str]:
    """Return the statements that make Postgres show and accept only the current tenant's rows.

    FORCE includes the table's owner. The statements can be repeated: `enforce_rls` may have
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
    tenant_id = naming.tenant_id_of(table.partition(".")[0].strip('"'))
    if tenant_id is None:
        return fields.IS_CURRENT_TENANT
    # Postgres evaluates a part without columns once per statement, before it reads a row.
    is_entered = f"(SELECT {fields.CURRENT_TENANT}) = '{tenant_id}'::uuid"
    return f"tenant_id = '{tenant_id}'::uuid AND {is_entered}"


def check_tenant_sql(table: str) -> str:
    """Return clauses of ALTER TABLE that tie rows to the tenant of their schema; none in public.

    The check also holds for roles that bypass policies. ``table`` is qualified and quoted.
    """
    tenant_id = naming.tenant_id_of(table.partition(".")[0].strip('"'))
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
        f" ADD COLUMN IF NOT EXISTS tenant_id uuid NOT NULL DEFAULT ({fields.CURRENT_TENANT})"
    )


class TableOperation(Operation):
    """Statements about one table, which change no model state of Django."""

    def __init__(self, table: str) -> None:
        self.table = table

    def forwards_sql(self, table: str) -> list[str]:
        """Return the statements. ``table`` is qualified and quoted."""
        raise NotImplementedError

    def backwards_sql(self, table: str) -> list[str]:
        """Return the statements that undo it. ``table`` is qualified and quoted."""
        raise NotImplementedError

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: Django's models do not change."""

    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        self._run(app_label, schema_editor, self.forwards_sql)

    def database_backwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        self._run(app_label, schema_editor, self.backwards_sql)

    def _run(self, app_label: str, schema_editor: Any, make_statements: Any) -> None:
        connection = schema_editor.connection
        if router.allow_migrate(connection.alias, app_label):
            quote = connection.ops.quote_name
            table = f"{quote(connection.schema_name)}.{quote(self.table)}"
            for statement in make_statements(table):
                schema_editor.execute(statement, params=None)


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


class AddTenantColumn(TableOperation):
    """Add tenant_id to a table that Django or a library defines."""

    def forwards_sql(self, table: str) -> list[str]:
        return [add_tenant_column_sql(table)]

    def backwards_sql(self, table: str) -> list[str]:
        return [f"ALTER TABLE {table} DROP COLUMN tenant_id"]


class GrantToApp(TableOperation):
    """Grant the application role more than SELECT, which it has on every table.

    Postgres refuses privileges without a grant (UPDATE and DELETE on an append-only table).
    A privilege may name columns: ``GrantToApp("agent", "INSERT", "UPDATE (name, persona)")``.
    """

    def __init__(self, table: str, *privileges: str) -> None:
        super().__init__(table)
        self.privileges = ", ".join(privileges)

    def forwards_sql(self, table: str) -> list[str]:
        return [f"GRANT {self.privileges} ON {table} TO {naming.APP_ROLE}"]

    def backwards_sql(self, table: str) -> list[str]:
        return [f"REVOKE {self.privileges} ON {table} FROM {naming.APP_ROLE}"]


def protect_tables(privileges: Mapping[str, Sequence[str]]) -> list[TableOperation]:
    """Return the operations that protect new tables and grant privileges to the application.

    Args:
        privileges: by table, the privileges besides SELECT, as GrantToApp takes them.
    """
    return [
        *map(ForceRowLevelSecurity, privileges),
        *(GrantToApp(table, *granted) for table, granted in privileges.items() if granted),
    ]


class VectorStoragePlain(TableOperation):
    """Keep the values of the column `embedding` inside the row instead of in a side table.

    An exact scan of 10k rows of 384 dimensions with long texts takes 3.5 ms instead of 15.3.
    """

    def forwards_sql(self, table: str) -> list[str]:
        return [f"ALTER TABLE {table} ALTER COLUMN embedding SET STORAGE PLAIN"]

    def backwards_sql(self, table: str) -> list[str]:
        return [f"ALTER TABLE {table} ALTER COLUMN embedding SET STORAGE DEFAULT"]


class DropIndex(TableOperation):
    """Drop an index that no model of Konstruct declares, such as one of Django's, if it exists."""

    def __init__(self, table: str, name: str, columns: str) -> None:
        """Name the index, and the columns with which it is built again in a downgrade."""
        super().__init__(table)
        self.name, self.columns = name, columns

    def forwards_sql(self, table: str) -> list[str]:
        return [f'DROP INDEX IF EXISTS {table.partition(".")[0]}."{self.name}"']

    def backwards_sql(self, table: str) -> list[str]:
        return [f'CREATE INDEX IF NOT EXISTS "{self.name}" ON {table} ({self.columns})']


class CommentOnTables(Operation):
    """Comment the tables of an app's models, and each of their columns with its help text.

    One operation for all tables of an app. Django's own `db_comment` would need an AlterField for
    each column, each of which renders the models anew, for each tenant: seconds instead of
    milliseconds. A later column gets its comment from another operation of this kind; an empty
    comment leaves that of the table. A downgrade leaves comments, which older code ignores.
    """

    def __init__(self, tables: Mapping[str, str]) -> None:
        self.tables = dict(tables)

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: Django's models do not change."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        connection = schema_editor.connection
        if not router.allow_migrate(connection.alias, app_label):
            return
        quote, text = connection.ops.quote_name, schema_editor.quote_value
        statements = []
        for name, comment in self.tables.items():
            options = to_state.apps.get_model(app_label, name)._meta
            table = f"{quote(connection.schema_name)}.{quote(options.db_table)}"
            if comment:
                statements.append(f"COMMENT ON TABLE {table} IS {text(comment)}")
            for field in options.local_concrete_fields:
                said = str(field.help_text) or COMMENTS.get(field.column) or str(field.verbose_name)
                column = f"{table}.{quote(field.column)}"
                statements.append(f"COMMENT ON COLUMN {column} IS {text(said)}")
        schema_editor.execute(";\n".join(statements), params=None)

    def database_backwards(self, *_: Any) -> None:
        """Nothing."""


class AddIndexConcurrently(operations.AddIndexConcurrently):
    """Django's `AddIndexConcurrently`, which can be run again.

    Django's fails when the index exists. A migration with this operation is no transaction, so an
    interrupted one is run again from its start. An interrupted build leaves an invalid index, which
    is dropped (Django says IF EXISTS) and built again.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        super().database_backwards(app_label, schema_editor, to_state, from_state)
        super().database_forwards(app_label, schema_editor, from_state, to_state)


# --- Row-level security of every table -----------------------------------------------------------
#
# Migrations of Konstruct give their tables a policy themselves. A table that a library adds in its
# next release has no such migration, so every full migrate of a schema ends with `enforce_rls`: the
# table gets a tenant, a policy, FORCE and a check, and the application may only read it until a
# migration grants more.
#
# Policy and check tie the rows to the schema: `tenant_id` is the id in the schema's name. The
# policy shows and accepts rows while the session is in that tenant. The check also holds for roles
# that bypass policies.

# Replacing a policy takes no time once its table is not locked.
LOCK_TIMEOUT = "3s"

# Every relation with rows in tenants' schemas, and its protection.
_RELATIONS = """
    SELECT n.nspname, c.relname, c.relkind,
           (
               SELECT a.atttypid = 'uuid'::regtype AND a.attnotnull
               FROM pg_attribute AS a
               WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
           ) AS has_tenant,
           c.relrowsecurity AND c.relforcerowsecurity AS forced,
           count(p.oid) FILTER (
               WHERE p.polname = %(policy)s AND p.polpermissive AND p.polcmd = '*'
                 AND p.polroles = '{0}'
                 AND pg_get_expr(p.polqual, c.oid) LIKE '%%app.current_tenant%%'
                 AND pg_get_expr(p.polqual, c.oid) = pg_get_expr(p.polwithcheck, c.oid)
           ) = 1 AS has_policy,
           count(p.oid) FILTER (
               WHERE p.polname = %(policy)s AND pg_get_expr(p.polqual, c.oid) LIKE
                     format('%%%%(tenant_id = %%L::uuid)%%%%', substr(n.nspname, 3)::uuid)
           ) = 1 AS names_tenant,
           EXISTS (
               SELECT FROM pg_constraint AS k
               WHERE k.conrelid = c.oid AND k.conname = %(check)s AND k.convalidated
                 AND pg_get_constraintdef(k.oid)
                     = format('CHECK ((tenant_id = %%L::uuid))', substr(n.nspname, 3)::uuid)
           ) AS has_check,
           -- Permissive policies are joined by OR: a second one would open what ours closes.
           count(p.oid) FILTER (WHERE p.polname <> %(policy)s AND p.polpermissive) AS others
    -- By what depends on the schema, for there is no index of relations by their schema.
    FROM pg_namespace AS n
    JOIN pg_depend AS d ON d.refobjid = n.oid AND d.refclassid = 'pg_namespace'::regclass
        AND d.classid = 'pg_class'::regclass
    JOIN pg_class AS c ON c.oid = d.objid
    LEFT JOIN pg_policy AS p ON p.polrelid = c.oid
    WHERE c.relkind IN ('r', 'p', 'm', 'f') AND n.nspname ~ %(schemas)s
    GROUP BY n.nspname, c.oid
    ORDER BY n.nspname, c.relname
"""


# Schemas with an unprotected relation. The text of policies is not compared, which takes ten times
# as long: `manage.py check` does that.
_UNPROTECTED_SCHEMAS = """
    SELECT DISTINCT n.nspname
    FROM pg_namespace AS n
    JOIN pg_depend AS d ON d.refobjid = n.oid AND d.refclassid = 'pg_namespace'::regclass
        AND d.classid = 'pg_class'::regclass
    JOIN pg_class AS c ON c.oid = d.objid
    WHERE n.nspname ~ %(schemas)s AND c.relkind IN ('r', 'p', 'm', 'f')
        AND NOT (
            c.relrowsecurity AND c.relforcerowsecurity
            AND (SELECT array_agg(p.polname) FROM pg_policy AS p
                 WHERE p.polrelid = c.oid AND p.polpermissive) = ARRAY[%(policy)s::name]
            AND EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = c.oid
                        AND k.conname = %(check)s AND k.convalidated)
        )
"""


@dataclass(frozen=True)
class Relation:
    """A relation with rows in a tenant's schema."""

    schema: str
    name: str
    kind: str
    has_tenant: bool | None  # None: no tenant_id; False: one that may be null, or is no uuid
    forced: bool
    has_policy: bool
    names_tenant: bool
    has_check: bool
    other_policies: int

    @property
    def is_protected(self) -> bool:
        """Whether Postgres shows only the current tenant's rows, to every role."""
        return bool(self.has_tenant and self.forced and self.has_policy) and not self.other_policies

    @property
    def is_enforced(self) -> bool:
        """Whether it is protected, and accepts no row of another tenant."""
        return self.is_protected and self.names_tenant and self.has_check

    @property
    def can_be_protected(self) -> bool:
        """Whether it can have row-level security that no other policy undermines."""
        return self.kind in ("r", "p") and self.has_tenant is not False and not self.other_policies


def unprotected_relations(cursor: Any, schemas: str) -> list[Relation]:
    """Return the unprotected relations in schemas with names that match the expression."""
    cursor.execute(_RELATIONS, {"policy": POLICY, "check": CHECK, "schemas": schemas})
    relations = [Relation(*row) for row in cursor.fetchall()]
    return [relation for relation in relations if not relation.is_enforced]


def unprotected_schemas(schemas: str) -> set[str]:
    """Return the schemas with matching names that have a relation without policy or check."""
    values = {"policy": POLICY, "check": CHECK, "schemas": schemas}
    return set(context.fetch_column(_UNPROTECTED_SCHEMAS, values))


def enforce_rls(connection: Any) -> list[str]:
    """Protect every table of the connection's schema; return the names of those without a policy.

    Raises:
        UnprotectedSchema: something there cannot be protected.
    """
    with connection.cursor() as cursor:
        unprotected = unprotected_relations(cursor, f"^{connection.schema_name}$")
        hopeless = [relation.name for relation in unprotected if not relation.can_be_protected]
        if hopeless:
            raise exceptions.UnprotectedSchema(
                f"row-level security cannot protect {', '.join(hopeless)}: materialized views,"
                " foreign tables, further permissive policies and a tenant_id that may be null"
                " have no place in a tenant's schema"
            )
        for relation in unprotected:
            for statements in _statements_for(relation):
                # In one transaction, so that there is always a policy, and with a short lock
                # timeout, because other sessions would queue behind a waiting ALTER TABLE.
                with transaction.atomic(using=connection.alias):
                    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                    for statement in statements:
                        cursor.execute(statement)
    return [relation.name for relation in unprotected if not relation.is_protected]


def _statements_for(relation: Relation) -> Iterator[list[str]]:
    """Yield the statements that protect a relation, divided into transactions."""
    table = f'"{relation.schema}"."{relation.name}"'
    if relation.has_tenant is None:
        yield [add_tenant_column_sql(table)]
    if not relation.is_protected or not relation.names_tenant:
        yield protect_sql(table)
    if not relation.has_check:
        # Separately: the second takes long, and blocks no writer.
        yield [f"ALTER TABLE {table} {check_tenant_sql(table)} NOT VALID"]
        yield [f"ALTER TABLE {table} VALIDATE CONSTRAINT {CHECK}"]
