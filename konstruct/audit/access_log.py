"""Writing the access log: one row for each time that somebody has to do with memory.

Whoever shows or changes memory calls `record_access` first, or in the same transaction: what cannot
be written down is not done.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from konstruct.audit.models import AccessEvent, Action, ActorKind

# Of a question or a search term, enough to know it by.
LONGEST_TEXT = 500


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


def record_access(
    action: Action,
    subject: str,
    *,
    by: Actor,
    subject_id: object = "",
    agent_id: UUID | None = None,
    user_id: str | None = None,
    request_id: str = "",
    **detail: Any,
) -> AccessEvent:
    """Write down that somebody did something, in the tenant that we are in.

    `detail` is what was asked for and how much came of it; texts in it are abridged.
    """
    return AccessEvent.objects.create(
        actor_kind=by.kind,
        actor_id=by.id,
        actor=by.name,
        action=action,
        subject=subject,
        subject_id=_abridged(str(subject_id)),
        agent_id=agent_id,
        user_id=_abridged(user_id),
        request_id=request_id,
        detail={name: _abridged(value) for name, value in detail.items()},
    )


def _abridged(value: Any) -> Any:
    if isinstance(value, str):
        value = value.replace("\0", "")
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
    return value
