"""Notifications: events that people get by mail or in Slack, as a line with a link.

A worker that makes a further attempt cannot know whether an earlier one was killed after sending.
In Slack it looks for the post first. A mail may be sent twice, with the same Message-ID.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from smtplib import SMTPException, SMTPRecipientsRefused, SMTPResponseException
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext
from slack_sdk.models.blocks import Block, ButtonElement, PlainTextObject, SectionBlock

from konstruct.channels.delivery import ChannelRefused, ChannelUnavailable, PostMark
from konstruct.channels.slack import adapter, inbound, web_api
from konstruct.orchestrator import messages, usage
from konstruct.orchestrator.handoff.escalations import held_replies, last_user_message
from konstruct.orchestrator.models import Agent, Escalation, ToolCall
from memory.models import MemoryEntry, Message
from tenants.audit.models import ErasureRequest, MessageErasure
from tenants.context import fetch_column, public_scope, release_connections, required_tenant_id
from tenants.limits.quotas import Quota
from tenants.models import Domain, Job
from tenants.outbox.events import send_earlier
from tenants.outbox.models import EventDelivery, EventType, OutboxEvent, Subscription, Target

logger = logging.getLogger(__name__)

MAX_QUESTION_CHARACTERS: Final = 500
# Clocks of the database and of a worker differ by less.
CLOCK_TOLERANCE: Final = timedelta(seconds=30)
# How much Slack's clock may be behind.
CLOCK_SKEW: Final = timedelta(minutes=5)
# Of the text of a block, after it is escaped.
MAX_BLOCK_CHARACTERS: Final = 3000
MAX_SUBJECT_CHARACTERS: Final = 150
# Lists of jobs in the admin, by kind. Other kinds are on the dashboard.
JOB_PAGES: Final[Mapping[str, str]] = {
    "reply": "orchestrator_pendingreply_changelist",
    "delivery": "channels_delivery_changelist",
    "embedding": "memory_pendingembedding_changelist",
    "arrival": "channels_arrival_changelist",
    "extraction": "orchestrator_extractioncursor_changelist",
    "notification": "outbox_eventdelivery_changelist",
}
# What waits for people, up to a number of rows of each table, and the events about it.
_OPEN: Final = """
(SELECT id FROM orchestrator_escalation WHERE resolved_at IS NULL AND to_agent_id IS NULL
 ORDER BY opened_at DESC LIMIT 500)
UNION (SELECT id FROM orchestrator_toolcall WHERE state = 'waiting' AND expires_at > now()
       ORDER BY expires_at LIMIT 500)
UNION (SELECT id FROM audit_erasurerequest WHERE done_at IS NULL LIMIT 500)
UNION (SELECT id FROM audit_messageerasure WHERE done_at IS NULL LIMIT 500)
UNION (SELECT memory_id FROM memory_memoryentry WHERE state = 'proposed' AND version_of IS NULL
       ORDER BY created_at DESC LIMIT 1)
UNION SELECT %(tenant_id)s::uuid
"""
OPEN_TYPES: Final = (
    EventType.ESCALATION_OPENED,
    EventType.ESCALATION_WAITING,
    EventType.TOOL_CALL_WAITING,
    EventType.ERASURE_REQUESTED,
    EventType.FACT_PROPOSED,
    EventType.QUOTA_REACHED,
)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a notification, as plain text."""

    text: str
    url: str
    since: datetime | None = None
    """The time since which it is so: it is sent once."""
    escalation_id: UUID | None = None
    """The escalation, if a person can answer it."""
    question: str = ""
    """The last message of the user, if the recipient wants it."""

    @property
    def title(self) -> str:
        """The text with the name of the tenant, in one line."""
        return one_line(f"[{usage.tenant_row().name}] {self.text}")


