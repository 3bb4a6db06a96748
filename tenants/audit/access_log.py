"""Functions that write the access log of a tenant.

Code that changes a row calls `record_access` in the same transaction; code that shows a row calls
it before the response is sent. If the entry cannot be written, the action fails.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Model

from tenants.audit.changes import RowState, abridge, log_detail
from tenants.audit.models import Action, ActorKind
from tenants.audit.operator_log import operator_name
from tenants.audit.pseudonyms import dumps, id_candidates, pseudonyms
from tenants.context import execute
from tenants.http.client_address import current_address

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
# Subjects with the id of a user as `subject_id`.
USER_SUBJECTS = frozenset({"people", "person"})


@dataclass(frozen=True, slots=True)
class Actor:
    """A person, program or operator with access to a tenant."""

    kind: ActorKind
    id: str
    name: str

    @classmethod
    def person(cls, user: Any) -> "Actor":
        """Return the actor of a user who is logged in."""
        return cls(ActorKind.PERSON, str(user.pk), user.get_username())

    @classmethod
    def operator(cls, name: str) -> "Actor":
        """Return the actor of a command, by the name of the account that runs it."""
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
    **detail: Any,
) -> None:
    """Write an event into the access log of the current tenant.

    The ids of erased users in it are replaced by their pseudonyms.

    Args:
        action: the action.
        subject: the kind of thing that it was done with.
        by: the actor.
        subject_id: the id of the thing.
        agent_id: the agent of the memory.
        user_id: the user of the memory.
        request_id: the id of the request.
        before: the row before a change or deletion. The log has the fields that differ.
        after: the row after a change or creation.
        detail: parameters and numbers of results; texts in them are abridged.
    """
    event = dumps(
        {
            "subject_id": abridge(str(subject_id)),
            "user_id": abridge(user_id),
            "request_id": request_id,
            "detail": log_detail(detail, before, after),
        }
    )
    execute(
        _INSERT,
        {
            "actor_kind": str(by.kind),
            "actor_id": by.id,
            "actor": abridge(by.name),
            "action": str(action),
            "subject": subject,
            "agent_id": agent_id,
            "address": current_address(),
            "event": event,
            **_pseudonyms_of_event(event, subject),
        },
    )


def _pseudonyms_of_event(event: str, subject: str) -> dict[str, list[Any]]:
    """Return the pseudonym and the position of each text of an event that may be a user's id."""
    user_fields = {"subject_id"} if subject in USER_SUBJECTS else set()
    digests, starts, stops = [], [], []
    for candidate in id_candidates(event, user_fields=user_fields):
        for digest in pseudonyms(candidate.id):
            digests.append(digest)
            starts.append(candidate.start)
            stops.append(candidate.stop)
    return {"digests": digests, "starts": starts, "stops": stops}


def record_command(
    command: str,
    action: Action,
    subject: str | Model,
    **detail: Any,
) -> None:
    """Log an action of a command in the current tenant, in the transaction of the change.

    The actor is the account that runs the process.

    Args:
        command: the name of the command.
        action: the action.
        subject: the row, with its agent and user, or the kind of thing.
        detail: further arguments of `record_access`.
    """
    if isinstance(subject, Model):
        is_agent = subject._meta.model_name == "agent"
        detail = {
            "subject_id": subject.pk,
            "agent_id": subject.pk if is_agent else getattr(subject, "agent_id", None),
            "user_id": getattr(subject, "user_id", None),
            **detail,
        }
        subject = subject._meta.verbose_name_raw
    by = Actor.operator(operator_name())
    record_access(action, subject, by=by, command=command, **detail)
