"""manage.py reseal_channel_tokens: after a new key was put first in CHANNEL_TOKEN_KEYS."""

from typing import Any, Final

from django.core.management import CommandError

from konstruct.channels.models import SlackInstallation
from konstruct.orchestrator.models import LanguageModel
from tenants import context, secret_keys, transaction
from tenants.audit.access_log import record_command
from tenants.audit.models import Action
from tenants.management.base import KonstructCommand
from tenants.models import Tenant
from tenants.outbox.models import Subscription

# Columns with secrets by model.
SECRETS: Final = {
    SlackInstallation: ("encrypted_token",),
    Subscription: ("secret", "previous_secret"),
    LanguageModel: ("secret_key",),
}


class Command(KonstructCommand):
    """Encrypts every token and secret of every tenant with the first key."""

    help = (
        "Encrypts the tokens of all workspaces, the secrets of all webhooks and the keys of all "
        "language models with the first of CHANNEL_TOKEN_KEYS. Afterwards "
        "the other keys can be removed."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        resealed, unreadable = 0, []
        for tenant in Tenant.objects.provisioned():
            try:
                with context.tenant_scope(tenant.id), transaction.atomic():
                    done = reencrypt_all()
                    if done:
                        record_command(
                            self.name, Action.EDIT, "Slack workspaces", resealed_tokens=done
                        )
                resealed += done
            except secret_keys.SecretUnreadable as error:
                unreadable.append(f"{tenant.slug}: {error}")
        self.stdout.write(f"{resealed} encrypted with the first key")
        if unreadable:
            raise CommandError(" ".join(["Keep the other keys.", *unreadable]))


def reencrypt_all() -> int:
    """Encrypt the secrets of the current tenant with the first key; return the number of rows.

    Raises SecretUnreadable, and then changes nothing.
    """
    resealed = 0
    with transaction.atomic():
        for model, columns in SECRETS.items():
            # The first column of a row with secrets is not empty.
            rows = model._default_manager.exclude(**{columns[0]: ""}).select_for_update()
            for row in rows:
                place = f"{model._meta.verbose_name} {row}"
                for column in columns:
                    setattr(row, column, secret_keys.reencrypt(getattr(row, column), place=place))
                row.save(update_fields=columns)
                resealed += 1
    return resealed
