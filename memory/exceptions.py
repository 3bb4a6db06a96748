"""Errors of memory. Each message names the offending value and says what to do."""

from tenants.exceptions import KonstructError


class InvalidArgument(KonstructError, ValueError):
    """A caller passed a value that cannot be what it should be."""


class WindowNotCleared(KonstructError):
    """A window was cleared in the transcript, but its copy in the cache could not be removed."""


class EmbeddingModelError(KonstructError):
    """The embedding model cannot be found, loaded or used with the 384 dimensions of the tables."""
