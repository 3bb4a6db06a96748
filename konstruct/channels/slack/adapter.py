"""The adapter of the Slack channel: creates, updates and finds posts."""

from collections.abc import Iterator
from typing import Any

from slack_sdk.models.blocks import ActionsBlock, Block, ButtonElement, SectionBlock

from konstruct.channels.delivery.adapter import Address, Part, PostMark, View
from konstruct.channels.delivery.rendering import APPROVE, DENY
from konstruct.channels.exceptions import ChannelRefused
from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack.installations import CHANNEL, token_of
from konstruct.channels.slack.mrkdwn import MAX_CHARACTERS, split
from konstruct.channels.slack.web_api import call_slack

EVENT_TYPE = "konstruct_reply"
# Characters of the text in a block. Posts with buttons have blocks.
MAX_BLOCK_CHARACTERS = 3000
PAGE_SIZE = 200
# `find` reads at most this many pages of posts.
MAX_PAGES = 20
STYLES = {APPROVE: "primary", DENY: "danger"}


class SlackAdapter:
    """Posts with the token of the workspace's installation, and without unfurling links.

    Slack fetches a link that it unfurls, and would send the data in its URL to the link's host.
    """

    channel = CHANNEL
    can_edit = True
    shares_threads = True

    def parts(self, view: View) -> list[Part]:
        """Return the view as mrkdwn in parts, with the buttons below the last part."""
        texts = split(view.text, MAX_BLOCK_CHARACTERS if view.buttons else MAX_CHARACTERS)
        return [Part(text) for text in texts[:-1]] + [Part(texts[-1], view.buttons)]

    def post(self, address: Address, part: Part, mark: PostMark) -> str:
        """Post in the thread, or in the direct messages, and return the post's id."""
        answer = call_slack(
            "chat_postMessage",
            token=token_of_workspace(address["workspace"]),
            channel=address["channel"],
            thread_ts=address.get("thread_ts") or None,
            unfurl_links=False,
            unfurl_media=False,
            **_content(part, mark),
        )
        return str(answer["ts"])

    def update(self, address: Address, post_id: str, part: Part, mark: PostMark) -> None:
        """Replace the text and the buttons of a post."""
        call_slack(
            "chat_update",
            token=token_of_workspace(address["workspace"]),
            channel=address["channel"],
            ts=post_id,
            **_content(part, mark),
        )

    def find(self, address: Address, mark: PostMark) -> str | None:
        """Return the id of the post with this mark; None if none follows the user's message."""
        metadata = metadata_of(mark)
        for message in _later_messages(address):
            if message.get("metadata") == metadata:
                return str(message["ts"])
        return None


def token_of_workspace(workspace: str) -> str:
    """Return the bot's token. Raises ChannelRefused if the workspace is not connected."""
    installation = SlackInstallation.objects.connected().filter(workspace=workspace).first()
    if installation is None:
        raise ChannelRefused(f"The Slack workspace {workspace} is not connected any more.")
    return token_of(installation)


def _later_messages(address: Address) -> Iterator[dict[str, Any]]:
    method = "conversations_history"
    arguments: dict[str, Any] = {
        "token": token_of_workspace(address["workspace"]),
        "channel": address["channel"],
        "oldest": address["ts"],
        "include_all_metadata": True,
        "limit": PAGE_SIZE,
    }
    if thread := address.get("thread_ts"):
        method, arguments["ts"] = "conversations_replies", thread
    cursor = ""
    for _ in range(MAX_PAGES):
        answer = call_slack(method, cursor=cursor, **arguments)
        yield from answer.get("messages", ())
        cursor = (answer.get("response_metadata") or {}).get("next_cursor", "")
        if not cursor:
            return
    raise ChannelRefused(
        f"More than {PAGE_SIZE * MAX_PAGES} posts came after the message: whether the reply is "
        "among them is unknown."
    )


def _content(part: Part, mark: PostMark) -> dict[str, Any]:
    blocks: list[Block] = []
    if part.buttons:
        buttons = [
            ButtonElement(
                text=button.label,
                action_id=button.action,
                value=button.value,
                style=STYLES.get(button.action),
            )
            for button in part.buttons
        ]
        blocks = [SectionBlock(text=part.text), ActionsBlock(elements=buttons)]
    return {"text": part.text, "blocks": blocks, "metadata": metadata_of(mark)}


def metadata_of(mark: PostMark) -> dict[str, Any]:
    """Return a mark as Slack stores it with a post."""
    return {
        "event_type": EVENT_TYPE,
        "event_payload": {"message": str(mark.message_id), "part": mark.part},
    }
