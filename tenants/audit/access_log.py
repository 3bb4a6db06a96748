"""Writing the access log: one row for each time that somebody has to do with a tenant.

Whoever changes something calls `record_access` in the same transaction; whoever shows something
calls it before it is sent. What cannot be written down is not done.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Model

from tenants.audit.changes import NOTHING, RowState, abridged, differences
from tenants.audit.models import Action, ActorKind
from tenants.audit.operator_log import operator_name
from tenants.audit.pseudonyms import candidates, dumps, pseudonyms
from tenants.context import tenant_connection
from tenants.http.client_address import current_address
from tenants.postgresql.entering import Queued

# Replaces ids of erased users by their pseudonyms. It finds them by the primary key of
# audit_erasedid and does what `pseudonyms.replaced` does; positions count from 0.
_INSERT = """
WITH hit AS (
    SELECT digest, start, stop, coalesce(max(stop) OVER (
        ORDER BY start, stop DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS done
    FROM unnest(%(digests)s::text[], %(starts)s::int[], %(stops)s::int[])
        AS candidate (digest, start, stop)
    JOIN audit_erasedid USING (digest)
), event AS (
    SELECT (coalesce(string_agg(
        CASE WHEN start >= done THEN substr(%(event)s::text, done + 1, start - done) || digest END,
        '' ORDER BY start, stop DESC), '')
        || substr(%(event)s::text, coalesce(max(stop), 0) + 1))::jsonb AS said
    FROM hit
)
INSERT INTO audit_accessevent
    (actor_kind, actor_id, actor, action, subject, subject_id, agent_id, user_id, address,
     request_id, detail)
SELECT
    %(actor_kind)s, %(actor_id)s, %(actor)s, %(action)s, %(subject)s, said ->> 'subject_id',
    %(agent_id)s::uuid, said ->> 'user_id', %(address)s::inet, said ->> 'request_id',
    said -> 'detail'
FROM event
"""
# Subjects of which `subject_id` is a user's id.
ABOUT_USERS = frozenset({"people", "person"})


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who has access."""

    kind: ActorKind
    id: str
    name: str

    @classmethod
    def person(cls, user: Any) -> "Actor":
        """A person who is logged in."""
        return cls(ActorKind.PERSON, str(user.pk), user.get_username())

    @classmethod
    def operator(cls, name: str) -> "Actor":
        """Whoever runs a command on the machine, by the name of their account there."""
        return cls(ActorKind.OPERATOR, name, name)


def record_access(
    action: Action,
    subject: str,
    *,
    by: Actor,
    subject_id: object = "",
    agent_id: UUID | None = None,
    user_id: str | None = None,
    request_id: str = "",
    before: RowState | None = None,
    after: RowState | None = None,
    with_next: bool = False,
    **detail: Any,
) -> Queued:
    """Write an event into the access log of the current tenant.

    The ids of erased users in it are replaced by their pseudonyms.

    In a transaction it goes to Postgres with what comes next, at the latest with the COMMIT, which
    then fails if it cannot be written. Outside of one it is written at once.

    Args:
        before: the row as it was, if it was changed or removed. The log has the fields that differ.
        after: the row as it is now, if it was changed or made.
        with_next: outside of a transaction too it goes with the statement that comes next, and the
            caller sees to it in the end that it `is_done`.
        detail: what was asked for and how much came of it; texts in it are abridged.
    """
    told = {name: abridged(value) for name, value in detail.items()}
    if before is not None or after is not None:
        told |= differences(before or NOTHING, after or NOTHING)
    event = dumps(
        {
            "subject_id": abridged(str(subject_id)),
            "user_id": abridged(user_id),
            "request_id": request_id,
            "detail": told,
        }
    )
    user_fields = {"subject_id"} if subject in ABOUT_USERS else set()
    found = [
        (digest, each.start, each.stop)
        for each in candidates(event, user_fields=user_fields)
        for digest in pseudonyms(each.id)
    ]
    digests, starts, stops = ([each[place] for each in found] for place in range(3))
    return tenant_connection().queue(
        _INSERT,
        {
            "actor_kind": str(by.kind),
            "actor_id": by.id,
            "actor": abridged(by.name),
            "action": str(action),
            "subject": subject,
            "agent_id": agent_id,
            "address": current_address(),
            "event": event,
            "digests": digests,
            "starts": starts,
            "stops": stops,
        },
        with_next=with_next,
    )


def record_command(
    command: str,
    action: Action,
    subject: str | Model,
    *,
    subject_id: object = "",
    agent_id: UUID | None = None,
    user_id: str | None = None,
    before: RowState | None = None,
    after: RowState | None = None,
    **detail: Any,
) -> None:
    """Write down what a command has done in the tenant that we are in: in its transaction.

    Who did it is the account on the machine that runs it. Of a row, whose it is comes from itself.
    """
    if isinstance(subject, Model):
        subject_id = subject.pk
        is_agent = subject._meta.model_name == "agent"
        agent_id = subject.pk if is_agent else getattr(subject, "agent_id", None)
        user_id = getattr(subject, "user_id", None)
        subject = str(subject._meta.verbose_name)
    record_access(
        action,
        subject,
        by=Actor.operator(operator_name()),
        subject_id=subject_id,
        agent_id=agent_id,
        user_id=user_id,
        before=before,
        after=after,
        command=command,
        **detail,
    )
