"""Tables of the API: the keys of programs."""

import uuid

from django.contrib.postgres.functions import RandomUUID
from django.core.validators import ProhibitNullCharactersValidator
from django.db import models
from django.db.models.functions import Now

from tenants.models import TenantModel


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """API keys of a tenant."""

    def valid(self) -> "ApiKeyQuerySet":
        """Those that open the door now."""
        in_time = models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=Now())
        return self.filter(in_time, revoked_at__isnull=True)


class ApiKey(TenantModel):
    """A program's access to its tenant's API. The key itself is shown once and never stored."""

    id = models.UUIDField(
        primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False
    )
    name = models.CharField(
        max_length=120,
        validators=[ProhibitNullCharactersValidator()],
        help_text="Which program uses it, for people.",
    )
    prefix = models.CharField(
        max_length=12, editable=False, help_text="Part of the key by which it is found."
    )
    secret_digest = models.CharField(
        max_length=64, editable=False, help_text="SHA-256 of the key's secret."
    )
    created_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="When it was made."
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on it opens nothing. Empty: it does not expire."
    )
    revoked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When it was revoked."
    )

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at"]
        constraints = [models.UniqueConstraint(fields=["prefix"], name="api_key_prefix")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
