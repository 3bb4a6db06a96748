"""The one exception of the embedded services."""


class EmbeddedError(RuntimeError):
    """An embedded service cannot be had; the message says why and what to do."""
