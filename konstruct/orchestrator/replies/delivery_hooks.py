"""Hooks of channels that push replies. They are called when a message changes.

The REST channel has no hook, because its programs fetch replies. Slack has one.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from konstruct.orchestrator.messages import KonstructMessage
from memory.conversations import thread_window
from memory.models import Message


class Hook(Protocol):
    """The hook of a channel."""

    def on_change(self, message: KonstructMessage) -> None:
        """Enqueue the delivery of the message's current state; send nothing here.

        Called in the transaction of the change: the message is answered, failed, retried, held or
        released.
        """
        ...

    def on_partial_reply(self, message: KonstructMessage) -> None:
        """Show the text of the reply that the language model has written so far."""
        ...

    def on_person_message(self, turn: Message, *, after: KonstructMessage) -> None:
        """Enqueue the delivery of a person's message that is not a reply; send nothing here.

        Called in the transaction that stores the message.

        Args:
            turn: the person's message.
            after: the user's last message of the thread. The message is shown in the same place.
        """
        ...


_hooks: dict[str, Hook] = {}


def register(channel: str, hook: Hook, *, shares_threads: bool = False) -> None:
    """Register the hook for messages of this channel. Call it when the app is ready.

    Args:
        channel: the name of the channel.
        hook: the hook.
        shares_threads: whether all participants of a thread read all its messages. Then the agent
            reads them too.

    Raises:
        ValueError: the channel has another hook already.
    """
    existing = _hooks.setdefault(channel, hook)
    if existing is not hook:
        raise ValueError(f"channel {channel!r} has a hook already: {existing!r}")
    if shares_threads:
        thread_window.register_shared_channel(channel)


def notify_changed(message: KonstructMessage) -> None:
    """Call `on_change` of the message's channel, if it has a hook."""
    hook = _hooks.get(message.channel)
    if hook is not None:
        hook.on_change(message)


def partial_reply_callback(message: KonstructMessage) -> Callable[[], None] | None:
    """Return the function to call while the reply is written; None if the channel has no hook."""
    hook = _hooks.get(message.channel)
    return None if hook is None else partial(hook.on_partial_reply, message)


def notify_person_message(turn: Message, *, after: KonstructMessage) -> None:
    """Call `on_person_message` of the thread's channel, if it has a hook."""
    hook = _hooks.get(after.channel)
    if hook is not None:
        hook.on_person_message(turn, after=after)
