"""The adapter of the Slack channel: creates, updates and finds posts, and writes their mrkdwn."""

import re
import string
from collections.abc import Iterator
from typing import Any, Final

from slack_sdk.models.blocks import ActionsBlock, Block, ButtonElement, SectionBlock

from konstruct.channels.delivery import APPROVE, DENY, Address, ChannelRefused, PostMark, View
from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack import installations, web_api

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

    channel = installations.CHANNEL
    can_edit = True
    shares_threads = True

    def parts(self, view: View) -> list[View]:
        """Return the view as mrkdwn in parts, with the buttons below the last part."""
        texts = split(view.text, MAX_BLOCK_CHARACTERS if view.buttons else MAX_CHARACTERS)
        return [View(text) for text in texts[:-1]] + [View(texts[-1], view.buttons)]

    def post(self, address: Address, part: View, mark: PostMark) -> str:
        """Post in the thread, or in the direct messages, and return the post's id."""
        answer = web_api.call_slack(
            "chat_postMessage",
            token=token_of_workspace(address["workspace"]),
            channel=address["channel"],
            thread_ts=address.get("thread_ts") or None,
            unfurl_links=False,
            unfurl_media=False,
            **_content(part, mark),
        )
        return str(answer["ts"])

    def update(self, address: Address, post_id: str, part: View, mark: PostMark) -> None:
        """Replace the text and the buttons of a post."""
        web_api.call_slack(
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
    return installations.token_of(installation)


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
        answer = web_api.call_slack(method, cursor=cursor, **arguments)
        yield from answer.get("messages", ())
        cursor = (answer.get("response_metadata") or {}).get("next_cursor", "")
        if not cursor:
            return
    raise ChannelRefused(
        f"More than {PAGE_SIZE * MAX_PAGES} posts came after the message: whether the reply is "
        "among them is unknown."
    )


def _content(part: View, mark: PostMark) -> dict[str, Any]:
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


# --- Markdown to mrkdwn ---------------------------------------------------------------------------

# Slack recommends 4,000 characters at most, and cuts chat.update off there.
MAX_CHARACTERS: Final = 3900
FENCE: Final = "```"

# Slack converts marks only between spaces and ASCII punctuation. A zero-width space separates them
# from other characters, such as letters and punctuation of languages without spaces.
ZERO_WIDTH_SPACE: Final = "\u200b"
_SEPARATES: Final = frozenset(string.punctuation) - {"_"}
# In the order of precedence. Other text is escaped. `2*3*4` is no emphasis.
_INLINE = re.compile(
    r"""
    (?P<code>`[^`\n]+`)
    | \[(?P<label>[^\[\]\n]+)\]\((?P<url>https?://[^\s()<>|]+(?:\([^\s()<>|]*\)[^\s()<>|]*)*)\)
    | \*\*(?P<strong>[^\s*](?:[^*\n]*[^\s*])?)\*\*
    | (?<!\w)__(?P<strong2>[^\s_](?:[^_\n]*[^\s_])?)__(?!\w)
    | (?<![\d_*])\*(?P<emphasis>[^\s*](?:[^*\n]*[^\s*])?)\*(?![\d_*])
    | ~~(?P<struck>[^\s~](?:[^~\n]*[^\s~])?)~~
    """,
    re.VERBOSE,
)
_HEADING = re.compile(r"#{1,6}[ \t]++")
_ITEM = re.compile(r"(?P<indent>[ \t]*+)[-*+][ \t]++(?P<text>.*+)\Z")
# A word with the space before it, and the last one with the space after it.
_WORD = re.compile(r"\s*+(?:\S++(?:\s++\Z)?|\Z)")


def escape(text: str) -> str:
    """Escape the three special characters of Slack.

    A quoted `<!channel>` or `<@U1>` then notifies no user.
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def split(text: str, limit: int = MAX_CHARACTERS) -> list[str]:
    """Return Markdown as mrkdwn, in at least one part of at most `limit` characters.

    Parts end at lines if possible, else at words. A code block that is split is closed and opened
    again.
    """
    parts: list[str] = []
    lines: list[str] = []
    length, fenced = 0, False
    for line, is_fence in _converted_lines(text, limit - 2 * len(FENCE) - 2):
        closing = len(FENCE) + 1 if fenced else 0
        if lines and length + 1 + len(line) + closing > limit:
            parts.append("\n".join([*lines, FENCE] if fenced else lines))
            lines = [FENCE] if fenced else []
            length = len(FENCE) if fenced else -1
        lines.append(line)
        length += 1 + len(line)
        fenced ^= is_fence
    parts.append("\n".join([*lines, FENCE] if fenced else lines))
    shown = [part.strip("\n") for part in parts]
    return [part for part in shown if part.strip()] or [""]


def _converted_lines(text: str, limit: int) -> Iterator[tuple[str, bool]]:
    """Yield lines of mrkdwn up to the limit, and whether each opens or closes a code block."""
    in_code = False
    for line in text.splitlines():
        if line.strip().startswith(FENCE):
            in_code = not in_code
            yield FENCE, True
        else:
            for piece in _pieces(line, limit, in_code):
                yield piece, False


def _pieces(line: str, limit: int, in_code: bool) -> Iterator[str]:
    """Yield a line in pieces up to the limit, split at words, or inside of longer words."""
    written = escape(line) if in_code else _convert_line(line)
    if len(written) <= limit:
        yield written
        return
    piece = ""
    # Escaped word by word, so that no entity is split. Markdown in a long line is not converted.
    for word in _WORD.findall(line):
        written = escape(word)
        if len(piece) + len(written) <= limit:
            piece += written
            continue
        if piece:
            yield piece
        piece = "" if len(written) > limit else written.lstrip()
        for character in word.lstrip() if not piece else ():
            if len(piece) + len(escape(character)) > limit:
                yield piece
                piece = ""
            piece += escape(character)
    yield piece


def _convert_line(line: str) -> str:
    heading = _HEADING.match(line)
    if heading:
        text = line[heading.end() :].rstrip("#").rstrip(" \t")
        # Without bold marks of a part: it is bold as a whole.
        unmarked = escape(text.replace("**", "").replace("__", ""))
        return f"*{unmarked}*" if text else ""
    item = _ITEM.match(line)
    if item:
        return f"{item['indent']}• {_convert_inline(item['text'])}"
    return _convert_inline(line)


def _convert_inline(text: str) -> str:
    written, end = [], 0
    for found in _INLINE.finditer(text):
        written.append(escape(text[end : found.start()]))
        written.append(_convert_match(found))
        end = found.end()
    return "".join(written) + escape(text[end:])


def _convert_match(found: re.Match[str]) -> str:
    if found["url"]:
        return f"<{escape(found['url'])}|{escape(found['label']).replace('|', '¦')}>"
    if found["code"]:
        marked = found["code"]
    elif found["emphasis"]:
        marked = f"_{found['emphasis']}_"
    elif found["struck"]:
        marked = f"~{found['struck']}~"
    else:
        marked = f"*{found['strong'] or found['strong2']}*"
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return _separator(before) + escape(marked) + _separator(after)


def _separator(neighbor: str) -> str:
    is_separate = not neighbor.strip() or neighbor in _SEPARATES or neighbor == ZERO_WIDTH_SPACE
    return "" if is_separate else ZERO_WIDTH_SPACE
