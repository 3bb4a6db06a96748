"""Events of Slack's Events API: the messages that people write, and their text. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Self

from konstruct.channels.slack.adapter import escape
from konstruct.orchestrator.history_import.chats import SLACK_TOKEN, slack_text
from konstruct.orchestrator.messages import attachment_note
from memory.context.chat import storable_text, with_speaker

# The subtypes of messages that a person writes.
_WRITTEN: Final = frozenset({"", "file_share", "me_message", "thread_broadcast"})
# Slack's ids have 9 to 20 letters and digits; its timestamps are digits with a point.
_ID: Final = re.compile(r"[A-Za-z0-9.]{1,50}")
_USER: Final = re.compile(r"@[A-Z0-9]+")
# The characters between the mention of the bot and the text.
_AFTER_MENTION: Final = " \t\r\n,:;–—-"
MAX_NAME_CHARACTERS: Final = 120
TRUNCATED: Final = " […]"
# An older message, which Slack may deliver after an outage, gets a time this long ago.
MAX_AGE: Final = timedelta(hours=1)
MAX_BLOCK_DEPTH: Final = 16


class AddressedBy(StrEnum):
    """How a message addresses the agent."""

    DIRECT = "direct"
    MENTION = "mention"
    OVERHEARD = "overheard"  # only for the agent if the thread is engaged


@dataclass(frozen=True, slots=True)
class Envelope:
    """The workspace, id and time of an event, and the event."""

    workspace: str
    bot: str
    """Slack's id of the bot; empty if Slack does not send it."""
    event_id: str
    at: datetime | None
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """A message of a person that the bot can read. The inbox stores it as JSON."""

    kind: AddressedBy
    workspace: str
    channel: str
    user: str
    home: str
    """The workspace of the user: another one for a guest in a shared channel."""
    ts: str
    at: str
    """When the user sent it, as ISO 8601: at most MAX_AGE before its arrival, and not after it."""
    thread_ts: str
    """The thread to answer in; empty for direct messages outside of threads."""
    text: str
    name: str
    files: Sequence[str]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the event from its JSON in the inbox."""
        return cls(**{**stored, "kind": AddressedBy(stored["kind"])})

    @property
    def begins_thread(self) -> bool:
        """Whether it is the first message of its thread."""
        return self.thread_ts == self.ts

    @property
    def thread_id(self) -> str:
        """The conversation: a thread, or all direct messages outside of threads."""
        place = f"{self.workspace}/{self.channel}"
        return f"{place}/{self.thread_ts}" if self.thread_ts else place

    @property
    def key(self) -> str:
        """The idempotency key: Slack sends two events for one mention."""
        return f"slack/{self.workspace}/{self.channel}/{self.ts}"


def parse_envelope(payload: Mapping[str, Any]) -> Envelope | None:
    """Return the event of a payload; None if it has no valid event."""
    event = payload.get("event")
    if not isinstance(event, Mapping):
        return None
    # In a channel that two workspaces share, `team_id` may be the other workspace.
    authorizations = payload.get("authorizations")
    first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
    workspace = native_id(first, "team_id") or native_id(payload, "team_id")
    event_id = native_id(payload, "event_id")
    if not workspace or not event_id:
        return None
    bot = native_id(first, "user_id") if isinstance(first, Mapping) and first.get("is_bot") else ""
    return Envelope(workspace, bot, event_id, _time(payload.get("event_time")), event)


def read_message(envelope: Envelope, *, bot: str, now: datetime) -> MessageEvent | None:
    """Return the message of an event that arrives now; None if it is no new message of a person.

    Posts of bots, and events about existing messages (edited, deleted, joined …), are ignored.
    """
    event = envelope.event
    own_text = _text(event, "text") or _block_text(event.get("blocks"))
    kind = _kind(event, own_text, bot)
    user, channel, ts = (native_id(event, name) for name in ("user", "channel", "ts"))
    if kind is None or not (user and channel and ts):
        return None
    if user == bot or _text(event, "bot_id") or _text(event, "subtype") not in _WRITTEN:
        return None
    profile, files = event.get("user_profile"), _mappings(event.get("files"))
    teams = (native_id(event, "user_team"), native_id(event, "team"), native_id(profile, "team"))
    sent_at = _time(ts) or now
    texts = (own_text, *_transcriptions(files), *_forwarded(event.get("attachments")))
    return MessageEvent(
        kind=kind,
        workspace=envelope.workspace,
        channel=channel,
        user=user,
        home=next((team for team in teams if team.startswith("T")), envelope.workspace),
        ts=ts,
        at=max(min(sent_at, now), now - MAX_AGE).isoformat(),
        thread_ts=native_id(event, "thread_ts") or ("" if kind is AddressedBy.DIRECT else ts),
        text=storable_text("\n".join(filter(None, texts))),
        name=name_of(profile),
        files=_file_names(files),
    )


def native_id(mapping: Any, name: str) -> str:
    """Return the Slack id with this name; "" if it is missing or invalid."""
    text = _text(mapping, name)
    return text if _ID.fullmatch(text) else ""


def name_of(profile: Any) -> str:
    """Return the display name of a profile, else the real one; "" without one."""
    name = _text(profile, "display_name") or _text(profile, "real_name")
    return storable_text(name[:MAX_NAME_CHARACTERS])


def pressed_button(payload: Mapping[str, Any]) -> tuple[str, str]:
    """Return the action and the value of a button that a user has pressed; ("", ""): none."""
    actions = _mappings(payload.get("actions"))
    if _text(payload, "type") != "block_actions" or not actions:
        return "", ""
    return _text(actions[0], "action_id"), _text(actions[0], "value")


def sender_of(payload: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the workspace of an interaction, the user and the workspace of the user, or ""."""
    workspace, user = (native_id(payload.get(name), "id") for name in ("team", "user"))
    return workspace, user, native_id(payload.get("user"), "team_id") or workspace


