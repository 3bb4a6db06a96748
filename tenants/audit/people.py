"""People: the pseudonym of each user in the access log, and the lock against an erasure.

Receipts and the journal have keyed digests of erased users instead of their ids. A reader who knows
an id can find its receipt; a reader who does not cannot recover the id
(docs/decisions/0028-the-access-log-has-pseudonyms-receipts-have-digests.md).

Each code that writes rows of a user calls `hold_people` in the transaction of its write. It refuses
a user that is being erased, and an erasure waits for the transactions that have called it. What
waits for a language model between reading and writing calls it twice: `since` refuses what was
begun before an erasure that is done meanwhile.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import F

from tenants import context, exceptions, fields, transaction
from tenants.models import TenantModel
from tenants.personal_data import Merge, OnErasure, PersonalData
from tenants.secret_keys import keyed_digest, secrets

# A row that another transaction inserts at the same time is found by the second attempt.
MAX_ATTEMPTS: Final = 3
RETRY_AFTER_SECONDS: Final = 10
_BEING_ERASED: Final = """
    EXISTS (
        SELECT FROM audit_erasurerequest AS request
        WHERE done_at IS NULL AND person.user_id = ANY(request.user_ids)
          AND (request.agent_id IS NULL OR request.agent_id = ANY(%(agents)s::uuid[]))
    )
"""
_HOLD: Final = f"""
    WITH held AS MATERIALIZED (
        SELECT user_id, pseudonym, erasures FROM audit_person
        WHERE user_id = ANY(%(users)s) ORDER BY user_id FOR KEY SHARE
    ), added AS (
        INSERT INTO audit_person (user_id)
        SELECT wanted.id FROM unnest(%(users)s::text[]) AS wanted (id)
        WHERE wanted.id NOT IN (SELECT user_id FROM held) ORDER BY wanted.id
        ON CONFLICT DO NOTHING RETURNING user_id, pseudonym, erasures
    )
    SELECT user_id, pseudonym || ':' || erasures, {_BEING_ERASED}
    FROM (SELECT * FROM held UNION ALL SELECT * FROM added) AS person
"""  # noqa: S608  (our constants)
_ADD: Final = """
    INSERT INTO audit_person (user_id) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING
"""
_LOCALES: Final = """
    SELECT user_id, language, coalesce(nullif(time_zone, ''), channel_time_zone)
    FROM audit_person WHERE user_id = ANY(%s)
"""
_LOCK: Final = "SELECT FROM audit_person WHERE user_id = ANY(%s) ORDER BY user_id FOR UPDATE"


class PersonBeingErased(exceptions.KonstructError):
    """An erasure of the person is requested and not done, or was done since the request began."""

    retry_after = RETRY_AFTER_SECONDS


class Person(TenantModel):
    """A user with rows in the tenant, and the pseudonym by which the access log names them.

    Programs set name, language and metadata; `lock_person` returns the row to change.
    """

    user_id = models.TextField("user", primary_key=True, help_text="Id of the user.")
    pseudonym = models.UUIDField(
        unique=True,
        editable=False,
        db_default=RandomUUID(),
        help_text="Random id of the user in the access log. It is deleted with this row.",
    )
    erasures = models.PositiveIntegerField(
        db_default=0, editable=False, help_text="Number of erasures of the user by one agent."
    )
    time_zone = fields.optional_text(
        help_text="The time zone that was chosen for the user, such as Asia/Tokyo."
    )
    channel_time_zone = fields.optional_text(
        help_text="The time zone that the channel reports, if none was chosen."
    )

    chosen_name = fields.optional_text(help_text="The name that a program set.")
    language = fields.optional_text(
        help_text="The user's language, such as de or pt-BR, in which Latin words of messages and "
        "questions are searched, unless the agent has a language."
    )
    metadata = fields.json_object(blank=True, help_text="Metadata of programs.")

    personal_data = PersonalData(
        subject="user_id",
        on_erasure=OnErasure.LAST,
        merge=Merge(unchanged="entries about the earlier id stay found by it"),
    )

    class Meta:
        verbose_name = "person"
        verbose_name_plural = "people"

    def __str__(self) -> str:
        return self.user_id


def set_time_zone(user_ids: Collection[str], name: str, *, is_of_channel: bool = False) -> None:
    """Set the time zone of users of the current tenant.

    Args:
        user_ids: the ids of one person.
        name: a name such as Asia/Tokyo; empty: none.
        is_of_channel: a channel reports it. A time zone that was chosen comes first.

    Raises:
        PersonBeingErased: an erasure of a user is requested, and not done yet.
    """
    field = "channel_time_zone" if is_of_channel else "time_zone"
    with transaction.atomic():
        hold_people(user_ids)
        Person.objects.filter(pk__in=user_ids).exclude(**{field: name}).update(**{field: name})


def lock_person(user_id: str) -> Person:
    """Return the row of a user, which is made if there is none, locked until the transaction ends.

    Raises PersonBeingErased if an erasure of the user is requested, and not done yet.
    """
    hold_people([user_id])
    return Person.objects.select_for_update(no_key=True).get(pk=user_id)


class Locale(NamedTuple):
    """The language and the time zone of a user or an agent, or ""."""

    language: str = ""
    time_zone: str = ""

    def zone(self, agents: str = "") -> ZoneInfo:
        """Return the time zone of a user, or else the agent's, or else UTC."""
        return ZoneInfo(self.time_zone or agents or "UTC")


