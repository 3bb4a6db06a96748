"""Tables of the API: the keys of programs, and what they created with an Idempotency-Key."""

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, ProhibitNullCharactersValidator
from django.db import models
from django.db.models.functions import Now

from konstruct.orchestrator.models import Agent
from memory.arguments import id_problem
from tenants.fields import optional_id, optional_text, optional_time, random_id
from tenants.models import TenantModel
from tenants.personal_data import Merge, OnErasure, PersonalData, rows_of_user


def valid_id(value: str) -> None:
    """Refuse a text that is no id or name of new rows, in forms."""
    if problem := id_problem(value):
        raise ValidationError(f"This {problem}.")


class KeyScope(models.TextChoices):
    """A permission of a key."""

    READ = "read", "read: look, and search"
    WRITE = "write", "write: send, make and edit"
    ERASE = "erase", "erase: delete facts, clear windows and sessions, request erasures"
    KEYS = "keys", "keys: make and revoke API keys that allow no more"


# The default scopes of a key: everything except erasing and making keys.
DEFAULT_SCOPES = (KeyScope.READ, KeyScope.WRITE)


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """API keys of a tenant."""

    def valid(self) -> "ApiKeyQuerySet":
        """Return the keys that are valid now."""
        in_time = models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=Now())
        return self.filter(in_time, revoked_at__isnull=True)


class ApiKey(TenantModel):
    """A program's access to its tenant's API. The key itself is shown once and never stored."""

    id = random_id()
    name = models.CharField(
        max_length=120,
        validators=[ProhibitNullCharactersValidator()],
        help_text="Name of the program that uses it.",
    )
    prefix = models.CharField(
        max_length=12, editable=False, help_text="Part of the key by which it is found."
    )
    secret_digest = models.CharField(
        max_length=64, editable=False, help_text="SHA-256 of the key's secret."
    )
    scopes = ArrayField(models.TextField(choices=KeyScope), help_text="Scopes of the key.")
    agent = models.ForeignKey(
        Agent,
        # Not SET_NULL: a key that loses its agent would see more than before.
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="api_keys",
        db_index=False,  # only deleting an agent looks for its keys
        help_text="The only agent that this key can use. Empty: all agents.",
    )
    user_id = models.TextField(  # noqa: DJ001  (null: no user; '' would be one)
        "user",
        null=True,
        blank=True,
        validators=[valid_id, MaxLengthValidator(255)],
        help_text="The only end user that this key can write for and read. Empty: all users.",
    )
    created_at = models.DateTimeField(
        db_default=Now(), editable=False, help_text="Time of creation."
    )
    created_by = optional_text(
        editable=False,
        help_text="Id of the person who created it. Empty: created by an operator's command.",
    )
    program_id = optional_id(
        editable=False,
        help_text="Id of the program's first key, if this key replaced or was made by another one.",
    )
    parent_id = optional_id(
        editable=False, help_text="The key that made it, with which it is revoked. Empty: none."
    )
    last_used_at = optional_time(
        editable=False, help_text="When it was last used, to within a few minutes."
    )
    expires_at = optional_time(
        help_text="The key is refused from this time on. Empty: it does not expire."
    )
    revoked_at = optional_time(editable=False, help_text="When it was revoked.")

    objects = ApiKeyQuerySet.as_manager()

    # Deleted with its user, because without the user the key would allow more.
    # Words of the code, and random digits: the access log has them.
    logged_words = frozenset({"prefix", "scopes"})

    personal_data = rows_of_user(
        merge=Merge(unchanged="a key must not open more because two ids are one person's")
    )

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["prefix"], name="api_key_prefix"),
            models.CheckConstraint(
                condition=models.Q(scopes__contained_by=KeyScope.values, scopes__len__gt=0),
                name="api_key_scopes",
            ),
            models.CheckConstraint(
                condition=~models.Q(user_id=""),
                name="api_key_user",
                violation_error_message="user_id: Name a user, or none at all.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class IdempotencyRecord(TenantModel):
    """The row that a POST with an Idempotency-Key created. Append-only.

    It has only a digest of the request.
    """

    pk = models.CompositePrimaryKey("operation", "key")
    operation = models.TextField(help_text="Method and path of the request.")
    key = models.CharField(max_length=255, help_text="Caller, and digest of the Idempotency-Key.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the request's body.")
    made = models.UUIDField(help_text="Id of the created object.")
    created_at = models.DateTimeField(db_default=Now(), help_text="Time of creation.")

    # Deleted together with its row.
    personal_data = PersonalData(on_erasure=OnErasure.KEEP)

    class Meta:
        db_table = "api_creation"
        verbose_name = "idempotency record"
        indexes = [models.Index(fields=["made"], name="creation_made")]

    def __str__(self) -> str:
        return f"{self.operation} made {self.made}"
