"""Notifications in a Slack channel, with a button to answer the user of an escalation."""

import logging
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext

from konstruct.channels.delivery.adapter import PostMark
from konstruct.channels.exceptions import ChannelRefused
from konstruct.channels.notifications.items import Digest, Item
from konstruct.channels.slack.adapter import SlackAdapter, metadata_of, token_of_workspace
from konstruct.channels.slack.escalation_answers import ANSWER
from konstruct.channels.slack.mrkdwn import escape
from konstruct.channels.slack.web_api import call_slack
from konstruct.orchestrator.models import NotificationRecipient

logger = logging.getLogger(__name__)

# Slack takes 50 blocks, and an item has up to two.
MAX_ITEMS: Final = 20
# How much Slack's clock may be behind.
CLOCK_SKEW: Final = timedelta(minutes=5)
# Of the text of a block, after it is escaped.
MAX_BLOCK_CHARACTERS: Final = 3000


def send(recipient: NotificationRecipient, digest: Digest, *, since: datetime | None) -> None:
    """Post a digest, once. Not in a transaction.

    Args:
        recipient: the channel.
        digest: the content to post.
        since: when a worker may have posted it before, if one was killed: it is looked for.

    Raises:
        ChannelError: as `call_slack` does.
    """
    address = {"workspace": recipient.workspace, "channel": recipient.slack_channel}
    mark = PostMark(digest.batch, 0)
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
        text=escape(digest.title),
        blocks=_blocks(digest),
        metadata=metadata_of(mark),
        unfurl_links=False,
        unfurl_media=False,
    )


def _blocks(digest: Digest) -> list[dict[str, Any]]:
    blocks = [block for item in digest.items[:MAX_ITEMS] for block in _item(item)]
    if len(digest.items) > MAX_ITEMS:
        blocks.append(
            _plain(gettext("And %(value)s more.") % {"value": len(digest.items) - MAX_ITEMS})
        )
    return blocks


def _item(item: Item) -> list[dict[str, Any]]:
    """Return the blocks of an item. Text of a user is plain text, without mentions."""
    # The line is escaped: `<!channel>` in the name of an agent notifies nobody.
    section: dict[str, Any] = {
        "type": "section",
        "text": {
            "type": "mrkdwn",
            "text": f"{escape(item.text)[:2000]} <{item.url}|{gettext('Open')}>",
        },
    }
    if item.escalation_id is not None:
        section["accessory"] = {
            "type": "button",
            "text": {"type": "plain_text", "text": gettext("Answer")},
            "action_id": ANSWER,
            "value": str(item.escalation_id),
            "style": "primary",
        }
    return [section, _plain(item.question)] if item.question else [section]


def _plain(text: str) -> dict[str, Any]:
    shown = text[:MAX_BLOCK_CHARACTERS]
    return {"type": "section", "text": {"type": "plain_text", "text": shown, "emoji": False}}
