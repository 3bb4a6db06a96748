"""The interface of a channel that shows replies. Pure.

An adapter is one file: see slack/adapter.py, and docs/slack.md for how to add another. The queue
and the worker (queue.py, rendering.py) are the same for all channels.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

# Where a message is shown. Its keys depend on the channel; only the channel's adapter reads it.
Address = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Button:
    """A button; `action` and `value` are sent back when a person presses it."""

    label: str
    action: str
    value: str


@dataclass(frozen=True, slots=True)
class View:
    """The content to show for a message: Markdown and buttons, for every channel."""

    text: str
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One post of a view: its text in the channel's markup, within the channel's limit."""

    text: str
    buttons: tuple[Button, ...] = ()

    @property
    def digest(self) -> str:
        """A digest that distinguishes parts."""
        buttons = [(button.label, button.action, button.value) for button in self.buttons]
        return hashlib.sha256(json.dumps([self.text, buttons]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PostMark:
    """Invisible metadata of a post. `Adapter.find` finds the post by it."""

    message_id: UUID
    part: int


class Adapter(Protocol):
    """A channel. Its methods run inside the tenant and raise a ChannelError if they fail."""

    channel: str
    can_edit: bool
    """Whether posts can be changed. If not, no placeholder is shown."""
    shares_threads: bool
    """Whether all participants of a thread read all of its messages."""

    def parts(self, view: View) -> list[Part]:
        """Convert the view to the channel's markup, and split it at the channel's limit."""
        ...

    def post(self, address: Address, part: Part, mark: PostMark) -> str:
        """Create a post, and return its id."""
        ...

    def update(self, address: Address, post_id: str, part: Part, mark: PostMark) -> None:
        """Change a post.

        Raises PostGone if it does not exist any more, or cannot be changed. Then the worker creates
        another post.
        """
        ...

    def find(self, address: Address, mark: PostMark) -> str | None:
        """Return the id of the post with this mark; None if there is none."""
        ...


_adapters: dict[str, Adapter] = {}
# The names of the channels.
channels = _adapters.keys()


def register(adapter: Adapter) -> None:
    """Register the adapter for its channel. The app's configuration calls this."""
    _adapters[adapter.channel] = adapter


def adapter_of(channel: str) -> Adapter:
    """Return the adapter of a channel. Raises KeyError for a channel without one, such as REST."""
    return _adapters[channel]
