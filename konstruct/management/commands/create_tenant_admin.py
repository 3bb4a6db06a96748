"""manage.py create_tenant_admin: create a user of one tenant's admin."""

import os
import secrets
import sys
from getpass import getpass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandParser
from django.db import IntegrityError

from tenants import context, transaction
from tenants.audit.access_log import record_command
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.management.base import KonstructCommand, UsageError, tenant_of

PASSWORD_VARIABLE = "KONSTRUCT_ADMIN_PASSWORD"  # noqa: S105  (the variable's name)


class Command(KonstructCommand):
    """Creates a user in the tenant's schema, unknown to every other tenant."""

    help = (
        "Creates a user of one tenant's admin. The password is --password, else "
        f"${PASSWORD_VARIABLE}, else asked for; without a terminal one is made up and printed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="The tenant.")
        parser.add_argument("--username", required=True, help="Username for the login.")
        parser.add_argument("--email", default="", help="Mail address.")
        parser.add_argument("--password", help="Password. Other users of this machine can see it.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        username = options["username"]
        user = get_user_model()(
            username=username, email=options["email"], is_staff=True, is_superuser=True
        )
        password, is_generated = _password(options["password"])
        user.set_password(password)
        with context.tenant_scope(tenant.id):
            try:
                if not is_generated:
                    validate_password(password, user)
                user.full_clean()
                with transaction.atomic():
                    user.save(force_insert=True)
                    record_command(self.name, Action.CREATE, user, after=row_state(user, many=True))
            except ValidationError as error:
                raise UsageError(" ".join(error.messages)) from error
            except IntegrityError as error:
                raise UsageError(f"{username!r} exists already in {tenant.slug}") from error
        self.stdout.write(f"created user {username} of tenant {tenant.slug}")
        if is_generated:
            self.stdout.write(f"password: {password}")


def _password(argument: str | None) -> tuple[str, bool]:
    """Return the password, and whether it was generated."""
    password = argument if argument is not None else os.environ.get(PASSWORD_VARIABLE)
    if password is None and sys.stdin.isatty():
        password = getpass()
        if getpass("Password (again): ") != password:
            raise UsageError("the two passwords differ")
    if password is None:
        return secrets.token_urlsafe(12), True
    if not password:
        raise UsageError("the password is empty")
    return password, False