NO_LOCALE: Final = Locale()


def locales_of(user_ids: Collection[str | None]) -> dict[str | None, Locale]:
    """Return the locales of users of the current tenant, without those of unknown users."""
    rows = context.fetch_all(_LOCALES, [list(user_ids)])
    return {user_id: Locale(*values) for user_id, *values in rows}


def time_zone_of(user_id: str | None, agents: str = "") -> ZoneInfo:
    """Return the time zone of a user of the current tenant, or else the agent's, or else UTC."""
    return locales_of([user_id]).get(user_id, NO_LOCALE).zone(agents)


def hold_people(
    user_ids: Iterable[str | None],
    *,
    agent_ids: Collection[UUID | None] = (),
    since: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Keep users from being erased until the transaction ends. New users get a pseudonym.

    A transaction that writes for several users names all of them in one call, which takes them in
    their order. Two that added the same users by several calls could wait for each other.

    Args:
        user_ids: the users of the rows to write; None is ignored.
        agent_ids: the agents of the rows; None is ignored.
        since: an earlier result of this function, from before a call of a language model.

    Returns:
        For each user a text that changes when the user is erased: the argument `since`.

    Raises:
        PersonBeingErased: an erasure of one of the users is requested and not done, or was done
            since `since`. Nothing may be written.
    """
    wanted = sorted({user_id for user_id in user_ids if user_id is not None})
    parameters = {
        "users": wanted,
        "agents": [agent_id for agent_id in agent_ids if agent_id is not None],
    }
    found: dict[str, str] = {}
    for _ in range(MAX_ATTEMPTS if wanted else 0):
        rows = context.fetch_all(_HOLD, parameters)
        found = {user_id: version for user_id, version, _ in rows}
        if any(is_being_erased for *_, is_being_erased in rows) or any(
            version != found.get(user_id, version) for user_id, version in (since or {}).items()
        ):
            raise PersonBeingErased(
                "The person is being erased, and nothing was written. Send it again when the"
                " erasure is done."
            )
        if len(found) == len(wanted):
            return found
    if wanted:
        raise PersonBeingErased("The person was erased at this moment. Send it again.")
    return found


def close_people(user_ids: Collection[str]) -> None:
    """Wait for the transactions that hold these users. Call it when their erasure is committed."""
    with transaction.atomic():
        context.execute(_ADD, [sorted(user_ids)])
        context.execute(_LOCK, [list(user_ids)])


def end_erasure(user_ids: Collection[str], *, agent_id: UUID | None) -> None:
    """Delete the users, or refuse what began before their erasure by one agent.

    Call it in the transaction in which the erasure is done.
    """
    people: Any = Person.objects.filter(user_id__in=user_ids)
    if agent_id is None:
        people._raw_delete(people.db)
    else:
        people.update(erasures=F("erasures") + 1)


PREFIX = "erased:"
_PURPOSE: Final = b"konstruct.audit.pseudonyms"
# 128 bits, so that no two ids of a tenant have the same pseudonym.
_DIGITS: Final = 32

# Shorter ids and numbers are not searched for in texts: "1" is in every address.
MIN_CHARACTERS: Final = 3
MIN_DIGITS: Final = 6


def pseudonym(user_id: str) -> str:
    """Return the pseudonym of a user of the current tenant."""
    return pseudonyms(user_id)[0]


def pseudonyms(user_id: str) -> list[str]:
    """Return the pseudonyms of a user under each SECRET_KEY that is or was in use."""
    value = f"{context.required_tenant_id()}\0{user_id}".encode()
    return [PREFIX + keyed_digest(value, _PURPOSE, secret)[:_DIGITS] for secret in secrets()]


def is_distinctive(id: str) -> bool:
    """Return whether an id is long enough to be recognised in texts."""
    return len(id) >= (MIN_DIGITS if id.isdecimal() else MIN_CHARACTERS)
