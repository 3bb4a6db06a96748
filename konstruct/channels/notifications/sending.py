"""Sends a notification to its recipient.

A worker that makes a further attempt cannot know whether an earlier one was killed after sending.
In Slack it looks for the post first. A mail may be sent twice, with the same Message-ID.
"""

import logging
from datetime import datetime, timedelta
from smtplib import SMTPException, SMTPRecipientsRefused, SMTPResponseException
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models.functions import Now
from django.utils import timezone, translation
from django.utils.translation import gettext
from slack_sdk.models.blocks import Block, ButtonElement, PlainTextObject, SectionBlock

from konstruct.channels.delivery.adapter import PostMark
from konstruct.channels.exceptions import ChannelRefused, ChannelUnavailable
from konstruct.channels.models import SlackInstallation
from konstruct.channels.notifications.checks import NOTIFICATIONS
from konstruct.channels.notifications.content import Content, base_url, content_of, one_line
from konstruct.channels.slack.adapter import SlackAdapter, metadata_of, token_of_workspace
from konstruct.channels.slack.escalation_answers import ANSWER
from konstruct.channels.slack.mrkdwn import escape
from konstruct.channels.slack.web_api import call_slack
from konstruct.orchestrator.models import (
    Destination,
    Event,
    Notification,
    NotificationRecipient,
)
from tenants.context import release_connections
from tenants.jobs import Lease

logger = logging.getLogger(__name__)

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
        else is_mail_configured()
        and (recipient.email or (recipient.member and recipient.member.email))
        for recipient in recipients.select_related("member")
    )


def send(job: UUID | Lease) -> None:
    """Send a notification. One worker sends it at a time."""
    NOTIFICATIONS.run(job, _send)


def _send(lease: Lease) -> None:
    pending = Notification.objects.filter(pk=lease.key, sent_at=None)
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
            pending.update(sent_at=Now())
            old = Notification.objects.filter(
                recipient=row.recipient, sent_at__lt=timezone.now() - RETENTION
            ).values("pk")[:MAX_REMOVED]
            Notification.objects.filter(pk__in=old).delete()
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
            _post_in_slack(recipient, content, notification_id, since=since)
        else:
            _send_mail(recipient, content, notification_id)


def send_test(recipient: NotificationRecipient) -> None:
    """Send a test immediately. Not in a transaction.

    Raises as `deliver` does.
    """
    with translation.override(settings.NOTIFICATION_LANGUAGE):
        text = gettext("This is a test: notifications reach you here")
    deliver(recipient, Content(text, f"{base_url()}/admin/"), uuid4())


# How much Slack's clock may be behind.
CLOCK_SKEW: Final = timedelta(minutes=5)
# Of the text of a block, after it is escaped.
MAX_BLOCK_CHARACTERS: Final = 3000


def _post_in_slack(
    recipient: NotificationRecipient,
    content: Content,
    notification_id: UUID,
    *,
    since: datetime | None = None,
) -> None:
    """Post a notification, once. Not in a transaction.

    Args:
        recipient: the channel.
        content: what to post.
        notification_id: its id, by which an earlier post is found.
        since: when a worker may have posted it before, if one was killed: it is looked for.

    Raises:
        ChannelError: as `call_slack` does.
    """
    address = {"workspace": recipient.workspace, "channel": recipient.slack_channel}
    mark = PostMark(notification_id, 0)
    if since is not None:
        from_then = {**address, "ts": f"{(since - CLOCK_SKEW).timestamp():.6f}"}
        try:
            if SlackAdapter().find(from_then, mark) is not None:
                return
        except ChannelRefused as error:  # without the scope to read, it may be posted twice
            logger.warning("Whether a notification was posted is unknown: %s", error)
    call_slack(
        "chat_postMessage",
        token=token_of_workspace(recipient.workspace),
        channel=recipient.slack_channel,
        text=escape(content.title),
        blocks=_blocks(content),
        metadata=metadata_of(mark),
        unfurl_links=False,
        unfurl_media=False,
    )


def _blocks(content: Content) -> list[Block]:
    """Return the blocks of a post. Text of a user is plain text, without mentions."""
    button = None
    if content.escalation_id is not None:
        button = ButtonElement(
            text=gettext("Answer"),
            action_id=ANSWER,
            value=str(content.escalation_id),
            style="primary",
        )
    # The line is escaped: `<!channel>` in the name of an agent notifies nobody.
    line = f"{escape(content.text)[:2000]} <{content.url}|{gettext('Open')}>"
    blocks: list[Block] = [SectionBlock(text=line, accessory=button)]
    if content.question:
        question = content.question[:MAX_BLOCK_CHARACTERS]
        blocks.append(SectionBlock(text=PlainTextObject(text=question, emoji=False)))
    return blocks


MAX_SUBJECT_CHARACTERS: Final = 150


def is_mail_configured() -> bool:
    """Return whether this deployment can send mail."""
    is_smtp = settings.EMAIL_BACKEND.endswith("smtp.EmailBackend")
    return bool(settings.EMAIL_HOST) or not is_smtp


def _send_mail(recipient: NotificationRecipient, content: Content, notification_id: UUID) -> None:
    """Send a notification. Not in a transaction.

    The Message-ID is made of the notification's id: a mail that is sent again after a worker was
    killed is shown once by clients that compare ids.

    Raises:
        ChannelUnavailable: the mail server cannot be reached, or asks to try later.
        ChannelRefused: it refuses the mail, mail is not configured, or there is no address.
    """
    if not is_mail_configured():
        raise ChannelRefused("This deployment cannot send mail yet: ask its operator.")
    address = recipient.email
    if recipient.destination == Destination.MEMBER and recipient.member is not None:
        address = recipient.member.email
        if not address:
            raise ChannelRefused(f"{recipient.member} has no mail address: add it under Team.")
    question = (f"> {one_line(line)}" for line in content.question.splitlines() if line)
    settings_page = f"{base_url()}/admin/orchestrator/notificationrecipient/"
    hint = gettext("Recipients of notifications: %(settings_page)s") % {
        "settings_page": settings_page
    }
    domain = settings.EMAIL_FROM.rpartition("@")[2].rstrip(">") or "localhost"
    message = EmailMessage(
        subject=content.title[:MAX_SUBJECT_CHARACTERS],
        body="\n".join([content.text, content.url, *question, "", hint]),
        from_email=settings.EMAIL_FROM,
        to=[address],
        headers={
            "Message-ID": f"<{notification_id}@{domain}>",
            # Answers of absent people go nowhere.
            "Auto-Submitted": "auto-generated",
            "X-Auto-Response-Suppress": "All",
        },
    )
    try:
        with release_connections():
            message.send()
    except SMTPRecipientsRefused as error:
        codes = {code for code, _ in error.recipients.values()}
        is_final = all(code >= 500 for code in codes)
        raise _mail_refusal(codes.pop(), is_final=is_final) from error
    except SMTPResponseException as error:
        raise _mail_refusal(error.smtp_code, is_final=error.smtp_code >= 500) from error
    except (SMTPException, OSError) as error:
        unreachable = ChannelUnavailable(
            f"The mail server could not be reached ({type(error).__name__})."
        )
        unreachable.detail = str(error)
        raise unreachable from error


def _mail_refusal(code: int, *, is_final: bool) -> ChannelRefused | ChannelUnavailable:
    # The server's own text may hold anything.
    if is_final:
        return ChannelRefused(f"The mail server refused the mail with the code {code}.")
    return ChannelUnavailable(f"The mail server asks to try later, with the code {code}.")
