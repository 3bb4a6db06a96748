"""The access log and requests of erasure, behind the tenant's policy, for adding rows only."""

import uuid

import django.contrib.postgres.functions
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AccessEvent",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), help_text="When."
                    ),
                ),
                (
                    "actor_kind",
                    models.TextField(
                        choices=[
                            ("person", "person in the admin"),
                            ("program", "program with an API key"),
                            ("operator", "operator's command"),
                        ],
                        help_text="Who, of which kind.",
                    ),
                ),
                ("actor_id", models.TextField(help_text="Id of the person, or of the API key.")),
                ("actor", models.TextField(help_text="Their name at that time.")),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("list", "listed"),
                            ("view", "looked at"),
                            ("search", "searched"),
                            ("export", "exported"),
                            ("clear", "cleared"),
                            ("edit", "edited"),
                            ("delete", "deleted"),
                            ("try", "tried"),
                            ("retry", "retried"),
                            ("erase", "asked to erase"),
                        ],
                        help_text="What they did.",
                    ),
                ),
                (
                    "subject",
                    models.TextField(help_text="With what: conversation, memories, fact …"),
                ),
                (
                    "subject_id",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Which one, if it was one."
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="Whose memory, if it was one agent's.",
                        null=True,
                        verbose_name="agent",
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        help_text="Of whom, if it was one user.",
                        null=True,
                        verbose_name="user",
                    ),
                ),
                (
                    "detail",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="What was asked for, and how much came of it.",
                    ),
                ),
                (
                    "request_id",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="As in the log lines of the request.",
                    ),
                ),
            ],
            options={
                "verbose_name": "access",
                "verbose_name_plural": "access log",
                "permissions": [
                    ("recall_memories", "Can search memories as an agent would"),
                    ("search_everyone", "Can search the words of all users at once"),
                    ("export_person", "Can export all that is known of a person"),
                    ("try_agent", "Can try an agent out"),
                ],
                "indexes": [
                    models.Index(fields=["user_id", "-id"], name="access_of_user"),
                    models.Index(fields=["actor_kind", "actor_id", "-id"], name="access_by_actor"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ErasureRequest",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        db_default=django.contrib.postgres.functions.RandomUUID(),
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="Who is to be forgotten, by every agent.", verbose_name="user"
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why, or on whose word."
                    ),
                ),
                ("requested_by", models.TextField(help_text="Who asked for it.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was asked for.",
                    ),
                ),
                (
                    "done_at",
                    models.DateTimeField(blank=True, help_text="When it was done.", null=True),
                ),
                (
                    "receipt",
                    models.JSONField(
                        blank=True,
                        help_text="How much was removed from where, and what was found left.",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name": "erasure request",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("done_at__isnull", True)),
                        fields=("user_id",),
                        name="erasure_one_open_request",
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("audit_accessevent"),
        GrantToApp("audit_accessevent", "INSERT"),
        ForceRowLevelSecurity("audit_erasurerequest"),
        GrantToApp("audit_erasurerequest", "INSERT"),
    ]
