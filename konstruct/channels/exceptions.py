"""What can go wrong between us and a channel."""

from tenants.exceptions import KonstructError


class ChannelError(KonstructError):
    """A channel did not do what we asked of it."""


class ChannelUnavailable(ChannelError):
    """It may work later. Whether it was done, nobody knows: no answer, or an error of theirs."""


class ChannelBusy(ChannelError):
    """It was not done, for we ask too often. `retry_after` is in how many seconds we may again."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ChannelRefused(ChannelError):
    """It was not done, and will not be later either, until somebody changes something."""


class PostGone(ChannelError):
    """What we had posted is there no more, so that it cannot be changed."""


class InstallationInvalid(ChannelError):
    """A workspace cannot be connected like this; the message says why."""


class TokenUnreadable(ChannelError):
    """A token is for another place, or of a key that CHANNEL_TOKEN_KEYS has no more."""


class NothingToRedeliver(ChannelError):
    """Only a delivery that was given up can be tried again."""
