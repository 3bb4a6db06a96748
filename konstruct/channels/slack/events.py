"""Events of Slack's Events API: the messages that people write, and their text. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Self

from memory.context.chat import storable_text

# The subtypes of messages that a person writes.
_WRITTEN: Final = frozenset({"", "file_share", "me_message", "thread_broadcast"})
# Slack's ids have 9 to 20 letters and digits; its timestamps are digits with a point.
_ID: Final = re.compile(r"[A-Za-z0-9.]{1,50}")
_TOKEN: Final = re.compile(r"<([^<>]*)>")
_USER: Final = re.compile(r"@[A-Z0-9]+")
_ENTITIES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
# The characters between the mention of the bot and the text.
_AFTER_MENTION: Final = " \t\r\n,:;–—-"
MAX_NAME_CHARACTERS: Final = 120


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
    ts: str
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


def read_message(envelope: Envelope, *, bot: str) -> MessageEvent | None:
    """Return the message of an event; None if it is not a new message of a person.

    Posts of bots, and events about existing messages (edited, deleted, joined …), are ignored.
    """
    event = envelope.event
    kind = _kind(event, bot)
    user, channel, ts = (native_id(event, name) for name in ("user", "channel", "ts"))
    if kind is None or not (user and channel and ts):
        return None
    if user == bot or _text(event, "bot_id") or _text(event, "subtype") not in _WRITTEN:
        return None
    profile = event.get("user_profile")
    name = _text(profile, "display_name") or _text(profile, "real_name")
    return MessageEvent(
        kind=kind,
        workspace=envelope.workspace,
        channel=channel,
        user=user,
        ts=ts,
        thread_ts=native_id(event, "thread_ts") or ("" if kind is AddressedBy.DIRECT else ts),
        text=storable_text(_text(event, "text")),
        name=storable_text(name[:MAX_NAME_CHARACTERS]),
        files=_file_names(event.get("files")),
    )


def native_id(mapping: Any, name: str) -> str:
    """Return the Slack id with this name; "" if it is missing or invalid."""
    text = _text(mapping, name)
    return text if _ID.fullmatch(text) else ""


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
    first = _TOKEN.match(text)
    if first and _target(first[1]) == f"@{bot}":
        text = text[first.end() :].lstrip(_AFTER_MENTION)
    known = {**names, bot: agent}
    # Every second part is the content of a token.
    parts = _TOKEN.split(text)
    parts[1::2] = [_token(token, known) for token in parts[1::2]]
    return "".join(map(_unescape, parts)).strip()


def mentions(text: str, user: str) -> bool:
    """Return whether a text mentions a user."""
    return any(_target(token) == f"@{user}" for token in _TOKEN.findall(text))


def mentioned_users(text: str) -> set[str]:
    """Return Slack's ids of the users whom a text mentions."""
    targets = {_target(token) for token in _TOKEN.findall(text)}
    return {target[1:] for target in targets if _USER.fullmatch(target)}


def attachment_note(files: Iterable[str]) -> str:
    """Return a sentence that names the attached files, which the agent cannot read."""
    names = ", ".join(files)
    return f"[Attached, and not to be read here: {names}]" if names else ""


def _kind(event: Mapping[str, Any], bot: str) -> AddressedBy | None:
    if event.get("type") == "app_mention":
        return AddressedBy.MENTION
    if event.get("type") != "message":
        return None
    if event.get("channel_type") == "im":
        return AddressedBy.DIRECT
    return AddressedBy.MENTION if mentions(_text(event, "text"), bot) else AddressedBy.OVERHEARD


def _text(mapping: Any, name: str) -> str:
    value = mapping.get(name) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, str) else ""


def _file_names(value: Any) -> list[str]:
    files = [file for file in value if isinstance(file, Mapping)] if isinstance(value, list) else []
    return [
        storable_text(_text(file, "title") or _text(file, "name") or "a file") for file in files
    ]


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(value, UTC) if isinstance(value, int) else None
    except (OverflowError, OSError, ValueError):
        return None


def _target(token: str) -> str:
    return token.partition("|")[0]


def _token(token: str, names: Mapping[str, str]) -> str:
    target, _, label = token.partition("|")
    kind, rest = target[:1], target[1:]
    if kind == "@":
        return f"@{label or names.get(rest) or rest}"
    if kind == "#":
        return f"#{label or rest}"
    if kind == "!":
        word = rest.partition("^")[0]
        return label or (f"@{word}" if word in ("here", "channel", "everyone") else rest)
    address = target.removeprefix("mailto:").removeprefix("tel:")
    # Slack makes links of plain addresses: then the label repeats the address.
    if not label or label in (address, address.removeprefix("http://").removeprefix("https://")):
        return address
    return f"{label} ({address})"


def _unescape(text: str) -> str:
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
