"""The channels that push their replies, each registered by the app's configuration."""

from konstruct.channels.delivery.adapter import Adapter

_ADAPTERS: dict[str, Adapter] = {}


def register(adapter: Adapter) -> None:
    """Deliver the replies of the adapter's channel by it."""
    _ADAPTERS[adapter.channel] = adapter


def adapter_of(channel: str) -> Adapter:
    """Return the adapter of a channel. Raises KeyError for a channel that does not push."""
    return _ADAPTERS[channel]
