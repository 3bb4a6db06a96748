"""Refused commands of Django and django-tenants: they bypass tenant contexts and records."""

from argparse import REMAINDER, SUPPRESS
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser


class RefusedCommand(BaseCommand):
    """A command that changes nothing, with any arguments, and names the command to run instead.

    It replaces a command that changes a tenant's tables outside of the tenant's context, or without
    a record in the access log or the operators' log, or that does not work with these tables.
    """

    requires_system_checks = ()
    remedy: ClassVar[str]
    """What to run instead: the end of a sentence that begins with "refused: "."""

    @property
    def help(self) -> str:  # type: ignore[override]  # a plain attribute there
        """Return what `manage.py help NAME` prints."""
        return f"Refused: {self.remedy}."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("any", nargs=REMAINDER, help=SUPPRESS)

    def run_from_argv(self, argv: list[str]) -> None:
        # Arguments of the refused command are not parsed; only --help is.
        asks_help = any(argument in ("-h", "--help") for argument in argv[2:])
        super().run_from_argv([*argv[:2], "--help"] if asks_help else argv[:2])

    def execute(self, *args: Any, **options: Any) -> None:
        """Raise CommandError with the remedy; the exit status is 2."""
        name = type(self).__module__.rpartition(".")[2]
        raise CommandError(f"{name} is refused: {self.remedy}", returncode=2)
