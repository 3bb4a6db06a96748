"""No table of a tenant's schema without tenant, policy, FORCE and a check, whoever made it.

Our own migrations give their tables a policy themselves. A table that a library brings with its
next release has no migration of ours, so every full migrate of a schema ends here: such a table is
protected like the others, and the application may only read it until a migration grants more.

Policy and check tie the rows to the schema: `tenant_id` is the id that the schema is named after.
The policy shows and takes rows while the session is in that tenant. The check holds for who
bypasses policies too.
"""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from tenants.exceptions import UnsealedSchema
from tenants.naming import tenant_id_of
from tenants.operations.policies import POLICY, add_tenant_column_sql, protect_sql
from tenants.roles import APP_ROLE

CHECK = "tenant_of_schema"
# A policy is replaced in no time, once its table is free.
LOCK_TIMEOUT = "3s"

# Every relation that holds rows in tenants' schemas, with what protects it.
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
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_policy AS p ON p.polrelid = c.oid
    WHERE c.relkind IN ('r', 'p', 'm', 'f') AND n.nspname ~ %(schemas)s
    GROUP BY n.nspname, c.oid
    ORDER BY n.nspname, c.relname
"""


# Identity columns need no privilege, and one tenant must not use up another's numbers.
_GRANTED_SEQUENCES = """
    SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND CASE WHEN c.relkind = 'S'
        THEN has_sequence_privilege(%s, c.oid, 'USAGE, SELECT, UPDATE') ELSE false END
"""


@dataclass(frozen=True)
class Relation:
    """A table (or what can be read like one) in a tenant's schema."""

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
        """Whether Postgres shows the current tenant's rows alone, to everybody."""
        return bool(self.has_tenant and self.forced and self.has_policy) and not self.other_policies

    @property
    def is_sealed(self) -> bool:
        """Whether it is protected, and takes no other tenant's rows."""
        return self.is_protected and self.names_tenant and self.has_check

    @property
    def can_be_sealed(self) -> bool:
        """Whether it can have row-level security, and nothing undermines it."""
        return self.kind in ("r", "p") and self.has_tenant is not False and not self.other_policies


def unsealed_relations(cursor: Any, schemas: str) -> list[Relation]:
    """Return what is not protected in the schemas whose names match the regular expression."""
    cursor.execute(_RELATIONS, {"policy": POLICY, "check": CHECK, "schemas": schemas})
    relations = [Relation(*row) for row in cursor.fetchall()]
    return [relation for relation in relations if not relation.is_sealed]


def seal_schema(connection: Any) -> list[str]:
    """Protect every table of the connection's schema; return the names of those without a policy.

    Raises:
        UnsealedSchema: something there cannot be protected.
    """
    with connection.cursor() as cursor:
        unsealed = unsealed_relations(cursor, f"^{connection.schema_name}$")
        hopeless = [relation.name for relation in unsealed if not relation.can_be_sealed]
        if hopeless:
            raise UnsealedSchema(
                f"row-level security cannot protect {', '.join(hopeless)}: materialized views,"
                " foreign tables, further permissive policies and a tenant_id that may be null"
                " have no place in a tenant's schema"
            )
        quote = connection.ops.quote_name
        for relation in unsealed:
            table = f"{quote(relation.schema)}.{quote(relation.name)}"
            if relation.has_tenant is None:
                cursor.execute(add_tenant_column_sql(table))
            if not relation.is_protected or not relation.names_tenant:
                # At once, so that no moment is without a policy, and not waiting behind a long
                # query while everybody else waits behind us.
                with transaction.atomic(using=connection.alias):
                    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
                    for statement in protect_sql(table):
                        cursor.execute(statement)
            if not relation.has_check:
                for statement in check_tenant_sql(table, connection.schema_name):
                    cursor.execute(statement)
        cursor.execute(_GRANTED_SEQUENCES, [connection.schema_name, APP_ROLE])
        for (sequence,) in cursor.fetchall():
            cursor.execute(f"REVOKE ALL ON SEQUENCE {sequence} FROM {APP_ROLE}")
    return [relation.name for relation in unsealed if not relation.is_protected]


def check_tenant_sql(table: str, schema_name: str) -> list[str]:
    """Statements that tie the rows of a table to the tenant of its schema.

    The rows that stand are looked at without keeping anybody from writing. ``table`` is quoted.
    """
    return [
        f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {CHECK}, ADD CONSTRAINT {CHECK}"
        f" CHECK (tenant_id = '{tenant_id_of(schema_name)}'::uuid) NOT VALID",
        f"ALTER TABLE {table} VALIDATE CONSTRAINT {CHECK}",
    ]
