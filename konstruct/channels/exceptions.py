"""Errors of channels."""

from tenants.exceptions import KonstructError


class ChannelError(KonstructError):
    """A call of a channel failed."""


class ChannelUnavailable(ChannelError):
    """A temporary error: the call may have been executed, and may be repeated."""


class ChannelBusy(ChannelError):
    """The channel's rate limit: the call was not executed. `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ChannelRefused(ChannelError):
    """A permanent error: the call was not executed, and a retry fails too."""


class PostGone(ChannelError):
    """The post does not exist any more, so that it cannot be changed."""


class InstallationInvalid(ChannelError):
    """A workspace cannot be connected; the message has the reason."""
