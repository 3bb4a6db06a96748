"""Errors of the three tiers of context."""

from tenants.exceptions import KonstructError


class UnknownModelTier(KonstructError, ValueError):
    """A model tier without a token budget."""


class NoTenant(KonstructError):
    """A session store that is bound to no tenant was used outside of any."""


class SessionTablesOutdated(KonstructError):
    """A tenant's schema lacks LangGraph's tables, or has them in an older version."""


class ThreadExists(KonstructError, ValueError):
    """A thread was to be copied onto one that already has a history."""


class CheckpointRefused(KonstructError):
    """A checkpoint's value is more than data of the classes that are allowed there."""


class UnreadableSession(KonstructError):
    """A thread keeps its messages in a way that cannot be read without its graph."""
