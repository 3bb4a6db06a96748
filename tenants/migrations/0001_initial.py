"""Tenants and domains, in the public schema."""

import uuid

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Cast, Concat, Now, Replace

LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"


class Migration(migrations.Migration):
    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Tenant",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        help_text="Short name; the first part of the default domain.",
                        max_length=63,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                rf"^{LABEL}\Z",
                                "Use lower-case letters, digits and inner hyphens, at most 63.",
                            )
                        ],
                    ),
                ),
                (
                    "name",
                    models.CharField(help_text="Name that people read.", max_length=200),
                ),
                (
                    "schema_name",
                    models.CharField(editable=False, max_length=63, unique=True),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("provisioning", "Provisioning"),
                            ("active", "Active"),
                            ("suspended", "Suspended"),
                        ],
                        default="provisioning",
                        help_text="Only an active tenant is served.",
                        max_length=12,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["slug"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            schema_name=Concat(
                                models.Value("t_"),
                                Replace(
                                    Cast("id", models.CharField()),
                                    models.Value("-"),
                                    models.Value(""),
                                ),
                            )
                        ),
                        name="tenant_schema_is_named_after_its_id",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(state__in=["provisioning", "active", "suspended"]),
                        name="tenant_state_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Domain",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("is_primary", models.BooleanField(db_index=True, default=True)),
                (
                    "domain",
                    models.CharField(
                        error_messages={"unique": "This host serves a tenant already."},
                        help_text="Host name, without a port.",
                        max_length=253,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                rf"^{LABEL}(\.{LABEL})*\Z",
                                "Give a lower-case host name, without a port.",
                            )
                        ],
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="domains",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={"ordering": ["domain"]},
        ),
    ]
