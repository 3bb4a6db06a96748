"""The interface of a channel that shows replies. Pure.

An adapter is one file: see slack/adapter.py, and docs/slack.md for how to add another. The rest
(when, how often, exactly once) is the same for all channels: queue.py and worker.py.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

# Where a message is shown, in the channel's own terms; only the channel's adapter reads it.
Address = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Button:
    """A button; `action` and `value` are sent back when a person presses it."""

    label: str
    action: str
    value: str


@dataclass(frozen=True, slots=True)
class View:
    """The content to show of a message, in Markdown, for every channel."""

    text: str
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One post of a view: its text as the channel writes it, short enough for the channel."""

    text: str
    buttons: tuple[Button, ...] = ()

    @property
    def digest(self) -> str:
        """A digest that distinguishes parts."""
        buttons = [(button.label, button.action, button.value) for button in self.buttons]
        return hashlib.sha256(json.dumps([self.text, buttons]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Mark:
    """Invisible metadata of a post, by which the post is found again."""

    message_id: UUID
    part: int


class Adapter(Protocol):
    """A channel. Its methods run inside the tenant and raise a ChannelError if they fail."""

    channel: str
    can_edit: bool
    """Whether a post can be changed. Where it cannot, no placeholder is shown."""
    shares_threads: bool
    """Whether all participants of a thread read all of its messages."""

    def parts(self, view: View) -> list[Part]:
        """Write the view as the channel does: escaped, and split at its limit."""
        ...

    def post(self, address: Address, part: Part, mark: Mark) -> str:
        """Post, and return the id of the post."""
        ...

    def update(self, address: Address, posted: str, part: Part, mark: Mark) -> None:
        """Change a post.

        Raises PostGone if there is none any more, or none can be changed: then it is made anew.
        """
        ...

    def find(self, address: Address, mark: Mark) -> str | None:
        """Return the id of the post that bears the mark, if there is one."""
        ...


_adapters: dict[str, Adapter] = {}
# The names of the channels.
channels = _adapters.keys()


def register(adapter: Adapter) -> None:
    """Deliver the replies of the adapter's channel by it. The app's configuration calls this."""
    _adapters[adapter.channel] = adapter


def adapter_of(channel: str) -> Adapter:
    """Return the adapter of a channel. Raises KeyError for a channel that does not push."""
    return _adapters[channel]