def one_line(text: str) -> str:
    """Return text without line breaks and other characters that are not shown."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def send_open(recipient: Subscription) -> None:
    """Notify a new or changed recipient of what is open, in the transaction of the change."""
    send_earlier(recipient.pk, fetch_column(_OPEN, {"tenant_id": required_tenant_id()}), OPEN_TYPES)


def send_test(recipient: Subscription) -> None:
    """Send a test immediately. Not in a transaction.

    Raises as `send` does; ChannelRefused for a webhook.
    """
    if recipient.target == Target.WEBHOOK:
        raise ChannelRefused("Programs get no test: send an event again under Sent events.")
    with translation.override(settings.NOTIFICATION_LANGUAGE):
        text = gettext("This is a test: notifications reach you here")
        _send(recipient, Content(text, f"{base_url()}/admin/"), uuid4(), since=None)


def send(delivery: EventDelivery, *, is_repeated: bool) -> bool:
    """Send an event by mail or to Slack; return False if there is nothing to say any more.

    Do not call it in a transaction.

    Args:
        delivery: the delivery, with its event and subscription.
        is_repeated: whether an earlier attempt may have sent it.

    Raises:
        ChannelError: it was not sent, or may not have been sent.
    """
    with translation.override(settings.NOTIFICATION_LANGUAGE):
        content = _content_of(delivery)
        if content is None:
            return False
        since = delivery.created_at if is_repeated else None
        return _send(delivery.subscription, content, delivery.pk, since=since)


def _send(
    recipient: Subscription, content: Content, delivery_id: UUID, *, since: datetime | None
) -> bool:
    if recipient.target == Target.SLACK:
        _post_in_slack(recipient, content, delivery_id, since=since)
        return True
    addresses = _addresses(recipient)
    if addresses:
        _send_mails(addresses, content, delivery_id)
    return bool(addresses)


# --- Content --------------------------------------------------------------------------------------


def base_url() -> str:
    """Return the address of the current tenant's admin."""
    tenant_id = required_tenant_id()
    with public_scope():
        domain = Domain.objects.filter(tenant_id=tenant_id).order_by("-is_primary", "pk").first()
    host = domain.domain if domain is not None else settings.PUBLIC_HOSTS[0]
    scheme = "http" if settings.PLAIN_HTTP else "https"
    port = f":{settings.ADMIN_PORT}" if settings.ADMIN_PORT else ""
    return f"{scheme}://{host}{port}"


def _content_of(delivery: EventDelivery) -> Content | None:
    """Return the content; None if its subject is settled or erased, or the recipient knows."""
    event, recipient = delivery.event, delivery.subscription
    write = _CONTENT.get(EventType(event.type))
    if write is None:
        page = _url("outbox_outboxevent_change", event.pk)
        return Content(f"{gettext(event.get_type_display())}, {_time(event.created_at)}", page)
    content = write(event, recipient)
    if content is None or content.since is None:
        return content
    earlier = EventDelivery.objects.filter(
        subscription=recipient, event__type=event.type, delivered_at__gte=content.since
    )
    if event.type != EventType.FACT_PROPOSED:
        earlier = earlier.filter(event__subject_id=event.subject_id, event__detail=event.detail)
    return None if earlier.exists() else content


def _escalation(event: OutboxEvent, recipient: Subscription) -> Content | None:
    escalation = Escalation.objects.open().to_people().filter(pk=event.subject_id).first()
    if escalation is None:
        return None
    is_late = event.type == EventType.ESCALATION_WAITING
    since = _waits_since(escalation) if is_late else escalation.opened_at
    if since is None:
        return None
    text = gettext("A user of %(agent)s waits for a person, since %(time)s")
    if is_late:
        waited = timezone.now() - since + CLOCK_TOLERANCE
        if waited < timedelta(minutes=recipient.wait_minutes):
            return None  # a later message, which has its own event
        text = gettext("A user of %(agent)s still waits for a person, since %(time)s")
    return Content(
        text % {"agent": _agent(escalation.agent_id), "time": _time(since)},
        _url("escalation", escalation.pk),
        since,
        escalation.pk,
        last_question(escalation) if recipient.includes_content else "",
    )


def _waits_since(escalation: Escalation) -> datetime | None:
    """Return since when the user waits; None if a person has answered all messages."""
    thread = messages.Thread.of(escalation)
    for held in held_replies(thread):
        return held.message.created_at
    answers = Message.objects.filter(
        **thread.as_filter, role="assistant", created_at__gt=escalation.opened_at
    )
    is_answered = answers.exclude(in_reply_to_id=escalation.message_id).exists()
    return None if is_answered else escalation.opened_at


