"""What people are called in Slack: events tell their ids, and a task asks for their names."""

import logging
from collections.abc import Iterable
from datetime import timedelta

from django.utils import timezone

from konstruct.channels.exceptions import ChannelError, ChannelRefused
from konstruct.channels.models import SlackInstallation, SlackUser
from konstruct.channels.slack.web_api import ask
from konstruct.channels.slack.workspaces.installations import CHANNEL, token_of
from memory.models import Message

logger = logging.getLogger(__name__)

KNOWN_FOR = timedelta(days=1)


def known_users(workspace: str, slack_ids: Iterable[str]) -> dict[str, SlackUser]:
    """Return what is known of users, by Slack's ids of them."""
    found = SlackUser.objects.filter(workspace=workspace, slack_id__in=slack_ids)
    return {user.slack_id: user for user in found}


def is_to_be_asked(known: SlackUser | None, user_id: str) -> bool:
    """Tell whether Slack should be asked for a name (again)."""
    if known is None or known.user_id != user_id:
        return True
    return timezone.now() - known.looked_up_at > KNOWN_FOR


def learn_name(workspace: str, slack_id: str, user_id: str) -> None:
    """Ask Slack what a user is called, and remember it for a day.

    What goes wrong is a line in the log: the next message is reason enough to ask again.
    """
    installation = SlackInstallation.objects.connected().filter(workspace=workspace).first()
    if installation is None:
        return
    try:
        answer = ask("users_info", token=token_of(installation), user=slack_id)
        name = _name(answer.get("user"))
    except ChannelRefused as error:
        logger.warning("What user %s of Slack is called: %s", slack_id, error)
        name = ""
    except ChannelError as error:
        logger.warning("What user %s of Slack is called: %s", slack_id, error)
        return
    # Who was erased while the task waited is not written down again.
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
