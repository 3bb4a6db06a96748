"""The base class of Konstruct's errors, and the errors of tenancy."""

from typing import ClassVar

from tenants.redaction import redact


class KonstructError(Exception):
    """Base class of Konstruct's errors; the message names the cause.

    Callers of the API and tenants' admins may read the message. `detail` is for operators only: it
    goes into the log.
    """

    code: ClassVar[str] = "failed"
    """Code of the error in responses of the API."""
    public: ClassVar[str] = ""
    """Message for callers, in place of a message for operators. Empty: the message itself."""
    detail: str = ""
    is_usage_error: ClassVar[bool] = False
    """Whether the arguments of a command that raises it are wrong: exit status 2."""


class InvalidTenantId(KonstructError, ValueError):
    """A value is not a valid tenant id."""

    is_usage_error = True


class NotInTenant(KonstructError):
    """Code that needs a tenant ran outside of tenants."""


class TenantPinned(KonstructError):
    """Code that serves one tenant (a request, a task) tried to enter another."""


class UnknownTenant(KonstructError, LookupError):
    """No tenant has this id or slug."""

    is_usage_error = True


class TenantNotServing(KonstructError):
    """The tenant exists but is suspended or not provisioned yet."""

    def __init__(self, slug: str, state: str, *, is_to_be_deleted: bool = False) -> None:
        super().__init__(f"tenant {slug!r} is {state}")
        self.slug = slug
        self.state = state
        self.is_to_be_deleted = is_to_be_deleted


class TenantPaused(TenantNotServing):
    """The tenant is not served for a time, which ends without any action of the caller."""

    retry_after: ClassVar[int]
    """Seconds after which callers may retry."""


class TenantBehind(TenantPaused):
    """The tenant's schema lacks migrations of the running code. It is served once it has them."""

    public = "This service is being updated; try again in a moment."
    retry_after = 30

    def __init__(self, slug: str) -> None:
        super().__init__(slug, "behind: its schema is to be migrated")


class TenantMoving(TenantPaused):
    """The tenant is being moved to another database server, or was moved during this request."""

    public = "This service is being moved; try again in a moment."
    retry_after = 3

    def __init__(self, slug: str) -> None:
        super().__init__(slug, "being moved to another database server")


class TenantRestoring(TenantPaused):
    """The tenant is being restored. It is served when erasures since the backup are repeated."""

    public = "This service is being restored from a backup; try again later."
    retry_after = 60

    def __init__(self, slug: str) -> None:
        super().__init__(slug, "being restored from a backup")


class InvalidTenant(KonstructError, ValueError):
    """A tenant cannot have this slug, name or domain, or another tenant has it."""

    is_usage_error = True


class WorkspaceTaken(KonstructError):
    """Another tenant has connected the workspace."""


class ProvisioningFailed(KonstructError):
    """A tenant's schema could not be created or migrated. It is not served; retry it."""


class SchemaOutdated(KonstructError):
    """A tenant's schema lacks migrations of the running code."""


class SchemaBusy(KonstructError):
    """Another process creates, migrates or drops the schema, and did not finish in time."""


class PooledOwner(KonstructError):
    """An operation that needs a Postgres session was started through a connection pooler."""


class UnprotectedSchema(KonstructError):
    """A tenant's schema has a relation that row-level security cannot protect."""


class InvalidKeyPart(KonstructError, ValueError):
    """A part of a cache key is empty, or could make the key equal to another key."""


MAX_REASON_LENGTH = 2000
INTERNAL_ERROR = "internal_error"


def code_of(error: Exception) -> str:
    """Return the public code of an error."""
    return error.code if isinstance(error, KonstructError) else INTERNAL_ERROR


def reason_of(error: Exception) -> str:
    """Return the reason for callers and tenants' admins: the message of one of Konstruct's errors.

    Messages of other errors may contain private data: only the type of these is returned.
    """
    if isinstance(error, KonstructError):
        return _storable(error.public or str(error))
    return f"An error inside Konstruct ({type(error).__name__}). The operators' log says more."


def detail_of(error: Exception) -> str:
    """Return the detail of an error for the operators' log."""
    if isinstance(error, KonstructError):
        return _storable(f"{error} {error.detail}".rstrip())
    return _storable(f"{type(error).__name__}: {error}")


def _storable(text: str) -> str:
    return redact(text.replace("\0", ""))[:MAX_REASON_LENGTH]