def last_question(escalation: Escalation, limit: int = MAX_QUESTION_CHARACTERS) -> str:
    """Return the last message of the user in the thread of an escalation, up to a limit."""
    message = last_user_message(messages.Thread.of(escalation))
    content = message.content if message else ""
    return content if len(content) <= limit else f"{content[: limit - 1]}…"


def _tool_call(event: OutboxEvent, recipient: Subscription) -> Content | None:
    call = ToolCall.objects.waiting().filter(pk=event.subject_id).first()
    if call is None:
        return None
    text = gettext(
        "A tool call of %(agent)s (%(tool)s) waits for the user's consent, since %(time)s"
    )
    values = {
        "agent": _agent(call.agent_id),
        "tool": one_line(call.name),
        "time": _time(call.created_at),
    }
    return Content(text % values, _url("orchestrator_toolcall_change", call.pk))


def _job(event: OutboxEvent, recipient: Subscription) -> Content | None:
    jobs = Job.objects.filter(tenant_id=required_tenant_id(), key=event.subject_id).failed()
    job = jobs.order_by("-failed_at").first()
    if job is None or job.failed_at is None:
        return None
    page = JOB_PAGES.get(job.kind)
    text = gettext("The %(kind)s failed for good at %(time)s")
    return Content(
        text % {"kind": gettext(job.kind), "time": _time(job.failed_at)},
        f"{_url(page)}?state=failed" if page else _url("index"),
    )


def _erasure(event: OutboxEvent, recipient: Subscription) -> Content | None:
    for model in (ErasureRequest, MessageErasure):
        request = model.objects.filter(pk=event.subject_id, done_at__isnull=True).first()
        if request is not None:
            text = gettext("An erasure is not done, requested at %(time)s")
            page = f"audit_{model._meta.model_name}_change"
            return Content(text % {"time": _time(request.created_at)}, _url(page, request.pk))
    return None


def _review(event: OutboxEvent, recipient: Subscription) -> Content | None:
    least = recipient.review_threshold
    if MemoryEntry.objects.waiting_for_review().order_by().values("pk")[:least].count() < least:
        return None
    today = timezone.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    text = gettext("%(least)s or more proposed facts wait for a review") % {"least": least}
    return Content(text, _url("fact_review"), today)


def _quota(event: OutboxEvent, recipient: Subscription) -> Content | None:
    reached = usage.tenant_row().usage.get("reached", {}).get(event.detail)
    if reached is None:
        return None
    text = (
        gettext("The quota %(quota)s is used up, since %(time)s")
        if reached["level"] == "hard"
        else gettext("The quota %(quota)s is nearly used up, since %(time)s")
    )
    since = datetime.fromisoformat(reached["since"])
    return Content(
        text % {"quota": Quota(event.detail).label, "time": _time(since)},
        _url("orchestrator_dailyusage_changelist"),
        since,
    )


# Other events are named as in the list of events.
_CONTENT: Final[Mapping[EventType, Callable[[OutboxEvent, Subscription], Content | None]]] = {
    EventType.ESCALATION_OPENED: _escalation,
    EventType.ESCALATION_WAITING: _escalation,
    EventType.TOOL_CALL_WAITING: _tool_call,
    EventType.JOB_FAILED: _job,
    EventType.ERASURE_REQUESTED: _erasure,
    EventType.FACT_PROPOSED: _review,
    EventType.QUOTA_REACHED: _quota,
}


def _agent(agent_id: UUID) -> str:
    name = Agent.objects.filter(pk=agent_id).values_list("name", flat=True).first()
    return one_line(name or gettext("an agent"))


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M %Z}"


def _url(page: str, *arguments: Any) -> str:
    return base_url() + reverse(f"admin:{page}", "konstruct.urls.tenant", args=arguments)


# --- Slack ----------------------------------------------------------------------------------------


def _post_in_slack(
    recipient: Subscription, content: Content, delivery_id: UUID, *, since: datetime | None
) -> None:
    """Post a notification, once. If an earlier attempt may have posted it, it is looked for."""
    address = {"workspace": recipient.workspace, "channel": recipient.slack_channel}
    mark = PostMark(delivery_id, 0)
    if since is not None:
        from_then = {**address, "ts": f"{(since - CLOCK_SKEW).timestamp():.6f}"}
        try:
            if adapter.SlackAdapter().find(from_then, mark) is not None:
                return
        except ChannelRefused as error:  # without the scope to read, it may be posted twice
            logger.warning("Whether a notification was posted is unknown: %s", error)
    web_api.call_slack(
        "chat_postMessage",
        token=adapter.token_of_workspace(recipient.workspace),
        channel=recipient.slack_channel,
        text=adapter.escape(content.title),
        blocks=_blocks(content),
        metadata=adapter.metadata_of(mark),
        unfurl_links=False,
        unfurl_media=False,
    )


