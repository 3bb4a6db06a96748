"""What Slack says in an event, as far as it concerns us. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from konstruct.channels.slack_reading import mentions

# Of the many kinds of messages, those in which somebody says something.
SPOKEN: Final = frozenset({"", "file_share", "me_message", "thread_broadcast"})


class Kind(StrEnum):
    """Why a message may be for us."""

    DIRECT = "direct"
    MENTION = "mention"
    OVERHEARD = "overheard"  # for us only if the thread is engaged


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is around an event: whose it is, and which."""

    workspace: str
    event_id: str
    at: datetime | None
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Heard:
    """Something that a person said where our bot hears it."""

    kind: Kind
    workspace: str
    channel: str
    user: str
    ts: str
    thread_ts: str
    """The thread to answer in; empty for direct messages outside of threads."""
    text: str
    name: str
    files: Sequence[Mapping[str, Any]]

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
    workspace = _text(first, "team_id") or _text(payload, "team_id")
    event_id = _text(payload, "event_id")
    if not workspace or not event_id:
        return None
    return Envelope(workspace, event_id, _time(payload.get("event_time")), event)


def understand(envelope: Envelope, *, bot: str) -> Heard | None:
    """Return what a person said; None for what nobody said, or said to nobody.

    Our own posts, those of other bots, and everything about messages that stand already (edited,
    deleted, joined …) are nothing that is answered.
    """
    event = envelope.event
    kind = _kind(event, bot)
    user, channel, ts = _text(event, "user"), _text(event, "channel"), _text(event, "ts")
    if kind is None or not (user and channel and ts):
        return None
    if user == bot or _text(event, "bot_id") or _text(event, "subtype") not in SPOKEN:
        return None
    thread_ts = _text(event, "thread_ts") or ("" if kind is Kind.DIRECT else ts)
    return Heard(
        kind=kind,
        workspace=envelope.workspace,
        channel=channel,
        user=user,
        ts=ts,
        thread_ts=thread_ts,
        text=_text(event, "text"),
        name=_name(event.get("user_profile")),
        files=_files(event.get("files")),
    )


def _kind(event: Mapping[str, Any], bot: str) -> Kind | None:
    if event.get("type") == "app_mention":
        return Kind.MENTION
    if event.get("type") != "message":
        return None
    if event.get("channel_type") == "im":
        return Kind.DIRECT
    return Kind.MENTION if mentions(_text(event, "text"), bot) else Kind.OVERHEARD


def _name(profile: Any) -> str:
    """Return the speaker's display name, where Slack sends it along."""
    return _text(profile, "display_name") or _text(profile, "real_name")


def _text(mapping: Any, name: str) -> str:
    value = mapping.get(name) if isinstance(mapping, Mapping) else None
    return value if isinstance(value, str) else ""


def _files(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(value, UTC) if isinstance(value, int) else None
    except (OverflowError, OSError, ValueError):
        return None
