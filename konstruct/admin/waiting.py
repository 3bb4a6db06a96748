"""Numbers of rows that wait for a person, beside the entries of the menu and on Today."""

from typing import Any, Final

from django.http import HttpRequest

from konstruct.orchestrator.replies.queue import CLOSED
from tenants.context import fetch_row, required_tenant_id

# A number counts no further.
MAX_COUNT: Final = 99
_FAILED: Final = "tenants_job WHERE tenant_id = %(tenant)s AND failed_at IS NOT NULL AND kind ="
# The rows by the entry of the menu. Each has an index, or is a small table.
_WAITING: Final = {
    "orchestrator.escalation": (
        "orchestrator_escalation WHERE resolved_at IS NULL AND to_agent_id IS NULL"
    ),
    "orchestrator.toolcall": "orchestrator_toolcall WHERE state = 'waiting'",
    "fact_review": "memory_memoryentry WHERE state = 'proposed' AND version_of IS NULL",
    "orchestrator.pendingreply": f"{_FAILED} 'reply' AND error_code <> '{CLOSED}'",
    "channels.delivery": f"{_FAILED} 'delivery'",
    "audit.erasurerequest": "audit_erasurerequest WHERE done_at IS NULL",
    "audit.messageerasure": "audit_messageerasure WHERE done_at IS NULL",
}
_PERMISSIONS: Final = {"fact_review": "memory.review_memoryentry"}


def permission_of(entry: str) -> str:
    """Return the permission for an entry of the menu that is the model of a list, "" for others."""
    app, _, model = entry.partition(".")
    return f"{app}.view_{model}" if model else _PERMISSIONS.get(entry, "")


def waiting_counts(request: HttpRequest) -> dict[str, int]:
    """Return the numbers that the user may see, up to `MAX_COUNT` + 1: one query for a request."""
    cached: dict[str, int] | None = getattr(request, "waiting", None)
    if cached is not None:
        return cached
    visible = {
        entry: rows
        for entry, rows in _WAITING.items()
        if request.user.has_perm(permission_of(entry))
    }
    numbers: tuple[Any, ...] = ()
    if visible:
        counts = ", ".join(
            f"(SELECT count(*) FROM (SELECT FROM {rows} LIMIT {MAX_COUNT + 1}) AS found)"  # noqa: S608
            for rows in visible.values()
        )
        numbers = fetch_row(f"SELECT {counts}", {"tenant": required_tenant_id()})
    counts_by_entry = dict(zip(visible, numbers, strict=True))
    request.waiting = counts_by_entry  # type: ignore[attr-defined]
    return counts_by_entry


def badge(count: int) -> str:
    """Return a number as a badge; empty for 0."""
    return f"{MAX_COUNT}+" if count > MAX_COUNT else str(count or "")
