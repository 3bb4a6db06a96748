"""The size of an empty tenant: each index takes 8 kB in every schema."""

from tenants.context import connection, tenant_scope
from tenants.models import Tenant

# Plain indexes whose columns are a prefix of another index.
_REPEATED = """
    SELECT a.indexrelid::regclass::text, b.indexrelid::regclass::text
    FROM pg_index AS a
    JOIN pg_class AS c ON c.oid = a.indexrelid AND c.relnamespace = %s::regnamespace
    JOIN pg_index AS b ON b.indrelid = a.indrelid AND b.indexrelid <> a.indexrelid
        AND b.indpred IS NULL AND b.indkey::text || ' ' LIKE a.indkey::text || ' %%'
    WHERE NOT a.indisunique AND a.indpred IS NULL AND a.indexprs IS NULL
        AND a.indnatts <= b.indnkeyatts
        AND b.indclass[0:a.indnkeyatts - 1] = a.indclass[0:a.indnkeyatts - 1]
        AND b.indoption[0:a.indnkeyatts - 1] = a.indoption[0:a.indnkeyatts - 1]
"""


def test_no_index_repeats_the_beginning_of_another(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id), connection.cursor() as cursor:
        cursor.execute(_REPEATED, [tenant_a.schema_name])
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'i'"
            " AND relname LIKE '%%\\_like'",
            [tenant_a.schema_name],
        )
        assert cursor.fetchall() == []
