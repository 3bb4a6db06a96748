"""The ids of a person, which are linked to one another, and whether any row has one."""

from collections.abc import Sequence

from tenants.context import fetch_column, fetch_value
from tenants.personal_data import OnErasure, personal_tables

# UNION leaves out who was found before, so that it ends.
_LINKED = """
    WITH RECURSIVE person (user_id) AS (
        SELECT unnest(%s::text[])
        UNION
        SELECT unnest(ARRAY[identity.own_id, identity.user_id])
        FROM person JOIN orchestrator_channelidentity AS identity
          ON person.user_id IN (identity.own_id, identity.user_id)
    )
    SELECT user_id FROM person
"""


def linked_ids(*user_ids: str) -> list[str]:
    """Return every id of the person whom a user id names: it first, then those linked to it.

    Of several ids, those of all these people. A link is followed both ways and through chains. One
    that was taken back is none.
    """
    found = set(fetch_column(_LINKED, [list(user_ids)]))
    return [*user_ids, *sorted(found - set(user_ids))]


def is_known(user_ids: Sequence[str]) -> bool:
    """Tell whether any row names one of these ids, in the current tenant."""
    probes = " OR ".join(
        f"EXISTS (SELECT FROM {table} WHERE {subject} = ANY(%(users)s))"
        for table, of in personal_tables().items()
        if of.on_erasure is OnErasure.DELETE
        for subject in of.subjects
    )
    return bool(fetch_value(f"SELECT {probes}", {"users": list(user_ids)}))
