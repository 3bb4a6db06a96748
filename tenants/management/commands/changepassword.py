"""manage.py changepassword: Django's, with a record in the operators' log."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.management.commands import changepassword

from tenants import transaction
from tenants.audit.operator_log import operator_name, record_command
from tenants.management.base import KonstructCommand


class Command(KonstructCommand, changepassword.Command):
    """Django's changepassword for operators; the change is recorded."""

    def handle(self, *args: Any, **options: Any) -> str | None:
        username = options["username"] or operator_name()
        with transaction.atomic():
            said: str | None = super().handle(*args, **{**options, "username": username})
            user = get_user_model()._default_manager.get_by_natural_key(username)
            record_command(self.name, "edit", user, withheld=["password"])
        return said
