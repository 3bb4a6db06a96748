"""Files of lists' exports, each table with its policy and grants."""

import uuid

import django.db.models.deletion
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import protect_tables
from tenants.postgresql.expressions import CurrentTenant

# What the application may do besides SELECT.
PRIVILEGES = {
    "audit_listexport": ["INSERT", "UPDATE", "DELETE"],
    "audit_listexportpart": ["INSERT", "DELETE"],
}


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ListExport",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
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
                    "created_at",
                    models.DateTimeField(db_default=Now(), help_text="When it was requested."),
                ),
                ("member_id", models.BigIntegerField(help_text="Id of the member of the team.")),
                ("member", models.TextField(help_text="Name of the member of the team.")),
                (
                    "list_name",
                    models.TextField(
                        help_text="The list: the label of a model, or the name of a page.",
                        verbose_name="list",
                    ),
                ),
                (
                    "query",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The filters, as in the address of the list.",
                    ),
                ),
                ("time_zone", models.TextField(help_text="Time zone of the times in the file.")),
                (
                    "rows",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Rows that are written."
                    ),
                ),
                (
                    "size",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Bytes that are written."
                    ),
                ),
                (
                    "user_ids",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        editable=False,
                        help_text="The first people in the file, at most 200.",
                        size=None,
                    ),
                ),
                (
                    "people_count",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        editable=False,
                        help_text="The number of people in the file.",
                    ),
                ),
                (
                    "finished_at",
                    models.DateTimeField(
                        blank=True, help_text="When the file was complete.", null=True
                    ),
                ),
                (
                    "error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why there is no file."
                    ),
                ),
                (
                    "downloaded_at",
                    models.DateTimeField(
                        blank=True, help_text="When the file was sent, which deletes it.", null=True
                    ),
                ),
            ],
            options={
                "verbose_name": "export",
            },
        ),
        migrations.AlterModelOptions(
            name="accessevent",
            options={
                "permissions": [
                    ("recall_memories", "Can search memories as an agent would"),
                    ("search_everyone", "Can search the messages of all people"),
                    ("export_person", "Can export all data of a person"),
                    ("try_agent", "Can try an agent without storing anything"),
                    ("clear_session", "Can clear sessions of graphs"),
                    ("export_list", "Can export the rows of lists as CSV"),
                ],
                "verbose_name": "access",
                "verbose_name_plural": "access log",
            },
        ),
        migrations.CreateModel(
            name="ListExportPart",
            fields=[
                ("tenant_id", models.UUIDField(db_default=CurrentTenant(), editable=False)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField(help_text="Its place in the file, from 0.")),
                ("content", models.BinaryField(help_text="Lines of CSV.")),
                (
                    "export",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The export.",
                        on_delete=django.db.models.deletion.CASCADE,
                        to="audit.listexport",
                    ),
                ),
            ],
            options={
                "verbose_name": "part of an export",
                "verbose_name_plural": "parts of exports",
                "constraints": [
                    models.UniqueConstraint(fields=("export", "number"), name="export_parts")
                ],
            },
        ),
        *protect_tables(PRIVILEGES),
        CommentOnTables(
            tables={
                "ListExport": "An export of a list's rows: who asked for it, with which filters, and its progress.",
                "ListExportPart": "A part of the file of an export.",
            },
        ),
    ]
