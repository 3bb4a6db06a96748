"""Notifications in a Slack channel, with a button to answer the user of an escalation."""

import logging
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext

from konstruct.channels.delivery.adapter import PostMark
from konstruct.channels.exceptions import ChannelRefused
from konstruct.channels.notifications.content import Content
from konstruct.channels.slack.adapter import SlackAdapter, metadata_of, token_of_workspace
from konstruct.channels.slack.escalation_answers import ANSWER
from konstruct.channels.slack.mrkdwn import escape
from konstruct.channels.slack.web_api import call_slack
from konstruct.orchestrator.models import NotificationRecipient

logger = logging.getLogger(__name__)

# How much Slack's clock may be behind.
CLOCK_SKEW: Final = timedelta(minutes=5)
# Of the text of a block, after it is escaped.
MAX_BLOCK_CHARACTERS: Final = 3000


def send(
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


def _blocks(content: Content) -> list[dict[str, Any]]:
    """Return the blocks of a post. Text of a user is plain text, without mentions."""
    # The line is escaped: `<!channel>` in the name of an agent notifies nobody.
    section: dict[str, Any] = {
        "type": "section",
        "text": {
            "type": "mrkdwn",
            "text": f"{escape(content.text)[:2000]} <{content.url}|{gettext('Open')}>",
        },
    }
    if content.escalation_id is not None:
        section["accessory"] = {
            "type": "button",
            "text": {"type": "plain_text", "text": gettext("Answer")},
            "action_id": ANSWER,
            "value": str(content.escalation_id),
            "style": "primary",
        }
    if not content.question:
        return [section]
    question = content.question[:MAX_BLOCK_CHARACTERS]
    text = {"type": "plain_text", "text": question, "emoji": False}
    return [section, {"type": "section", "text": text}]
