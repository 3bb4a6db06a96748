"""Table of the names that channels and programs give to users."""

from typing import Final

from django.db import models
from django.db.models.functions import Now

from tenants.models import TenantModel
from tenants.personal_data import Merge, PersonalData

_MESSAGE_WITH_IT: Final = """
    SELECT FROM memory_message AS message
    WHERE message.user_id = memory_personname.user_id AND message.role = 'user'
      AND message.name = memory_personname.name
"""
_OF_PERSON: Final = f"""
    tenant_id = %(tenant)s AND user_id = ANY(%(users)s) AND (
        %(agent)s::uuid IS NULL
        OR NOT EXISTS ({_MESSAGE_WITH_IT} AND message.agent_id <> %(agent)s)
    )
"""
_WITHOUT_OTHER_MESSAGE: Final = f"""
    (user_id, name) IN (
        SELECT user_id, name FROM memory_message WHERE id = ANY(%(ids)s) AND role = 'user'
    ) AND NOT EXISTS ({_MESSAGE_WITH_IT} AND NOT message.id = ANY(%(ids)s))
"""  # noqa: S608  (our constants)
_MERGE: Final = """
    WITH moved AS (
        DELETE FROM memory_personname WHERE user_id = %(from)s RETURNING name, folded, first_seen
    )
    INSERT INTO memory_personname (user_id, name, folded, first_seen)
    SELECT %(to)s, name, folded, first_seen FROM moved ON CONFLICT DO NOTHING
"""


class PersonName(TenantModel):
    """A name that messages of a user have had, so that people are found by it. Append-only.

    The transcript's services write it, `memory.conversations.names`. No index serves the search for
    a part of a name: Postgres uses none for LIKE under row-level security.
    """

    pk = models.CompositePrimaryKey("user_id", "name")
    user_id = models.TextField("user", help_text="The user whose messages have the name.")
    name = models.TextField(help_text="The name, as the messages have it.")
    folded = models.TextField(help_text="The name without case and accents, to be searched.")
    first_seen = models.DateTimeField(
        db_default=Now(), help_text="Time of the first message with this name."
    )

    # An archive has the messages, from which the import makes these rows again.
    personal_data = PersonalData(
        subject="user_id",
        where=_OF_PERSON,
        derived=_WITHOUT_OTHER_MESSAGE,
        merge=Merge(for_user=(_MERGE,)),
    )

    class Meta:
        verbose_name = "name of a person"
        verbose_name_plural = "names of people"

    def __str__(self) -> str:
        return self.name
