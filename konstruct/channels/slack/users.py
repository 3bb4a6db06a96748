"""Names of Slack's users: events have their ids, and a task asks Slack for their names."""

import logging
from collections.abc import Iterable
from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from konstruct.channels.exceptions import ChannelError, ChannelRefused
from konstruct.channels.models import SlackInstallation, SlackUser
from konstruct.channels.slack.installations import CHANNEL, token_of
from konstruct.channels.slack.web_api import call_slack
from memory.models import Message
from tenants.serving import TenantTask

logger = logging.getLogger(__name__)

MAX_NAME_AGE = timedelta(days=1)


def known_users(workspace: str, slack_ids: Iterable[str]) -> dict[str, SlackUser]:
    """Return the known users by Slack's ids."""
    users = SlackUser.objects.filter(workspace=workspace, slack_id__in=slack_ids)
    return {user.slack_id: user for user in users}


def is_name_outdated(known: SlackUser | None, user_id: str) -> bool:
    """Return whether to ask Slack for a user's name."""
    if known is None or known.user_id != user_id:
        return True
    return timezone.now() - known.looked_up_at > MAX_NAME_AGE


@shared_task(base=TenantTask)
def learn_name(tenant_id: str, workspace: str, slack_id: str, user_id: str) -> None:
    """Ask Slack for a user's name. Safe to run twice."""
    fetch_name(workspace, slack_id, user_id)


def fetch_name(workspace: str, slack_id: str, user_id: str) -> None:
    """Ask Slack for a user's name, and store it for a day.

    Errors are logged; the user's next message asks again.
    """
    installation = SlackInstallation.objects.connected().filter(workspace=workspace).first()
    if installation is None:
        return
    try:
        answer = call_slack("users_info", token=token_of(installation), user=slack_id)
        name = _name(answer.get("user"))
    except ChannelRefused as error:
        logger.warning("The name of Slack user %s is unknown: %s", slack_id, error)
        name = ""
    except ChannelError as error:
        logger.warning("The name of Slack user %s is unknown: %s", slack_id, error)
        return
    # The user may have been erased while the task waited.
    if not Message.objects.filter(channel=CHANNEL, user_id=user_id).exists():
        return
    SlackUser.objects.update_or_create(
        workspace=workspace,
        slack_id=slack_id,
        defaults={"user_id": user_id, "name": name, "looked_up_at": timezone.now()},
    )


def _name(user: object) -> str:
    """Return the display name, else the real one."""
    profile = user.get("profile") if isinstance(user, dict) else None
    if not isinstance(profile, dict):
        return ""
    name = profile.get("display_name") or profile.get("real_name") or ""
    return str(name).replace("\0", "")[:120]
