"""Functions that write the access log of a tenant.

Code that changes a row calls `record_access` in the same transaction; code that shows a row calls
it before the response is sent. If the entry cannot be written, the action fails.

An entry has ids of rows, numbers and words of the code. It names people by their random pseudonyms
of `audit_person`, so that nothing in it leads to a person whose row is deleted.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.db.models import Model

from tenants import context, http, naming
from tenants.audit import models, operator_log
from tenants.audit.changes import RowState, loggable, logged_changes, storable

# The number of people in one entry; of more people it has the number.
MAX_PEOPLE: Final = 200
_INSERT: Final = """
INSERT INTO audit_accessevent
    (actor_kind, actor_id, actor, action, subject, subject_id, agent_id, pseudonym,
     pseudonyms, people_count, address, request_id, detail)
VALUES (
    %(actor_kind)s, %(actor_id)s, %(actor)s, %(action)s, %(subject)s, %(subject_id)s,
    %(agent_id)s::uuid, (SELECT pseudonym FROM audit_person WHERE user_id = %(user_id)s),
    (SELECT array_agg(pseudonym) FROM audit_person WHERE user_id = ANY(%(people)s::text[])),
    %(people_count)s, %(address)s::inet, %(request_id)s, %(detail)s::jsonb
)
"""


@dataclass(frozen=True, slots=True)
class Actor:
    """A person, program or operator with access to a tenant."""

    kind: models.ActorKind
    id: str
    name: str

    @classmethod
    def person(cls, user: Any) -> "Actor":
        """Return the actor of a user who is logged in."""
        return cls(models.ActorKind.PERSON, str(user.pk), user.get_username())

    @classmethod
    def operator(cls, name: str) -> "Actor":
        """Return the actor of a command, by the name of the account that runs it."""
        return cls(models.ActorKind.OPERATOR, name, name)


def record_access(
    action: models.Action,
    subject: str,
    *,
    by: Actor,
    subject_id: object = None,
    agent_id: UUID | None = None,
    user_id: str | None = None,
    people: Iterable[str] = (),
    people_count: int | None = None,
    request_id: str = "",
    before: RowState | None = None,
    after: RowState | None = None,
    **detail: Any,
) -> None:
    """Write an event into the access log of the current tenant.

    Args:
        action: the action.
        subject: the kind of thing that it was done with, a word of the code.
        by: the actor.
        subject_id: the id of the row, a UUID or a number. Ids of other types, which a client may
            have chosen, are left out.
        agent_id: the agent of the memory.
        user_id: the user of the memory.
        people: the users that a page, a search, a list or an export has shown.
        people_count: their number, if there are more than in `people`.
        request_id: the id of the request. Only a UUID is kept, because clients choose others.
        before: the row before a change or deletion. The log has the fields that differ.
        after: the row after a change or creation.
        detail: numbers of results, and words of the code; see `changes.loggable`.
    """
    shown = sorted({storable(user_id) for user_id in people})
    context.execute(
        _INSERT,
        {
            "actor_kind": str(by.kind),
            "actor_id": by.id,
            "actor": storable(by.name),
            "action": str(action),
            "subject": subject,
            "subject_id": str(subject_id) if isinstance(subject_id, UUID | int) else "",
            "agent_id": agent_id,
            "user_id": None if user_id is None else storable(user_id),
            "people": list(islice(shown, MAX_PEOPLE)),
            "people_count": people_count or len(shown) or None,
            "address": http.current_address(),
            "request_id": str(naming.as_uuid(request_id) or ""),
            "detail": json.dumps({**(loggable("", detail) or {}), **logged_changes(before, after)}),
        },
    )


def ids_of(row: Model) -> dict[str, Any]:
    """Return a row as the subject of an entry, with its agent and its user."""
    is_agent = row._meta.model_name == "agent"
    return {
        "subject_id": row.pk,
        "agent_id": row.pk if is_agent else getattr(row, "agent_id", None),
        "user_id": getattr(row, "user_id", None),
    }


def record_command(
    command: str, action: models.Action, subject: str | Model, **detail: Any
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
        detail = {**ids_of(subject), **detail}
        subject = subject._meta.verbose_name_raw
    by = Actor.operator(operator_log.operator_name())
    record_access(action, subject, by=by, command=command, **detail)
