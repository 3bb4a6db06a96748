"""The base of all our errors, and those that tenancy raises."""


class KonstructError(Exception):
    """Base of every error that we raise on purpose; its message says what was wrong."""


class InvalidTenantId(KonstructError, ValueError):
    """Something that is not a tenant's id was used as one."""


class NotInTenant(KonstructError):
    """Code that serves a tenant ran outside of any."""


class TenantPinned(KonstructError):
    """Code that serves one tenant (a request, a task) tried to enter another."""


class UnknownTenant(KonstructError, LookupError):
    """No tenant has this id or slug."""


class TenantNotServing(KonstructError):
    """The tenant exists but is suspended or not provisioned yet."""

    def __init__(self, slug: str, state: str) -> None:
        super().__init__(f"tenant {slug!r} is {state}")
        self.slug = slug
        self.state = state


class InvalidTenant(KonstructError, ValueError):
    """A slug, name or domain that a tenant cannot have, or that is taken."""


class WorkspaceTaken(KonstructError):
    """Another tenant has connected the workspace."""


class ProvisioningFailed(KonstructError):
    """A tenant's schema could not be made or migrated; it does not serve, and may be retried."""


class UnsealedSchema(KonstructError):
    """A tenant's schema holds a relation that row-level security cannot protect."""


class InvalidKeyPart(KonstructError, ValueError):
    """A part of a cache key is empty, or could make the key equal to another one."""


MAX_REASON_LENGTH = 2000


def reason_of(error: Exception) -> str:
    """What a human is shown: our own errors speak for themselves, others say their type."""
    text = str(error) if isinstance(error, KonstructError) else f"{type(error).__name__}: {error}"
    return text.replace("\0", "")[:MAX_REASON_LENGTH]
