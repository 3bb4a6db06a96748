"""What waits for a person: numbers for the menu and Records, and the list of Today."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.lists import agent_names, model_page
from konstruct.admin.memory.fact_review import proposed_facts
from konstruct.orchestrator.models import Escalation, ToolCall
from konstruct.orchestrator.replies import CLOSED
from konstruct.templatetags.texts import translated
from memory.browse.people import displayed_names
from memory.models import Message
from tenants.admin.sites import tenant_site
from tenants.audit.models import ErasureRequest, MessageErasure
from tenants.context import fetch_row, required_tenant_id
from tenants.models import Job

# A number counts no further.
MAX_COUNT: Final = 99
# Rows of each kind on Today, so that many of one kind do not hide the others.
MAX_ROWS_OF_KIND: Final = 10
_FAILED: Final = (
    "tenants_job WHERE tenant_id = %(tenant)s AND failed_at IS NOT NULL"
    f" AND error_code <> '{CLOSED}' AND kind ="
)
# The title and the rows by the entry of the menu or of Records. Each has an index, or is a small
# table.
_WAITING: Final = {
    "orchestrator.escalation": (
        _("Escalations"),
        "orchestrator_escalation WHERE resolved_at IS NULL AND to_agent_id IS NULL",
    ),
    "orchestrator.toolcall": (_("Tool calls"), "orchestrator_toolcall WHERE state = 'waiting'"),
    "fact_review": (
        _("Facts to review"),
        "memory_memoryentry WHERE state = 'proposed' AND version_of IS NULL",
    ),
    "orchestrator.pendingreply": (_("Replies"), f"{_FAILED} 'reply'"),
    "channels.delivery": (_("Deliveries"), f"{_FAILED} 'delivery'"),
    "channels.arrival": (_("Events of channels"), f"{_FAILED} 'arrival'"),
    "orchestrator.extractioncursor": (_("Extractions"), f"{_FAILED} 'extraction'"),
    "orchestrator.notification": (_("Sent notifications"), f"{_FAILED} 'notification'"),
    "audit.erasurerequest": (_("Erasures"), "audit_erasurerequest WHERE done_at IS NULL"),
    "audit.messageerasure": (_("Erased messages"), "audit_messageerasure WHERE done_at IS NULL"),
}
# What a failed job of a kind is called, and the entry of its list.
_JOBS: Final = {
    "reply": (_("Failed reply"), "orchestrator.pendingreply"),
    "delivery": (_("Failed delivery"), "channels.delivery"),
    "arrival": (_("Failed event of a channel"), "channels.arrival"),
    "extraction": (_("Failed extraction of facts"), "orchestrator.extractioncursor"),
    "notification": (_("Failed notification"), "orchestrator.notification"),
}


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """Something that waits for a person."""

    kind: Any
    text: str
    link: str
    since: datetime
    user_id: str = ""
    agent_id: UUID | None = None
    detail: str = ""
    retry_list: str = ""
    """The list whose action retries the job; empty: the person may not, or cannot."""
    pk: UUID | None = None


def permission_of(entry: str, action: str = "view") -> str:
    """Return the permission for an entry of the menu: the model of a list, or a page."""
    app, _dot, model = entry.partition(".")
    return f"{app}.{action}_{model}" if model else tenant_site.pages.get(entry, "")


def list_url(entry: str, **query: str) -> str:
    """Return the address of an entry of the menu: the list of a model, or a page."""
    page = f"{entry.replace('.', '_')}_changelist" if "." in entry else entry
    return reverse(f"admin:{page}", query=query)


def waiting_counts(request: HttpRequest) -> dict[str, int]:
    """Return the numbers that the user may see, up to `MAX_COUNT` + 1: one query for a request."""
    cached: dict[str, int] | None = getattr(request, "waiting", None)
    if cached is not None:
        return cached
    visible = {
        entry: rows
        for entry, (_title, rows) in _WAITING.items()
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


def waiting_context(request: HttpRequest) -> dict[str, Any]:
    """Return the rows that wait and that the user may see, oldest first, for index.html."""
    counts = waiting_counts(request)
    rows = sorted(_rows(request, counts), key=attrgetter("since"))
    names = displayed_names(row.user_id for row in rows if row.user_id)
    agents: Mapping[Any, str] = agent_names()
    more = max(sum(counts.values()) - len(rows), 0)
    return {
        "sees_work": bool(counts),
        "waiting": [
            (row, names.get(row.user_id, row.user_id), agents.get(row.agent_id)) for row in rows
        ],
        "more": badge(more),
        "lists": [
            (_WAITING[entry][0], list_url(entry), badge(count))
            for entry, count in counts.items()
            if count
        ],
    }


def _rows(request: HttpRequest, counts: dict[str, int]) -> Iterator[WaitingRow]:
    """Yield the oldest rows of each kind of which there are some."""
    if counts.get("orchestrator.escalation"):
        yield from _escalations()
    if counts.get("orchestrator.toolcall"):
        yield from _tool_calls()
    if counts.get("fact_review"):
        yield from _proposed_facts()
    kinds = [kind for kind, (_label, entry) in _JOBS.items() if counts.get(entry)]
    if kinds:
        yield from _failed_jobs(request, kinds)
    if counts.get("audit.erasurerequest"):
        yield from _erasures(ErasureRequest, gettext("Erasure of a person"))
    if counts.get("audit.messageerasure"):
        yield from _erasures(MessageErasure, gettext("Erasure of messages"))


def _escalations() -> Iterator[WaitingRow]:
    rows = Escalation.objects.open().to_people().order_by("opened_at", "id")
    for row in rows[:MAX_ROWS_OF_KIND]:
        assigned = gettext("assigned to %(name)s") % {"name": row.assigned_to}
        yield WaitingRow(
            gettext("Escalation"),
            row.reason,
            reverse("admin:escalation", args=[row.pk]),
            row.opened_at,
            row.user_id,
            row.agent_id,
            assigned if row.assigned_to else "",
        )


def _tool_calls() -> Iterator[WaitingRow]:
    for row in ToolCall.objects.waiting().order_by("created_at")[:MAX_ROWS_OF_KIND]:
        yield WaitingRow(
            gettext("Consent to a tool call"),
            row.question or row.name,
            reverse(model_page(row, "change"), args=[row.pk]),
            row.created_at,
            row.user_id,
            row.agent_id,
        )


def _proposed_facts() -> Iterator[WaitingRow]:
    for row in proposed_facts().defer("embedding")[:MAX_ROWS_OF_KIND]:
        yield WaitingRow(
            gettext("Proposed fact"),
            row.content,
            reverse(model_page(row, "change"), args=[row.pk]),
            row.created_at,
            row.user_id or "",
            row.agent_id,
            translated(row.review_reason),
        )


def _failed_jobs(request: HttpRequest, kinds: list[str]) -> Iterator[WaitingRow]:
    failed = Job.objects.failed().filter(tenant_id=required_tenant_id(), kind__in=kinds)
    jobs = failed.exclude(error_code=CLOSED).order_by("failed_at")[:MAX_ROWS_OF_KIND]
    messages = Message.objects.in_bulk([job.key for job in jobs])
    for job in jobs:
        label, entry = _JOBS[job.kind]
        message = messages.get(job.key)
        assert job.failed_at is not None  # noqa: S101 (the filter)
        # The key of an event of a channel is not the one of its row.
        may_retry = job.kind != "arrival" and request.user.has_perm(permission_of(entry, "change"))
        yield WaitingRow(
            label,
            job.last_error,
            reverse("admin:conversation", args=[message.pk])
            if message and request.user.has_perm("memory.view_message")
            else list_url(entry, state="failed"),
            job.failed_at,
            message.user_id if message else "",
            message.agent_id if message else None,
            retry_list=list_url(entry) if may_retry else "",
            pk=job.key,
        )


def _erasures(model: type[ErasureRequest | MessageErasure], kind: str) -> Iterator[WaitingRow]:
    rows = model.objects.filter(done_at__isnull=True).order_by("created_at", "pk")
    for row in rows[:MAX_ROWS_OF_KIND]:
        yield WaitingRow(
            kind,
            row.last_error or (gettext("runs") if row.receipt else gettext("requested")),
            reverse(model_page(row, "change"), args=[row.pk]),
            row.created_at,
            row.user_id,
        )
