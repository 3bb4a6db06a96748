"""What Slack says in an event, as far as it concerns us. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Self

from konstruct.channels.slack.inbound.parsing import mentions, storable

# Of the many kinds of messages, those in which somebody says something.
SPOKEN: Final = frozenset({"", "file_share", "me_message", "thread_broadcast"})
# Slack's have 9 to 20 characters, letters and digits, or a time with a point.
_ID: Final = re.compile(r"[A-Za-z0-9.]{1,50}")


class Addressed(StrEnum):
    """Why a message may be for us."""

    DIRECT = "direct"
    MENTION = "mention"
    OVERHEARD = "overheard"  # for us only if the thread is engaged


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is around an event: whose it is, and which."""

    workspace: str
    bot: str
    """Slack's id of our bot there; empty where Slack does not say."""
    event_id: str
    at: datetime | None
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """Something that a person said where our bot is told of it, as it stands in the inbox."""

    kind: Addressed
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
    def of(cls, told: Mapping[str, Any]) -> Self:
        """Read what stands in the inbox."""
        return cls(**{**told, "kind": Addressed(told["kind"])})

    @property
    def begins_a_thread(self) -> bool:
        """Whether nothing was said in its thread before it."""
        return self.thread_ts == self.ts

    @property
    def thread_id(self) -> str:
        """The conversation: a thread, or all that is said directly outside of threads."""
        place = f"{self.workspace}/{self.channel}"
        return f"{place}/{self.thread_ts}" if self.thread_ts else place

    @property
    def key(self) -> str:
        """What the message is once: Slack tells of a mention by two events."""
        return f"slack/{self.workspace}/{self.channel}/{self.ts}"


def open_envelope(payload: Mapping[str, Any]) -> Envelope | None:
    """Take an event out of its envelope; None if there is none that we can read."""
    event = payload.get("event")
    if not isinstance(event, Mapping):
        return None
    # In a channel that two workspaces share, `team_id` may be the other one's.
    authorizations = payload.get("authorizations")
    first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
    workspace = native_id(first, "team_id") or native_id(payload, "team_id")
    event_id = native_id(payload, "event_id")
    if not workspace or not event_id:
        return None
    bot = native_id(first, "user_id") if isinstance(first, Mapping) and first.get("is_bot") else ""
    return Envelope(workspace, bot, event_id, _time(payload.get("event_time")), event)


def understand(envelope: Envelope, *, bot: str) -> MessageEvent | None:
    """Return what a person said; None for what nobody said, or said to nobody.

    Our own posts, those of other bots, and everything about messages that stand already (edited,
    deleted, joined …) are nothing that is answered.
    """
    event = envelope.event
    kind = _kind(event, bot)
    user, channel, ts = (
        native_id(event, "user"),
        native_id(event, "channel"),
        native_id(event, "ts"),
    )
    if kind is None or not (user and channel and ts):
        return None
    if user == bot or _text(event, "bot_id") or _text(event, "subtype") not in SPOKEN:
        return None
    thread_ts = native_id(event, "thread_ts") or ("" if kind is Addressed.DIRECT else ts)
    return MessageEvent(
        kind=kind,
        workspace=envelope.workspace,
        channel=channel,
        user=user,
        ts=ts,
        thread_ts=thread_ts,
        text=storable(_text(event, "text")),
        name=storable(_name(event.get("user_profile"))),
        files=_files(event.get("files")),
    )


def native_id(mapping: Any, name: str) -> str:
    """Return one of Slack's ids, or nothing for what cannot be one."""
    text = _text(mapping, name)
    return text if _ID.fullmatch(text) else ""


def _kind(event: Mapping[str, Any], bot: str) -> Addressed | None:
    if event.get("type") == "app_mention":
        return Addressed.MENTION
    if event.get("type") != "message":
        return None
    if event.get("channel_type") == "im":
        return Addressed.DIRECT
    return Addressed.MENTION if mentions(_text(event, "text"), bot) else Addressed.OVERHEARD


def _name(profile: Any) -> str:
    """Return the speaker's display name, where Slack sends it along."""
    return (_text(profile, "display_name") or _text(profile, "real_name"))[:120]


def _text(mapping: Any, name: str) -> str:
    value = mapping.get(name) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, str) else ""


def _files(value: Any) -> list[str]:
    """Return the names of files; of the files themselves we keep nothing."""
    files = [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
    return [storable(_text(each, "title") or _text(each, "name") or "a file") for each in files]


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(value, UTC) if isinstance(value, int) else None
    except (OverflowError, OSError, ValueError):
        return None
