"""The base of all our errors, and those that tenancy raises."""

from typing import ClassVar

from tenants.redaction import redact


class KonstructError(Exception):
    """Base of every error that we raise on purpose; its message says what was wrong.

    Callers of the API and tenants' admins may read the message. `detail` is for operators alone:
    it goes into the log.
    """

    code: ClassVar[str] = "failed"
    """What programs tell failures by."""
    public: ClassVar[str] = ""
    """What callers read in place of a message that is for operators."""
    detail: str = ""


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


class TenantPaused(TenantNotServing):
    """The tenant is not served at the moment, and will be again without anybody's doing."""

    retry_after: ClassVar[int]
    """Seconds after which it is worth to ask again."""


class TenantBehind(TenantPaused):
    """The tenant's schema lacks migrations of the code that runs; it is served when it has them."""

    public = "This service is being updated; try again in a moment."
    retry_after = 30

    def __init__(self, slug: str) -> None:
        super().__init__(slug, "behind: its schema is to be migrated")


class TenantMoving(TenantPaused):
    """The tenant is being moved to another database server, or just was, under who raises this."""

    public = "This service is being moved; try again in a moment."
    retry_after = 3

    def __init__(self, slug: str) -> None:
        super().__init__(slug, "being moved to another database server")


class TenantRestoring(TenantPaused):
    """The tenant is being restored from a backup; it is served when erasures are repeated in it."""

    public = "This service is being restored from a backup; try again later."
    retry_after = 60

    def __init__(self, slug: str) -> None:
        super().__init__(slug, "being restored from a backup")


class InvalidTenant(KonstructError, ValueError):
    """A slug, name or domain that a tenant cannot have, or that is taken."""


class WorkspaceTaken(KonstructError):
    """Another tenant has connected the workspace."""


class ProvisioningFailed(KonstructError):
    """A tenant's schema could not be made or migrated; it does not serve, and may be retried."""


class SchemaOutdated(KonstructError):
    """A tenant's schema lacks migrations of the code that runs."""


class SchemaBusy(KonstructError):
    """Another process makes, migrates or drops a schema, and does not come to an end."""


class PooledOwner(KonstructError):
    """What needs a session of Postgres' own would go through a connection pooler."""


class UnprotectedSchema(KonstructError):
    """A tenant's schema holds a relation that row-level security cannot protect."""


class InvalidKeyPart(KonstructError, ValueError):
    """A part of a cache key is empty, or could make the key equal to another one."""


MAX_REASON_LENGTH = 2000
INTERNAL_ERROR = "internal_error"


def code_of(error: Exception) -> str:
    """The public description of a failure."""
    return error.code if isinstance(error, KonstructError) else INTERNAL_ERROR


def reason_of(error: Exception) -> str:
    """What callers and tenants' admins are shown: the message of an error of ours.

    What others say may hold anything, so that only their type is shown.
    """
    if isinstance(error, KonstructError):
        return _storable(error.public or str(error))
    return f"An error inside Konstruct ({type(error).__name__}). The operators' log says more."


def detail_of(error: Exception) -> str:
    """What operators read in the log."""
    if isinstance(error, KonstructError):
        return _storable(f"{error} {error.detail}".rstrip())
    return _storable(f"{type(error).__name__}: {error}")


def _storable(text: str) -> str:
    return redact(text.replace("\0", ""))[:MAX_REASON_LENGTH]
