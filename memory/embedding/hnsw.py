"""Searching by the HNSW index on purpose, and far enough to meet the rows of one scope."""

from collections.abc import Iterator
from contextlib import contextmanager

from memory.conf import HNSW_EF_SEARCH, HNSW_MAX_SCAN_TUPLES
from tenants import transaction
from tenants.context import tenant_connection


@contextmanager
def walking_hnsw() -> Iterator[None]:
    """Do the block's one query, a read ordered by distance, through the HNSW index.

    It goes on until enough rows of the scope were met, or `HNSW_MAX_SCAN_TUPLES` rows of anybody.
    The settings leave no trace in an outer transaction.
    """
    with transaction.atomic():
        tenant_connection().set_local(
            {
                "hnsw.iterative_scan": "relaxed_order",
                "hnsw.ef_search": str(HNSW_EF_SEARCH),
                "hnsw.max_scan_tuples": str(HNSW_MAX_SCAN_TUPLES),
                # Without sorts only the index has the order, and the planner no other choice.
                "enable_sort": "off",
            }
        )
        yield
        transaction.set_rollback(True)
