"""Errors of the three tiers of context."""

from tenants.exceptions import KonstructError


class UnknownModelTier(KonstructError, ValueError):
    """A model tier without a token budget."""


class NoTenant(KonstructError):
    """A session store that is bound to no tenant was used outside of any."""


class SessionTablesOutdated(KonstructError):
    """A tenant's schema lacks LangGraph's tables, or has them in an older version."""


class ThreadExists(KonstructError, ValueError):
    """A thread was to be copied onto one that has a history of its own."""


class UnreadableSession(KonstructError):
    """A thread keeps its messages in a way that cannot be read without its graph."""
