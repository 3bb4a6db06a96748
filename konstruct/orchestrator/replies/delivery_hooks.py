"""Hooks of channels that push replies: each is called after a change of a message.

A program that sends by REST fetches its reply, so that channel has no hook. Slack has one.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from konstruct.orchestrator.messages import KonstructMessage
from memory.conversations import thread_window
from memory.models import Message


class Hook(Protocol):
    """The hook of a channel."""

    def changed(self, message: KonstructMessage) -> None:
        """Enqueue the delivery of the message's current state; send nothing here.

        Called in the transaction of the change: the message was answered, has failed, is retried,
        or is held.
        """
        ...

    def written(self, message: KonstructMessage) -> None:
        """Show the part of the reply that is written so far."""
        ...

    def said(self, turn: Message, *, after: KonstructMessage) -> None:
        """Record a person's message that is not a reply; send nothing here.

        Called in the transaction that writes it down. It belongs where `after` was said, which is
        the user's last message of the thread.
        """
        ...


_hooks: dict[str, Hook] = {}


def register(channel: str, hook: Hook, *, shares_threads: bool = False) -> None:
    """Register the hook for messages of this channel. Call it when the app is ready.

    Args:
        shares_threads: all participants of a thread of the channel read all its messages, so that
        the
            agent may read them too.

    Raises:
        ValueError: the channel has another hook already.
    """
    existing = _hooks.setdefault(channel, hook)
    if existing is not hook:
        raise ValueError(f"channel {channel!r} has a hook already: {existing!r}")
    if shares_threads:
        thread_window.share(channel)


def changed(message: KonstructMessage) -> None:
    """Call the hook of the message's channel, if it has one."""
    hook = _hooks.get(message.channel)
    if hook is not None:
        hook.changed(message)


def follower(message: KonstructMessage) -> Callable[[], None] | None:
    """Return the function to call while the message's reply is written; None without a hook."""
    hook = _hooks.get(message.channel)
    return None if hook is None else partial(hook.written, message)


def said(turn: Message, *, after: KonstructMessage) -> None:
    """Notify the thread's channel of a person's message that is not a reply."""
    hook = _hooks.get(after.channel)
    if hook is not None:
        hook.said(turn, after=after)
