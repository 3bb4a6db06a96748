"""No table of a tenant's schema without tenant, policy and FORCE, whoever made it.

Our own migrations protect their tables themselves. A table that a library brings with its next
release has no migration of ours, so every full migrate of a schema ends here: such a table is
protected like the others, and the application may only read it until a migration grants more.
"""

from dataclasses import dataclass
from typing import Any

from tenants.exceptions import UnsealedSchema
from tenants.operations import POLICY, add_tenant_column_sql, protect_sql

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
           -- Permissive policies are joined by OR: a second one would open what ours closes.
           count(p.oid) FILTER (WHERE p.polname <> %(policy)s AND p.polpermissive) AS others
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_policy AS p ON p.polrelid = c.oid
    WHERE c.relkind IN ('r', 'p', 'm', 'f') AND n.nspname ~ %(schemas)s
    GROUP BY n.nspname, c.oid
    ORDER BY n.nspname, c.relname
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
    other_policies: int

    @property
    def is_sealed(self) -> bool:
        """Whether Postgres shows the current tenant's rows alone, to everybody."""
        return bool(self.has_tenant and self.forced and self.has_policy) and not self.other_policies

    @property
    def can_be_sealed(self) -> bool:
        """Whether it can have row-level security, and nothing undermines it."""
        return self.kind in ("r", "p") and self.has_tenant is not False and not self.other_policies


def unsealed_relations(cursor: Any, schemas: str) -> list[Relation]:
    """Return what is not protected in the schemas whose names match the regular expression."""
    cursor.execute(_RELATIONS, {"policy": POLICY, "schemas": schemas})
    relations = [Relation(*row) for row in cursor.fetchall()]
    return [relation for relation in relations if not relation.is_sealed]


def seal_schema(connection: Any) -> list[str]:
    """Protect every table of the connection's schema; return the names of those it had to.

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
            for statement in protect_sql(table):
                cursor.execute(statement)
    return [relation.name for relation in unsealed]
