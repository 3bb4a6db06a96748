"""The one exception of the embedded services."""

from tenants.exceptions import KonstructError


class EmbeddedError(KonstructError):
    """An embedded service cannot be had; the message says why and what to do."""
