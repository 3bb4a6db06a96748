"""Protects every table of a tenant's schema, including those of libraries.

Migrations of Konstruct give their tables a policy themselves. A table that a library adds in its
next release has no such migration, so every full migrate of a schema ends with `enforce_rls`: the
table gets a tenant, a policy, FORCE and a check, and the application may only read it until a
migration grants more.

Policy and check tie the rows to the schema: `tenant_id` is the id in the schema's name. The policy
shows and accepts rows while the session is in that tenant. The check also holds for roles that
bypass policies.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from tenants.context import fetch_column
from tenants.exceptions import UnprotectedSchema
from tenants.operations import CHECK, POLICY, add_tenant_column_sql, check_tenant_sql, protect_sql

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
    return set(fetch_column(_UNPROTECTED_SCHEMAS, values))


def enforce_rls(connection: Any) -> list[str]:
    """Protect every table of the connection's schema; return the names of those without a policy.

    Raises:
        UnprotectedSchema: something there cannot be protected.
    """
    with connection.cursor() as cursor:
        unprotected = unprotected_relations(cursor, f"^{connection.schema_name}$")
        hopeless = [relation.name for relation in unprotected if not relation.can_be_protected]
        if hopeless:
            raise UnprotectedSchema(
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
