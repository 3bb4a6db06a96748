"""The channels that push their replies. A new one is a line here."""

from konstruct.channels.adapter import Adapter
from konstruct.channels.slack_adapter import SlackAdapter

_ADAPTERS: dict[str, Adapter] = {
    adapter.channel: adapter
    for adapter in (SlackAdapter(),)
}  # fmt: skip


def channels() -> list[str]:
    """Return the names of these channels."""
    return list(_ADAPTERS)


def adapter_of(channel: str) -> Adapter:
    """Return the adapter of a channel."""
    return _ADAPTERS[channel]
