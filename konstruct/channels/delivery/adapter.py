"""What a channel must be able to do so that replies can be shown in it. Pure.

An adapter is one file: see slack/adapter.py, and docs/slack.md for how to add another. Everything
else (when, how often, exactly once) is the same for all channels: queue.py and worker.py.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

# Where something is shown, in the channel's own terms; nothing but its adapter reads it.
Address = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Button:
    """Something that a person can press; `action` and `value` come back."""

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
        """What tells one part from another."""
        buttons = [(button.label, button.action, button.value) for button in self.buttons]
        return hashlib.sha256(json.dumps([self.text, buttons]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Mark:
    """What a post bears, unseen by people, so that it can be found again."""

    message_id: UUID
    part: int


class Adapter(Protocol):
    """A channel. Its methods run inside the tenant and raise a ChannelError if they fail."""

    channel: str
    can_edit: bool
    """Whether a post can be changed. Where it cannot, no placeholder is shown."""
    shares_threads: bool
    """Whether everybody who speaks in a thread reads what the others say there."""

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
