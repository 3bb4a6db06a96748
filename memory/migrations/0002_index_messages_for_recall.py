"""What recall weighs of a message; scopes whose number is computed."""

from django.db import migrations, models

from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial")]

    operations = [
        migrations.AlterField(
            "Scope", "id", models.BigIntegerField(primary_key=True, serialize=False)
        ),
        migrations.CreateModel(
            name="IndexedMessage",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                (
                    "message_number",
                    models.BigIntegerField(
                        primary_key=True, serialize=False, help_text="Message.number"
                    ),
                ),
                ("scope_id", models.BigIntegerField(help_text="Scope.id")),
                ("message_id", models.UUIDField(unique=True, help_text="Message.id")),
                ("session", models.BigIntegerField(help_text="Hash of the thread and the day.")),
                ("created_at", models.DateTimeField(help_text="When it was said.")),
                (
                    "subject",
                    models.BigIntegerField(
                        help_text="Hash of the first word of the speaker's name."
                    ),
                ),
                ("by_user", models.BooleanField(help_text="Said by the user, not by the agent.")),
                ("words", models.IntegerField(help_text="Number of its words.")),
                ("has_time", models.BooleanField(help_text="Holds a word of time.")),
            ],
            options={
                "verbose_name": "indexed message",
                "indexes": [
                    models.Index(
                        fields=["scope_id", "session", "created_at", "message_number"],
                        include=[
                            "message_id",
                            "subject",
                            "by_user",
                            "words",
                            "has_time",
                            "tenant_id",
                        ],
                        name="indexed_message_scope",
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("memory_indexedmessage"),
        GrantToApp("memory_indexedmessage", "INSERT"),
    ]
