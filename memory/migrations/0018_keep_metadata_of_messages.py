"""Metadata of messages, and their values where a b-tree can find them.

A column that may be empty is added without a look at the rows.
"""

import django.db.models.deletion
from django.db import migrations, models

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant


class Migration(migrations.Migration):
    dependencies = [("memory", "0017_drop_indexes_of_checkpoints")]

    operations = [
        migrations.AddField(
            "Message",
            "metadata",
            models.JSONField(
                blank=True, help_text="What the program says of it, to be found by.", null=True
            ),
        ),
        migrations.CreateModel(
            name="MessageAttribute",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "key",
                    models.TextField(
                        db_collation="C",
                        help_text="Path of the value; the keys of inner objects follow a dot.",
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        help_text="text, number, literal (true, false, null), object or list."
                    ),
                ),
                (
                    "text",
                    models.TextField(
                        db_collation="C",
                        help_text="A text (a long one abridged), or a literal.",
                        null=True,
                    ),
                ),
                ("number", models.FloatField(help_text="A number.", null=True)),
                (
                    "message",
                    models.ForeignKey(
                        help_text="The message.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attributes",
                        to="memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "message attribute",
                "indexes": [
                    models.Index(
                        fields=["key", "kind", "text", "message"],
                        include=["tenant_id"],
                        name="message_attribute_text",
                    ),
                    models.Index(
                        fields=["key", "number", "message"],
                        include=["tenant_id"],
                        condition=models.Q(("number__isnull", False)),
                        name="message_attribute_number",
                    ),
                ],
            },
        ),
        ForceRowLevelSecurity("memory_messageattribute"),
        GrantToApp("memory_messageattribute", "INSERT"),
        CommentOnTables(
            {
                "MessageAttribute": "One value of a message's metadata, where a b-tree can find it."
                " Append-only.",
                "Message": "One turn of the transcript, verbatim, written before anything else"
                " happens. Append-only.",
            }
        ),
    ]
