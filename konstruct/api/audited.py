"""Which requests of the API the access log has, and under which words.

What a program sends, and the replies that it fetches, are its own conversation, which the
transcript keeps; what it reads, changes or removes beside that is written down here.
"""

from typing import Final

from rest_framework.request import Request

from konstruct.api.access import Program
from konstruct.api.request_id import current_request_id
from konstruct.audit.access_log import Actor, record_access
from konstruct.audit.models import Action, ActorKind

# By the names of URLs (konstruct/api/resource_urls.py) and methods.
WRITTEN_DOWN: Final[dict[tuple[str, str], tuple[Action, str]]] = {
    ("agent", "PATCH"): (Action.EDIT, "agent"),
    ("agents", "POST"): (Action.EDIT, "agent"),
    ("compile-context", "POST"): (Action.SEARCH, "context"),
    ("conversations", "GET"): (Action.LIST, "conversations"),
    ("decision", "POST"): (Action.DECIDE, "tool call"),
    ("escalation", "GET"): (Action.VIEW, "escalation"),
    ("escalations", "GET"): (Action.LIST, "escalations"),
    ("escalations", "POST"): (Action.ESCALATE, "conversation"),
    ("fact", "DELETE"): (Action.DELETE, "fact"),
    ("fact", "GET"): (Action.VIEW, "fact"),
    ("fact", "PATCH"): (Action.EDIT, "fact"),
    ("fact-history", "GET"): (Action.VIEW, "fact"),
    ("facts", "GET"): (Action.LIST, "facts"),
    ("facts", "POST"): (Action.EDIT, "fact"),
    ("identities", "GET"): (Action.LIST, "identities"),
    ("identities", "POST"): (Action.EDIT, "identity"),
    ("identity", "GET"): (Action.VIEW, "identity"),
    ("identity-link", "DELETE"): (Action.LINK, "identity, away from its user"),
    ("identity-link", "PUT"): (Action.LINK, "identity"),
    ("recall-event", "GET"): (Action.VIEW, "recall event"),
    ("recall-events", "GET"): (Action.LIST, "recall events"),
    ("resolution", "POST"): (Action.RESOLVE, "escalation"),
    ("search-facts", "POST"): (Action.SEARCH, "facts"),
    ("search-memories", "POST"): (Action.SEARCH, "memories"),
    ("session", "DELETE"): (Action.CLEAR, "session"),
    ("session", "GET"): (Action.VIEW, "session"),
    ("sessions", "GET"): (Action.LIST, "sessions"),
    ("tool-call", "GET"): (Action.VIEW, "tool call"),
    ("tool-calls", "GET"): (Action.LIST, "tool calls"),
    ("transcript", "GET"): (Action.VIEW, "conversation"),
    ("users", "GET"): (Action.LIST, "people"),
    ("windows", "DELETE"): (Action.CLEAR, "window"),
    ("windows", "GET"): (Action.VIEW, "window"),
}
# Of a request's parameters, those that say whose memory it is about, and what was asked of it.
_TOLD: Final = ("agent", "query", "task", "thread_id")


def write_down(request: Request) -> None:
    """Write down that an allowed request is about to be answered, if it is one of those."""
    match = request.resolver_match
    known = match and WRITTEN_DOWN.get((str(match.url_name), request.method or ""))
    if match is None or known is None:
        return
    action, subject = known
    sent = request.data if isinstance(request.data, dict) else {}
    asked = {**sent, **request.query_params.dict()}
    user_id = asked.get("user_id")
    record_access(
        action,
        subject,
        by=actor_of(request),
        subject_id=next(iter(match.kwargs.values()), ""),
        user_id=user_id if isinstance(user_id, str) else None,
        request_id=current_request_id(),
        **{name: asked[name] for name in _TOLD if isinstance(asked.get(name), str)},
    )


def actor_of(request: Request) -> Actor:
    """Who sends the request, as the access log calls them."""
    if isinstance(request.user, Program):
        return Actor(ActorKind.PROGRAM, str(request.user.key.pk), request.user.key.name)
    return Actor.person(request.user)
