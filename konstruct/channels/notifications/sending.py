"""Sends a notification to its recipient.

A worker that makes a further attempt cannot know whether an earlier one was killed after sending.
In Slack it looks for the post first. A mail may be sent twice, with the same Message-ID.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone, translation
from django.utils.translation import gettext

from konstruct.channels.models import SlackInstallation
from konstruct.channels.notifications import mail, slack
from konstruct.channels.notifications.checks import NOTIFICATIONS
from konstruct.channels.notifications.content import Content, base_url, content_of
from konstruct.orchestrator.models import (
    Destination,
    Event,
    Notification,
    NotificationRecipient,
)
from tenants.jobs import Lease

# Sent notifications are kept for this time, so that open events are not sent again.
RETENTION: Final = timedelta(days=90)
MAX_REMOVED: Final = 1000


def has_recipients(event: Event = Event.ESCALATION_OPENED) -> bool:
    """Return whether a reachable recipient is notified of an event in the current tenant.

    A mail recipient is reachable if mail is configured and there is an address, a Slack channel if
    its workspace is connected.
    """
    recipients = NotificationRecipient.objects.active().filter(events__contains=[event])
    workspaces = set(SlackInstallation.objects.connected().values_list("workspace", flat=True))
    return any(
        recipient.workspace in workspaces
        if recipient.destination == Destination.SLACK
        else mail.is_configured()
        and (recipient.email or (recipient.member and recipient.member.email))
        for recipient in recipients.select_related("member")
    )


def send(notification_id: UUID) -> None:
    """Send a notification. One worker sends it at a time."""
    NOTIFICATIONS.run(notification_id, partial(_send, notification_id))


def _send(notification_id: UUID, lease: Lease) -> None:
    pending = Notification.objects.pending().filter(pk=notification_id)
    row = pending.select_related("recipient__member").first()
    content = None
    if row is not None and NotificationRecipient.objects.active().filter(pk=row.recipient_id):
        with translation.override(settings.NOTIFICATION_LANGUAGE):
            content = content_of(row)
    if row is not None and content is not None:
        since = row.created_at if lease.token > 1 else None
        deliver(row.recipient, content, row.pk, since=since)
    with lease.transaction():
        if row is None or content is None:
            pending.delete()
        else:
            _record_sent(pending, row.recipient)
        lease.finish()


def deliver(
    recipient: NotificationRecipient,
    content: Content,
    notification_id: UUID,
    *,
    since: datetime | None = None,
) -> None:
    """Send a notification by mail or to Slack. Do not call it in a transaction.

    Args:
        recipient: the recipient.
        content: the content.
        notification_id: the id that a repeated mail or post has again.
        since: the time since which a worker may have sent it; None at the first attempt.

    Raises:
        ChannelError: it was not sent, or may not have been sent.
    """
    with translation.override(settings.NOTIFICATION_LANGUAGE):
        if recipient.destination == Destination.SLACK:
            slack.send(recipient, content, notification_id, since=since)
        else:
            mail.send(recipient, content, notification_id)


def send_test(recipient: NotificationRecipient) -> None:
    """Send a test immediately. Not in a transaction.

    Raises as `deliver` does.
    """
    with translation.override(settings.NOTIFICATION_LANGUAGE):
        text = gettext("This is a test: notifications reach you here")
    deliver(recipient, Content(text, f"{base_url()}/admin/"), uuid4())


def _record_sent(pending: QuerySet[Notification], recipient: NotificationRecipient) -> None:
    """Record that a notification was sent, and remove old ones of its recipient."""
    pending.update(sent_at=Now())
    old = Notification.objects.filter(
        recipient=recipient, sent_at__lt=timezone.now() - RETENTION
    ).values("pk")[:MAX_REMOVED]
    Notification.objects.filter(pk__in=old).delete()
