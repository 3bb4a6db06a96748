"""The linked ids of a person, and whether rows with them exist."""

from collections.abc import Sequence

from django.db.models import Q

from konstruct.orchestrator.models import ChannelIdentity
from tenants.context import fetch_column, fetch_value
from tenants.personal_data import OnErasure, personal_tables

# UNION removes ids that were found before, so that the recursion ends.
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
    """Return these ids, followed by all ids that are linked to them.

    Links are followed in both directions, and through chains. Removed links are ignored.
    """
    ids = set(fetch_column(_LINKED, [list(user_ids)]))
    return [*user_ids, *sorted(ids - set(user_ids))]


def main_id(user_id: str) -> str:
    """Return the id of the user that an id is linked to; the id itself if it is not linked."""
    linked = ChannelIdentity.objects.filter(own_id=user_id).values_list("user_id", flat=True)
    return linked.first() or user_id


def users_of_accounts(text: str, limit: int = 1000) -> list[str]:
    """Return the ids of the users of channel accounts with this text in their id or their name."""
    matches = Q(own_id__icontains=text) | Q(native_id=text) | Q(name__icontains=text)
    user_ids = ChannelIdentity.objects.filter(matches).values_list("user_id", flat=True)
    return sorted(set(user_ids.order_by()[:limit]))


def is_known(user_ids: Sequence[str]) -> bool:
    """Return whether any row of the current tenant has one of these ids."""
    probes = " OR ".join(
        f"EXISTS (SELECT FROM {table} WHERE {subject} = ANY(%(users)s))"
        for table, data in personal_tables().items()
        if data.on_erasure is OnErasure.DELETE
        for subject in data.subjects
    )
    return bool(fetch_value(f"SELECT {probes}", {"users": list(user_ids)}))
