"""manage.py reseal_channel_tokens: after a new key was put first in CHANNEL_TOKEN_KEYS."""

from typing import Any

from django.core.management import CommandError

from konstruct.channels.slack.installations import reencrypt_tokens
from konstruct.channels.webhooks import reencrypt_secrets
from konstruct.orchestrator.language_models import reencrypt_keys
from tenants import transaction
from tenants.audit.access_log import record_command
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand
from tenants.models import Tenant
from tenants.secret_keys import SecretUnreadable


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
                with tenant_scope(tenant.id), transaction.atomic():
                    done = reencrypt_tokens() + reencrypt_secrets() + reencrypt_keys()
                    if done:
                        record_command(
                            self.name, Action.EDIT, "Slack workspaces", resealed_tokens=done
                        )
                resealed += done
            except SecretUnreadable as error:
                unreadable.append(f"{tenant.slug}: {error}")
        self.stdout.write(f"{resealed} encrypted with the first key")
        if unreadable:
            raise CommandError(" ".join(["Keep the other keys.", *unreadable]))
