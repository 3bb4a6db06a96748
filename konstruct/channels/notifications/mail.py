"""Notifications by mail: plain text, through Django's backend."""

from smtplib import SMTPException, SMTPRecipientsRefused, SMTPResponseException
from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils.translation import gettext

from konstruct.channels.exceptions import ChannelRefused, ChannelUnavailable
from konstruct.channels.notifications.content import Content, base_url, one_line
from konstruct.orchestrator.models import Destination, NotificationRecipient
from tenants.context import release_connections

MAX_SUBJECT_CHARACTERS: Final = 150


def is_configured() -> bool:
    """Return whether this deployment can send mail."""
    is_smtp = settings.EMAIL_BACKEND.endswith("smtp.EmailBackend")
    return bool(settings.EMAIL_HOST) or not is_smtp


def address_of(recipient: NotificationRecipient) -> str:
    """Return the address of a recipient.

    Raises:
        ChannelRefused: the member has no address.
    """
    if recipient.destination != Destination.MEMBER:
        return recipient.email
    assert recipient.member is not None  # noqa: S101 (a constraint)
    if not recipient.member.email:
        raise ChannelRefused(f"{recipient.member} has no mail address: add it under Team.")
    return str(recipient.member.email)


def send(recipient: NotificationRecipient, content: Content, notification_id: UUID) -> None:
    """Send a notification. Not in a transaction.

    The Message-ID is made of the notification's id: a mail that is sent again after a worker was
    killed is shown once by clients that compare ids.

    Raises:
        ChannelUnavailable: the mail server cannot be reached, or asks to try later.
        ChannelRefused: it refuses the mail, mail is not configured, or there is no address.
    """
    if not is_configured():
        raise ChannelRefused("Mail is not configured on this deployment: EMAIL_HOST is not set.")
    domain = settings.EMAIL_FROM.rpartition("@")[2].rstrip(">") or "localhost"
    message = EmailMessage(
        subject=content.title[:MAX_SUBJECT_CHARACTERS],
        body=_body(content),
        from_email=settings.EMAIL_FROM,
        to=[address_of(recipient)],
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
        raise _refusal(codes.pop(), is_final=is_final) from error
    except SMTPResponseException as error:
        raise _refusal(error.smtp_code, is_final=error.smtp_code >= 500) from error
    except (SMTPException, OSError) as error:
        unreachable = ChannelUnavailable(
            f"The mail server could not be reached ({type(error).__name__})."
        )
        unreachable.detail = str(error)
        raise unreachable from error


def _refusal(code: int, *, is_final: bool) -> ChannelRefused | ChannelUnavailable:
    # The server's own text may hold anything.
    if is_final:
        return ChannelRefused(f"The mail server refused the mail with the code {code}.")
    return ChannelUnavailable(f"The mail server asks to try later, with the code {code}.")


def _body(content: Content) -> str:
    lines = [content.text, content.url]
    lines += [f"> {one_line(line)}" for line in content.question.splitlines() if line]
    settings_page = f"{base_url()}/admin/orchestrator/notificationrecipient/"
    lines += [
        "",
        gettext("Recipients of notifications: %(settings_page)s")
        % {"settings_page": settings_page},
    ]
    return "\n".join(lines)