def _blocks(content: Content) -> list[Block]:
    """Return the blocks of a post. Text of a user is plain text, without mentions."""
    button = None
    if content.escalation_id is not None:
        button = ButtonElement(
            text=gettext("Answer"),
            action_id=inbound.ANSWER,
            value=str(content.escalation_id),
            style="primary",
        )
    # The line is escaped: `<!channel>` in the name of an agent sends no notification.
    line = f"{adapter.escape(content.text)[:2000]} <{content.url}|{gettext('Open')}>"
    blocks: list[Block] = [SectionBlock(text=line, accessory=button)]
    if content.question:
        question = content.question[:MAX_BLOCK_CHARACTERS]
        blocks.append(SectionBlock(text=PlainTextObject(text=question, emoji=False)))
    return blocks


# --- Mail -----------------------------------------------------------------------------------------


def is_mail_configured() -> bool:
    """Return whether this deployment can send mail."""
    is_smtp = settings.EMAIL_BACKEND.endswith("smtp.EmailBackend")
    return bool(settings.EMAIL_HOST) or not is_smtp


def _addresses(recipient: Subscription) -> list[str]:
    """Return the addresses without those of members of the team who were deactivated."""
    accounts = User.objects.filter(email__in=recipient.addresses)
    active = set(accounts.filter(is_active=True).values_list("email", flat=True))
    gone = set(accounts.filter(is_active=False).values_list("email", flat=True)) - active
    return [address for address in recipient.addresses if address not in gone]


def _send_mails(addresses: list[str], content: Content, delivery_id: UUID) -> None:
    """Send a mail to each address.

    The Message-ID is made of the delivery's id: a mail that is sent again after a worker was
    killed is shown once by clients that compare ids.

    Raises:
        ChannelUnavailable: the mail server cannot be reached, or asks to try later.
        ChannelRefused: it refuses a mail, or mail is not configured.
    """
    if not is_mail_configured():
        raise ChannelRefused("This deployment cannot send mail yet: ask its operator.")
    question = (f"> {one_line(line)}" for line in content.question.splitlines() if line)
    settings_page = f"{base_url()}/admin/outbox/subscription/"
    hint = gettext("Recipients of notifications: %(settings_page)s") % {
        "settings_page": settings_page
    }
    domain = settings.EMAIL_FROM.rpartition("@")[2].rstrip(">") or "localhost"
    message = EmailMessage(
        subject=content.title[:MAX_SUBJECT_CHARACTERS],
        body="\n".join([content.text, content.url, *question, "", hint]),
        from_email=settings.EMAIL_FROM,
        headers={
            "Message-ID": f"<{delivery_id}@{domain}>",
            # Answers of absent people go nowhere.
            "Auto-Submitted": "auto-generated",
            "X-Auto-Response-Suppress": "All",
        },
    )
    errors = []
    for address in addresses:
        message.to = [address]
        try:
            with release_connections():
                message.send()
        except (SMTPException, OSError) as error:
            errors.append(_mail_error(error))
    # A temporary error comes first: the mails are tried again.
    for failure in sorted(errors, key=lambda error: isinstance(error, ChannelRefused)):
        raise failure


def _mail_error(error: Exception) -> ChannelRefused | ChannelUnavailable:
    if isinstance(error, SMTPRecipientsRefused):
        code = max(code for code, _ in error.recipients.values())
    elif isinstance(error, SMTPResponseException):
        code = error.smtp_code
    else:
        unreachable = ChannelUnavailable(
            f"The mail server could not be reached ({type(error).__name__})."
        )
        unreachable.detail = str(error)
        return unreachable
    # The server's own text may hold anything.
    if code >= 500:
        return ChannelRefused(f"The mail server refused the mail with the code {code}.")
    return ChannelUnavailable(f"The mail server asks to try later, with the code {code}.")
