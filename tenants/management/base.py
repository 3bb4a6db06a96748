"""Base class of Konstruct's commands: an error is one line, wrong arguments exit with status 2."""

from collections.abc import Mapping
from signal import SIGINT
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, ProgrammingError
from psycopg.errors import UndefinedTable

from tenants.exceptions import InvalidTenant, KonstructError, UnknownTenant, detail_of
from tenants.models import Tenant

# Exit statuses of `manage.py migrate`, besides those of all commands.
# No tenant can be served by this version: the public schema or every tenant failed, or another run
# holds the lock.
NO_SCHEMA_SERVED: Final = 3
# Some tenants failed and are listed. The others can be served.
SOME_TENANTS_FAILED: Final = 4


class UsageError(CommandError):
    """The arguments are wrong: exit status 2."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()), returncode=2)


class KonstructCommand(BaseCommand):
    """A command that turns Konstruct's errors into one line on stderr and an exit status.

    Changes are recorded in the same transaction, with `operator_name` and the command's `name`.
    """

    @property
    def name(self) -> str:
        """The name of the command."""
        return type(self).__module__.rpartition(".")[2]

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (KonstructError, OperationalError) as error:
            if getattr(error, "is_usage_error", False):
                raise UsageError(str(error)) from error
            text = detail_of(error) if isinstance(error, KonstructError) else str(error)
            raise CommandError(" ".join(text.split())) from error
        except ProgrammingError as error:
            if not isinstance(error.__cause__, UndefinedTable):
                raise
            raise CommandError("the database is not migrated: run manage.py migrate") from error
        except KeyboardInterrupt:
            raise CommandError("interrupted", returncode=128 + SIGINT) from None


def require_confirmation(question: str, answer: str, error: str, *, option: str = "--yes") -> None:
    """Ask for an answer on the terminal, and raise if it is not the expected one.

    Args:
        question: the text to show.
        answer: the text that the operator has to type.
        error: the message of the error for another answer.
        option: the option of the command that confirms without a terminal.

    Raises:
        UsageError: there is no terminal.
        CommandError: the operator typed another text.
    """
    try:
        typed = input(question)
    except EOFError:
        raise UsageError(f"there is no terminal to confirm on: pass {option}") from None
    if typed != answer:
        raise CommandError(error)


def tenant_of(slug: str, *, provisioned: bool = True) -> Tenant:
    """Return the tenant with this slug, by default one with a schema.

    Raises:
        UnknownTenant: there is none.
        InvalidTenant: it is not provisioned yet.
    """
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        raise UnknownTenant(f"no tenant is called {slug!r} (list_tenants shows them)")
    if provisioned and tenant.state == Tenant.State.PROVISIONING:
        raise InvalidTenant(f"tenant {slug!r} is not provisioned yet: run create_tenant {slug}")
    return tenant


def add_tenants(parser: CommandParser) -> None:
    """Add --tenant SLUG and --all, for `tenants_of`."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--tenant", metavar="SLUG", help="One tenant.")
    which.add_argument("--all", action="store_true", help="All active tenants.")


def tenants_of(options: Mapping[str, Any]) -> list[Tenant]:
    """Return the tenants of a command with the options of `add_tenants`."""
    if options["all"]:
        return list(Tenant.objects.serving().order_by("slug"))
    return [tenant_of(options["tenant"])]
