"""Searching by the HNSW index on purpose, and far enough to meet the rows of one scope."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from memory.conf import HNSW_EF_SEARCH, HNSW_MAX_SCAN_TUPLES


@contextmanager
def walking_hnsw() -> Iterator[None]:
    """Do the block's one query, a read ordered by distance, through the HNSW index.

    It goes on until enough rows of the scope were met, or `HNSW_MAX_SCAN_TUPLES` rows of anybody.
    The settings leave no trace in an outer transaction.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),"
                " set_config('hnsw.ef_search', %s, true),"
                " set_config('hnsw.max_scan_tuples', %s, true),"
                # Without sorts only the index has the order, and the planner no other choice.
                " set_config('enable_sort', 'off', true)",
                [str(HNSW_EF_SEARCH), str(HNSW_MAX_SCAN_TUPLES)],
            )
        yield
        transaction.set_rollback(True)
