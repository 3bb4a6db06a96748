"""API keys and idempotency records, each table with its policy and grants."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.core import validators
from django.db import migrations, models
from django.db.models import deletion
from django.db.models.functions import Now

import konstruct.api.models
from tenants.fields import CurrentTenant
from tenants.operations import CommentOnTables, protect_tables

# What the application may do besides SELECT. A table with INSERT alone is append-only.
PRIVILEGES = {"api_apikey": ["INSERT", "UPDATE"], "api_creation": ["INSERT"]}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("orchestrator", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="Name of the program that uses it.",
                        max_length=120,
                        validators=[validators.ProhibitNullCharactersValidator()],
                    ),
                ),
                (
                    "prefix",
                    models.CharField(
                        editable=False,
                        help_text="Part of the key by which it is found.",
                        max_length=12,
                    ),
                ),
                (
                    "secret_digest",
                    models.CharField(
                        editable=False, help_text="SHA-256 of the key's secret.", max_length=64
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        editable=False,
                        help_text="Time of creation.",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="The key is refused from this time on. Empty: it does not expire.",
                        null=True,
                    ),
                ),
                (
                    "program_id",
                    models.UUIDField(
                        blank=True,
                        editable=False,
                        help_text="Id of the program's first key, if this key replaced or was made by another one.",
                        null=True,
                    ),
                ),
                (
                    "parent_id",
                    models.UUIDField(
                        blank=True,
                        editable=False,
                        help_text="The key that made it, with which it is revoked. Empty: none.",
                        null=True,
                    ),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(
                        blank=True, editable=False, help_text="When it was revoked.", null=True
                    ),
                ),
                (
                    "scopes",
                    ArrayField(
                        base_field=models.TextField(
                            choices=[
                                ("read", "read: look, and search"),
                                ("write", "write: send, make and edit"),
                                (
                                    "erase",
                                    "erase: delete facts, clear windows and sessions, request erasures",
                                ),
                                ("keys", "keys: make and revoke API keys that allow no more"),
                            ]
                        ),
                        help_text="Scopes of the key.",
                        size=None,
                    ),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="The only agent that this key can use. Empty: all agents.",
                        null=True,
                        on_delete=deletion.PROTECT,
                        related_name="api_keys",
                        to="orchestrator.agent",
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        help_text="The only end user that this key can write for and read. Empty: all users.",
                        null=True,
                        validators=[
                            konstruct.api.models.valid_id,
                            validators.MaxLengthValidator(255),
                        ],
                        verbose_name="user",
                    ),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When it was last used, to within a few minutes.",
                        null=True,
                    ),
                ),
                (
                    "created_by",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="Id of the person who created it. Empty: created by an operator's command.",
                    ),
                ),
            ],
            options={
                "verbose_name": "API key",
                "ordering": ["-created_at"],
                "constraints": [
                    models.UniqueConstraint(fields=("prefix",), name="api_key_prefix"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("scopes__contained_by", ["read", "write", "erase", "keys"]),
                            ("scopes__len__gt", 0),
                        ),
                        name="api_key_scopes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("user_id", ""), _negated=True),
                        name="api_key_user",
                        violation_error_message="user_id: Name a user, or none at all.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "operation",
                        "key",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("operation", models.TextField(help_text="Method and path of the request.")),
                (
                    "key",
                    models.CharField(
                        help_text="Caller, and digest of the Idempotency-Key.", max_length=255
                    ),
                ),
                (
                    "digest",
                    models.CharField(help_text="SHA-256 of the request's body.", max_length=64),
                ),
                ("made", models.UUIDField(help_text="Id of the created object.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="Time of creation.",
                    ),
                ),
            ],
            options={
                "verbose_name": "idempotency record",
                "db_table": "api_creation",
                "indexes": [models.Index(fields=["made"], name="creation_made")],
            },
        ),
        *protect_tables(PRIVILEGES),
        CommentOnTables(
            tables={
                "ApiKey": "A program's access to its tenant's API.",
                "IdempotencyRecord": "The row that a POST with an Idempotency-Key created. Append-only.",
            },
        ),
    ]