def plain_text(text: str, *, bot: str, agent: str, names: Mapping[str, str]) -> str:
    """Convert a text from Slack's mrkdwn to plain text, with names for mentions and URLs for links.

    Args:
        text: the text, in Slack's mrkdwn.
        bot: Slack's id of the bot. A mention of it at the beginning is left out; elsewhere it
            becomes the agent's name.
        agent: the agent's name.
        names: known display names, by Slack's ids of users.
    """
    text = text.strip()
    first = SLACK_TOKEN.match(text)
    if first and _target(first[1]) == f"@{bot}":
        text = text[first.end() :].lstrip(_AFTER_MENTION)
    return slack_text(text, {**names, bot: agent}).strip()


def mentions(text: str, user: str) -> bool:
    """Return whether a text mentions a user."""
    return any(_target(token) == f"@{user}" for token in SLACK_TOKEN.findall(text))


def mentioned_users(text: str) -> set[str]:
    """Return Slack's ids of the users whom a text mentions."""
    targets = {_target(token) for token in SLACK_TOKEN.findall(text)}
    return {target[1:] for target in targets if _USER.fullmatch(target)}


def _kind(event: Mapping[str, Any], text: str, bot: str) -> AddressedBy | None:
    if event.get("type") == "app_mention":
        return AddressedBy.MENTION
    if event.get("type") != "message":
        return None
    if event.get("channel_type") == "im":
        return AddressedBy.DIRECT
    return AddressedBy.MENTION if mentions(text, bot) else AddressedBy.OVERHEARD


def _text(mapping: Any, name: str) -> str:
    value = mapping.get(name) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, str) else ""


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _title(file: Mapping[str, Any]) -> str:
    return _text(file, "title") or _text(file, "name") or "a file"


def _file_names(files: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the files without a transcription."""
    return [storable_text(_title(file)) for file in files if not _transcription(file)]


def _transcription(file: Mapping[str, Any]) -> str:
    """Return the words of an audio or video clip; "" if Slack has not transcribed it yet."""
    transcription = file.get("transcription")
    preview = transcription.get("preview") if isinstance(transcription, Mapping) else None
    content = _text(preview, "content").strip()
    is_cut = bool(content) and isinstance(preview, Mapping) and preview.get("has_more") is True
    return content + TRUNCATED if is_cut else content


def _transcriptions(files: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        escape(with_speaker(f"[Transcription of {_title(file)}]", _transcription(file)))
        for file in files
        if _transcription(file)
    ]


def _forwarded(attachments: Any) -> list[str]:
    """Return the forwarded messages with their authors' names; previews of links are left out."""
    texts = []
    for attachment in _mappings(attachments):
        is_message = attachment.get("is_share") or attachment.get("is_msg_unfurl")
        if not is_message and ("service_name" in attachment or "title_link" in attachment):
            continue
        files, author_id = _mappings(attachment.get("files")), native_id(attachment, "author_id")
        blocks = [attachment.get("blocks"), attachment.get("message_blocks")]
        text = _text(attachment, "text") or _block_text(blocks) or _text(attachment, "fallback")
        note = escape(attachment_note(_file_names(files)))
        content = "\n".join(filter(None, (text, *_transcriptions(files), note)))
        name = _text(attachment, "author_name") or _text(attachment, "author_subname")
        author = escape(name[:MAX_NAME_CHARACTERS]) or (author_id and f"<@{author_id}>")
        if content:
            texts.append(with_speaker(f"Forwarded from {author or 'an unknown author'}", content))
    return texts


def _block_text(value: Any, depth: int = MAX_BLOCK_DEPTH) -> str:
    """Return the text of blocks, or of one of their elements, in Slack's mrkdwn."""
    if isinstance(value, list):
        texts = [_block_text(item, depth - 1) for item in value] if depth else []
        return "\n".join(filter(None, texts))
    if not isinstance(value, Mapping):
        return ""
    match _text(value, "type"):
        case "text" | "plain_text" | "markdown" | "raw_text":
            return escape(_text(value, "text"))
        case "mrkdwn":
            return _text(value, "text")
        case "link":
            return f"<{_text(value, 'url')}|{escape(_text(value, 'text') or _text(value, 'url'))}>"
        case "user":
            return f"<@{_text(value, 'user_id')}>"
        case "channel":
            return f"<#{_text(value, 'channel_id')}>"
        case "usergroup":
            return f"<!subteam^{_text(value, 'usergroup_id')}>"
        case "broadcast":
            return f"<!{_text(value, 'range')}>"
        case "emoji":
            return f":{_text(value, 'name')}:"
        case "date":
            return escape(_text(value, "fallback"))
        case "image":
            return escape(_text(value, "alt_text"))
        case "rich_text_section" | "rich_text_quote" | "rich_text_preformatted":
            elements = _mappings(value.get("elements")) if depth else []
            return "".join(_block_text(element, depth - 1) for element in elements)
    parts = ("text", "fields", "elements", "rows", "message", "blocks")  # of any other block
    return _block_text([value.get(part) for part in parts], depth)


def _time(value: Any) -> datetime | None:
    """Return the time of an event, or of a message by its `ts`; None if it is invalid."""
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (OverflowError, OSError, TypeError, ValueError):
        return None


def _target(token: str) -> str:
    return token.partition("|")[0]
