"""manage.py createsuperuser: Django's, with a record in the operators' log."""

from typing import Any

from django.contrib.auth.management.commands import createsuperuser

from tenants import transaction
from tenants.audit.changes import row_state
from tenants.audit.operator_log import record_command
from tenants.management.base import KonstructCommand


class Command(KonstructCommand, createsuperuser.Command):
    """Creates an operator."""

    def handle(self, *args: Any, **options: Any) -> None:
        with transaction.atomic():
            known = set(self.UserModel._default_manager.values_list("pk", flat=True))
            super().handle(*args, **options)
            for user in self.UserModel._default_manager.exclude(pk__in=known):
                record_command(self.name, "create", user, after=row_state(user))
