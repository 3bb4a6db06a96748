"""The ids in each log line: of the request, the tenant, the API key, the task and the span.

A request and a task bind their ids in structlog's context variables. The tenant is the one that
the thread has entered (`tenants.context`), otherwise that of the request: lines that are logged
after a request has left its tenant have it too.
"""

import re
from collections.abc import MutableMapping
from typing import Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest
from structlog.contextvars import bind_contextvars, get_contextvars

from tenants.traces import trace_ids

LOGGED_IDS: Final = (
    *("request_id", "tenant_id", "key_id", "task_name", "task_id"),
    *("trace_id", "span_id"),
)
# The key in an ASGI scope under which threads leave ids for the event loop.
_IN_SCOPE: Final = "konstruct.log_ids"
# The key in an ASGI scope with the path of the access line.
PATH_IN_SCOPE: Final = "konstruct.path"
_ARGUMENT: Final = re.compile(r"<(?:\w+:)?(\w+)>")


def logged_path(request: HttpRequest) -> str:
    """Return the path of a request for a log line: its route, with the ids of rows.

    Other arguments, such as the id of a user, keep their names: `/api/v1/users/<user_id>/`. A path
    without a route can have any text, and is "-".
    """
    match = request.resolver_match
    if match is None:
        return "-"

    def written(found: re.Match[str]) -> str:
        value = match.kwargs.get(found[1])
        return str(value) if isinstance(value, UUID | int) else f"<{found[1]}>"

    return "/" + _ARGUMENT.sub(written, match.route)


def bind_request_ids(request: HttpRequest, **ids: object) -> None:
    """Add ids to all further log lines of a request, including its access line.

    Args:
        request: the request; an ASGI request keeps the ids for the event loop too.
        ids: values of LOGGED_IDS. Pass verified ids only, and no tenant or key that a client only
            claims.
    """
    texts = {name: str(value) for name, value in ids.items()}
    bind_contextvars(**texts)
    scope = getattr(request, "scope", None)
    if scope is not None:
        scope.setdefault(_IN_SCOPE, {}).update(texts)


def bind_ids_of_scope(scope: MutableMapping[str, Any]) -> None:
    """Add the ids that threads have bound for a request to the log lines of its event loop task."""
    bind_contextvars(**scope.get(_IN_SCOPE, {}))


def log_ids() -> dict[str, str]:
    """Return the ids of a log line of this thread, in the order of LOGGED_IDS."""
    ids = {**get_contextvars(), **trace_ids()}
    # Do not create a connection object in an event loop, or before Django is set up.
    for wrapper in connections.all(initialized_only=True):
        if wrapper.alias == DEFAULT_DB_ALIAS and (tenant_id := getattr(wrapper, "tenant_id", None)):
            ids["tenant_id"] = str(tenant_id)
    return {name: ids[name] for name in LOGGED_IDS if name in ids}
