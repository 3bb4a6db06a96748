"""Whether the main database can be logged in to, and has room to write."""

from contextlib import closing
from typing import cast

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections

from tenants.outages import outage_reason
from tenants.postgresql.base import DatabaseWrapper
from tenants.postgresql.exceptions import NotWritable

# Sorts more rows than fit into work_mem, so Postgres writes a temporary file of a megabyte. Like an
# INSERT this fails when the disk is full. It takes some milliseconds, needs no table, and leaves no
# file. A standby or read-only server reports transaction_read_only.
_LITTLE_MEMORY = "SET LOCAL work_mem = '64kB'"
_SPILL = """
SELECT current_setting('transaction_read_only')
FROM (SELECT count(*) FROM (SELECT n FROM generate_series(1, 20000) AS n ORDER BY -n) AS sorted)
"""


def require_writable() -> None:
    """Open a new connection to the main database, and let it write a temporary file.

    Raises:
        OperationalError: it takes no connection, or refuses the login.
        NotWritable: it has no room left, or is read-only.
    """
    with closing(cast(DatabaseWrapper, connections[DEFAULT_DB_ALIAS].copy())) as probe:
        probe.ensure_connection()
        try:
            is_read_only = probe.ask(_SPILL, first=_LITTLE_MEMORY) != b"off"
        except DatabaseError as error:
            raise NotWritable(outage_reason(error)) from error
    if is_read_only:
        raise NotWritable("transaction_read_only is on")
