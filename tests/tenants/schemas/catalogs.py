"""The catalogue of a tenant's schema as comparable lines."""

import re
from typing import Any

from tenants.context import connection, server_scope, tenant_scope
from tenants.models import Tenant

_CATALOG = """
WITH t AS (SELECT * FROM pg_class WHERE relnamespace = %(schema)s::regnamespace)
SELECT concat_ws(' ', 'relation', relname, relkind, relpersistence, 'rls', relrowsecurity,
                 relforcerowsecurity, 'options', reloptions, 'acl', relacl,
                 'owner', relowner::regrole, 'method', amname, 'replica', relreplident)
FROM t LEFT JOIN pg_am ON pg_am.oid = relam
UNION ALL
SELECT concat_ws(' ', 'column', relname, attname,
                 'place', row_number() OVER (PARTITION BY relname ORDER BY attnum),
                 format_type(atttypid, atttypmod), 'not null', attnotnull,
                 'identity', attidentity, 'generated', attgenerated, 'storage', attstorage,
                 'compression', attcompression, 'statistics', attstattarget, 'acl', attacl,
                 'options', attoptions, 'collation', attcollation,
                 'default', pg_get_expr(adbin, adrelid))
FROM t JOIN pg_attribute ON attrelid = t.oid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attnum > 0 AND NOT attisdropped
UNION ALL
SELECT concat_ws(' ', 'index', pg_get_indexdef(indexrelid), 'valid', indisvalid,
                 'primary', indisprimary, 'clustered', indisclustered, 'replica', indisreplident)
FROM t JOIN pg_index ON indexrelid = t.oid
UNION ALL
SELECT concat_ws(' ', 'constraint', relname, conname, pg_get_constraintdef(c.oid),
                 'valid', convalidated, 'deferrable', condeferrable, condeferred)
FROM t JOIN pg_constraint AS c ON conrelid = t.oid
UNION ALL
SELECT concat_ws(' ', 'policy', relname, polname, polcmd, polpermissive, polroles::regrole[],
                 'using', pg_get_expr(polqual, polrelid),
                 'check', pg_get_expr(polwithcheck, polrelid))
FROM t JOIN pg_policy ON polrelid = t.oid
UNION ALL
SELECT concat_ws(' ', 'comment', relname, attname, description)
FROM t JOIN pg_description AS d ON d.objoid = t.oid AND d.classoid = 'pg_class'::regclass
LEFT JOIN pg_attribute ON attrelid = t.oid AND attnum = objsubid AND objsubid > 0
UNION ALL
SELECT concat_ws(' ', 'comment on', conname, description)
FROM t JOIN pg_constraint AS c ON conrelid = t.oid
JOIN pg_description ON objoid = c.oid AND classoid = 'pg_constraint'::regclass
UNION ALL
SELECT concat_ws(' ', 'sequence', relname, format_type(seqtypid, NULL), seqstart, seqincrement,
                 seqmin, seqmax, seqcache, seqcycle, 'owned by', refobjid::regclass, attname)
FROM t JOIN pg_sequence ON seqrelid = t.oid
LEFT JOIN pg_depend ON objid = t.oid AND classid = 'pg_class'::regclass AND deptype IN ('a', 'i')
LEFT JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid
UNION ALL
SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(g.oid))
FROM t JOIN pg_trigger AS g ON tgrelid = t.oid WHERE NOT tgisinternal
UNION ALL
SELECT concat_ws(' ', 'function', pg_get_functiondef(oid))
FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
UNION ALL
SELECT concat_ws(' ', 'type', typname, typtype)
FROM pg_type WHERE typnamespace = %(schema)s::regnamespace
UNION ALL
SELECT concat_ws(' ', 'statistics', pg_get_statisticsobjdef(oid))
FROM pg_statistic_ext WHERE stxnamespace = %(schema)s::regnamespace
UNION ALL
SELECT concat_ws(' ', 'schema', 'owner', nspowner::regrole, 'acl', nspacl)
FROM pg_namespace WHERE oid = %(schema)s::regnamespace
"""


# Postgres shows `ARRAY['a'::varchar]::text[]` as `ARRAY['a'::varchar::text]` when it reads its own
# output again, as from a dump.
_CASTS = re.compile(r"::(text|character varying)(\[\])?|[()]")


def catalog(tenant: Tenant) -> list[str]:
    """Return the objects of the schema, without its name and its tenant's id."""
    with server_scope(tenant.server), connection.cursor() as cursor:
        cursor.execute(_CATALOG, {"schema": tenant.schema_name})
        return sorted(_CASTS.sub("", _nameless(tenant, line)) for (line,) in cursor.fetchall())


_UNNUMBERED = {
    "auth_group": "SELECT name, tenant_id FROM auth_group",
    "django_content_type": "SELECT app_label, model, tenant_id FROM django_content_type",
    "auth_permission": "SELECT app_label, model, p.name, codename, p.tenant_id"
    " FROM auth_permission AS p JOIN django_content_type AS t ON t.id = content_type_id",
    "auth_group_permissions": "SELECT g.name, codename, r.tenant_id"
    " FROM auth_group_permissions AS r"
    " JOIN auth_permission AS p ON p.id = permission_id JOIN auth_group AS g ON g.id = group_id",
}


def rows(tenant: Tenant, *, numbered: bool = True) -> dict[str, list[Any]]:
    """Return all rows of the schema, and the state of its sequences, without times and orders.

    Unless `numbered`, also without the numbers that rows get in order of insertion.
    """
    found: dict[str, list[Any]] = {}
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, relkind FROM pg_class WHERE relkind IN ('r', 'S')"
            " AND relnamespace = %s::regnamespace ORDER BY relname",
            [tenant.schema_name],
        )
        for name, kind in cursor.fetchall():
            if kind == "S" and not numbered:
                continue
            columns = "last_value, is_called" if kind == "S" else "*"
            if name == "django_migrations":
                columns = "app, name"
            query = f'SELECT {columns} FROM {tenant.schema_name}."{name}"'
            cursor.execute(query if numbered else _UNNUMBERED.get(name, query))
            found[name] = sorted(
                [_nameless(tenant, str(value)) for value in row] for row in cursor.fetchall()
            )
    return found


def _nameless(tenant: Tenant, text: str) -> str:
    return text.replace(tenant.schema_name, "SCHEMA").replace(str(tenant.id), "TENANT")
