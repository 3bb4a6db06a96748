"""The content of notifications: a line with a link."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final
from uuid import UUID, uuid5

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext

from konstruct.orchestrator import usage
from konstruct.orchestrator.handoff.escalations import last_user_message
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import (
    Agent,
    Escalation,
    Event,
    Notification,
    ToolCall,
)
from memory.models import MemoryEntry
from tenants.audit.models import ErasureRequest, MessageErasure
from tenants.context import public_scope, required_tenant_id
from tenants.limits.quotas import Quota
from tenants.models import Domain, Job, Tenant

MAX_QUESTION_CHARACTERS: Final = 500
# Lists of jobs in the admin, by kind. Other kinds are on the dashboard.
JOB_PAGES: Final[Mapping[str, str]] = {
    "reply": "orchestrator_pendingreply_changelist",
    "delivery": "channels_delivery_changelist",
    "embedding": "memory_pendingembedding_changelist",
    "arrival": "channels_arrival_changelist",
    "extraction": "orchestrator_extractioncursor_changelist",
    "notification": "orchestrator_notification_changelist",
}
# The namespace of the ids of quotas.
QUOTA_NAMESPACE: Final = UUID("5d0f4dca-6b1c-4b43-9b39-0f6d1f3c7a10")


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a notification, as plain text."""

    text: str
    url: str
    escalation_id: UUID | None = None
    """The escalation, if a person can answer it."""
    question: str = ""
    """The last message of the user, if the recipient wants it."""

    @property
    def title(self) -> str:
        """The text with the name of the tenant, in one line."""
        return one_line(f"[{tenant_name()}] {self.text}")


def one_line(text: str) -> str:
    """Return text without line breaks and other characters that are not shown."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def content_of(row: Notification) -> Content | None:
    """Return the content of a notification, or None if its subject is settled or erased."""
    write: Callable[[Notification], Content | None] = {
        Event.ESCALATION_OPENED: _escalation,
        Event.ESCALATION_WAITS: _escalation,
        Event.CONSENT_WAITS: _tool_call,
        Event.JOB_FAILED: _job,
        Event.ERASURE_DUE: _erasure,
        Event.REVIEW_QUEUE: _review,
        Event.QUOTA_REACHED: _quota,
    }[Event(row.event)]
    return write(row)


def quota_id(quota: Quota) -> UUID:
    """Return the id by which notifications name a quota."""
    return uuid5(QUOTA_NAMESPACE, quota.value)


def tenant_name() -> str:
    """Return the name of the current tenant."""
    tenant_id = required_tenant_id()
    with public_scope():
        return Tenant.objects.values_list("name", flat=True).get(pk=tenant_id)


def base_url() -> str:
    """Return the address of the current tenant's admin."""
    tenant_id = required_tenant_id()
    with public_scope():
        domain = Domain.objects.filter(tenant_id=tenant_id).order_by("-is_primary", "pk").first()
    host = domain.domain if domain is not None else settings.PUBLIC_HOSTS[0]
    scheme = "http" if settings.PLAIN_HTTP else "https"
    port = f":{settings.ADMIN_PORT}" if settings.ADMIN_PORT else ""
    return f"{scheme}://{host}{port}"


def _escalation(row: Notification) -> Content | None:
    escalation = Escalation.objects.open().to_people().filter(pk=row.subject_id).first()
    if escalation is None:
        return None
    text = (
        gettext("A user of %(agent)s still waits for a person, since %(time)s")
        if row.event == Event.ESCALATION_WAITS
        else gettext("A user of %(agent)s waits for a person, since %(time)s")
    )
    return Content(
        text % {"agent": _agent(escalation.agent_id), "time": _time(row)},
        _url("escalation", escalation.pk),
        escalation.pk,
        last_question(escalation) if row.recipient.includes_question else "",
    )


def _tool_call(row: Notification) -> Content | None:
    call = ToolCall.objects.waiting().filter(pk=row.subject_id).first()
    if call is None:
        return None
    text = gettext(
        "A tool call of %(agent)s (%(tool)s) waits for the user's consent, since %(time)s"
    ) % {
        "agent": _agent(call.agent_id),
        "tool": one_line(call.name),
        "time": _time(row),
    }
    return Content(text, _url("orchestrator_toolcall_change", call.pk))


def _job(row: Notification) -> Content | None:
    jobs = Job.objects.filter(tenant_id=required_tenant_id(), key=row.subject_id).failed()
    job = jobs.filter(failed_at=row.occurred_at).first()
    if job is None:
        return None
    page = JOB_PAGES.get(job.kind)
    url = f"{_url(page)}?state=failed" if page else _url("index")
    return Content(
        gettext("The %(kind)s failed for good at %(time)s")
        % {"kind": gettext(job.kind), "time": _time(row)},
        url,
    )


def _erasure(row: Notification) -> Content | None:
    for model in (ErasureRequest, MessageErasure):
        if model.objects.filter(pk=row.subject_id, done_at__isnull=True).exists():
            url = _url(f"audit_{model._meta.model_name}_change", row.subject_id)
            return Content(
                gettext("An erasure is not done, requested at %(time)s") % {"time": _time(row)},
                url,
            )
    return None


def _review(row: Notification) -> Content | None:
    threshold = row.recipient.review_threshold
    proposed = MemoryEntry.objects.waiting_for_review().order_by()
    if proposed.values("pk")[:threshold].count() < threshold:
        return None
    return Content(
        gettext("%(least)s or more proposed facts wait for a review") % {"least": threshold},
        _url("fact_review"),
    )


def _quota(row: Notification) -> Content | None:
    reached = usage.tenant_row().usage.get("reached", {})
    quota = next((quota for quota in Quota if quota_id(quota) == row.subject_id), None)
    reached_limit = reached.get(quota)
    if quota is None or reached_limit is None:
        return None
    text = (
        gettext("The quota %(quota)s is used up, since %(time)s")
        if reached_limit["level"] == "hard"
        else gettext("The quota %(quota)s is nearly used up, since %(time)s")
    )
    return Content(
        text % {"quota": quota.label, "time": _time(row)},
        _url("orchestrator_dailyusage_changelist"),
    )


def _agent(agent_id: UUID) -> str:
    name = Agent.objects.filter(pk=agent_id).values_list("name", flat=True).first()
    return one_line(name or gettext("an agent"))


def _time(row: Notification) -> str:
    return f"{row.occurred_at.astimezone(UTC):%Y-%m-%d %H:%M %Z}"


def _url(page: str, *arguments: Any) -> str:
    return base_url() + reverse(f"admin:{page}", "konstruct.urls.tenant", args=arguments)


def last_question(escalation: Escalation, limit: int = MAX_QUESTION_CHARACTERS) -> str:
    """Return the last message of the user in the thread of an escalation, up to a limit."""
    message = last_user_message(Thread.of(escalation))
    content = message.content if message else ""
    return content if len(content) <= limit else f"{content[: limit - 1]}…"
