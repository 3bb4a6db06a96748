"""Writing the access log: one row for each time that somebody has to do with a tenant.

Whoever changes something calls `record_access` in the same transaction; whoever shows something
calls it before it is sent. What cannot be written down is not done.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from konstruct.audit.models import AccessEvent, Action, ActorKind
from tenants.audit.changes import NOTHING, RowState, abridged, differences
from tenants.http.client_address import current_address


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
    **detail: Any,
) -> AccessEvent:
    """Write down that somebody did something, in the tenant that we are in.

    Args:
        before: the row as it was, if it was changed or removed. The log has the fields that differ.
        after: the row as it is now, if it was changed or made.
        detail: what was asked for and how much came of it; texts in it are abridged.
    """
    told = {name: abridged(value) for name, value in detail.items()}
    if before is not None or after is not None:
        told |= differences(before or NOTHING, after or NOTHING)
    return AccessEvent.objects.create(
        actor_kind=by.kind,
        actor_id=by.id,
        actor=abridged(by.name),
        action=action,
        subject=subject,
        subject_id=abridged(str(subject_id)),
        agent_id=agent_id,
        user_id=abridged(user_id),
        address=current_address(),
        request_id=request_id,
        detail=told,
    )
