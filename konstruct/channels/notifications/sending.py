"""Sends new notifications to a recipient: one digest at a time.

Before a digest is sent, its notifications get the id of a batch. A worker that finds notifications
with a batch sends the same batch again, because another worker may have been killed after sending
it. In Slack it looks for the post first. A mail may be sent twice, with the same Message-ID.
"""

from collections.abc import Sequence
from datetime import timedelta
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
from konstruct.channels.notifications.items import Digest, Item, base_url, digest_of, tenant_name
from konstruct.orchestrator.models import (
    Destination,
    Event,
    Notification,
    NotificationRecipient,
)
from tenants.jobs import Lease

# The maximum number of notifications of a digest.
MAX_BATCH: Final = 200
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


def send(recipient_id: UUID) -> None:
    """Send the next digest of a recipient, or postpone the job. One worker runs it at a time."""
    NOTIFICATIONS.run(recipient_id, partial(_send, recipient_id))


def _send(recipient_id: UUID, lease: Lease) -> None:
    recipients = NotificationRecipient.objects.active().select_related("member")
    recipient = recipients.filter(pk=recipient_id).first()
    pending = Notification.objects.pending().filter(recipient_id=recipient_id)
    if recipient is None:
        with lease.transaction():
            pending.delete()
            lease.finish()
        return
    if pause := recipient.pause(timezone.now()):
        with lease.transaction():
            NOTIFICATIONS.postpone(recipient_id, pause)
        return
    with lease.transaction():
        rows, is_repeated = _take_batch(pending)
    if rows and rows[0].batch is not None:
        with translation.override(settings.NOTIFICATION_LANGUAGE):
            digest = digest_of(rows[0].batch, rows, recipient)
        if digest.items:
            deliver(recipient, digest, repeats=rows if is_repeated else [])
            recipient.last_sent_at = timezone.now()
    with lease.transaction():
        _finish(recipient, [row.pk for row in rows], pending, lease)


def _take_batch(pending: QuerySet[Notification]) -> tuple[list[Notification], bool]:
    """Return the notifications of the next digest, and whether a worker may have sent it before."""
    begun = list(pending.filter(batch__isnull=False)[:MAX_BATCH])
    if begun:
        return [row for row in begun if row.batch == begun[0].batch], True
    rows, batch = list(pending[:MAX_BATCH]), uuid4()
    Notification.objects.filter(pk__in=[row.pk for row in rows]).update(batch=batch)
    for row in rows:
        row.batch = batch
    return rows, False


def deliver(
    recipient: NotificationRecipient, digest: Digest, *, repeats: Sequence[Notification] = ()
) -> None:
    """Send a digest by mail or to Slack. Do not call it in a transaction.

    Args:
        recipient: the recipient.
        digest: the content.
        repeats: its notifications, if a worker may have sent the digest before.

    Raises:
        ChannelError: it was not sent, or may not have been sent.
    """
    with translation.override(settings.NOTIFICATION_LANGUAGE):
        if recipient.destination != Destination.SLACK:
            mail.send(recipient, digest)
        else:
            since = min((row.created_at for row in repeats), default=None)
            slack.send(recipient, digest, since=since)


def send_test(recipient: NotificationRecipient) -> None:
    """Send a test immediately, also in quiet hours. Not in a transaction.

    Raises as `deliver` does.
    """
    with translation.override(settings.NOTIFICATION_LANGUAGE):
        text = gettext("This is a test: notifications reach you here")
    item = Item(text, f"{base_url()}/admin/")
    deliver(recipient, Digest(uuid4(), tenant_name(), [item]))


def _finish(
    recipient: NotificationRecipient,
    sent: Sequence[UUID],
    pending: QuerySet[Notification],
    lease: Lease,
) -> None:
    """Record that a batch was sent. Later notifications are sent after the recipient's pause."""
    if sent:
        Notification.objects.filter(pk__in=sent).update(sent_at=Now())
        recipient.save(update_fields=["last_sent_at"])
        old = Notification.objects.filter(
            recipient=recipient, sent_at__lt=timezone.now() - RETENTION
        ).values("pk")[:MAX_REMOVED]
        Notification.objects.filter(pk__in=old).delete()
    if pending.exists():
        NOTIFICATIONS.postpone(recipient.pk, recipient.pause(timezone.now()))
    else:
        lease.finish()
