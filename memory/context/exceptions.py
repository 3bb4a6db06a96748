"""Errors of the three tiers of context."""

from tenants.exceptions import KonstructError


class UnknownModelTier(KonstructError, ValueError):
    """A model tier without a token budget."""


class NoTenant(KonstructError):
    """A session store without a tenant was used outside of tenants."""


class SessionTablesOutdated(KonstructError):
    """A tenant's schema lacks LangGraph's tables, or has them in an older version."""


class CheckpointRefused(KonstructError):
    """A checkpoint's value has an object of a class that is not allowed."""


class UnreadableSession(KonstructError):
    """The messages of a thread cannot be read without its graph."""
