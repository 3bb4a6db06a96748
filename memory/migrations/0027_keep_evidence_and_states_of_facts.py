"""Facts get subject, slot, value and state; their evidence and their events get tables."""

import uuid

import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models

import memory.fields
import tenants.postgresql.expressions
from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0026_describe_postings"),
    ]

    operations = [
        migrations.CreateModel(
            name="FactEvent",
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
                    "number",
                    memory.fields.IdentityField(help_text="Order of insertion.", unique=True),
                ),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("enter", "entered"),
                            ("propose", "proposed"),
                            ("confirm", "confirmed"),
                            ("change", "changed"),
                            ("supersede", "superseded"),
                            ("retract", "retracted"),
                            ("reject", "rejected"),
                            ("restore", "restored"),
                        ],
                        help_text="The change.",
                    ),
                ),
                (
                    "author_kind",
                    models.TextField(
                        choices=[
                            ("person", "person"),
                            ("program", "program with an API key"),
                            ("operator", "operator's command"),
                            ("run", "extraction run"),
                            ("system", "the platform"),
                        ],
                        help_text="The kind of the author.",
                    ),
                ),
                (
                    "author_id",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Id of the person, the API key or the extraction run.",
                    ),
                ),
                (
                    "author_name",
                    models.TextField(blank=True, default="", help_text="Name of the author."),
                ),
                (
                    "reason",
                    models.TextField(blank=True, default="", help_text="The author's reason."),
                ),
                (
                    "other_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The fact that superseded this one, or was superseded.",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="When it happened.",
                    ),
                ),
            ],
            options={
                "verbose_name": "event of a fact",
                "verbose_name_plural": "events of facts",
            },
        ),
        migrations.CreateModel(
            name="FactEvidence",
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
                    "start",
                    models.PositiveIntegerField(
                        help_text="First character of the quote in the message."
                    ),
                ),
                (
                    "end",
                    models.PositiveIntegerField(
                        help_text="Position after the last character of the quote."
                    ),
                ),
                ("quote", models.TextField(help_text="The words of the message, verbatim.")),
                (
                    "source_digest",
                    models.BinaryField(
                        help_text="Keyed digest of the message's user, time and text: copies "
                        "have the same."
                    ),
                ),
                (
                    "run_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The extraction run that found it.",
                        null=True,
                        verbose_name="extraction run",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(
                            function="clock_timestamp", output_field=models.DateTimeField()
                        ),
                        help_text="When it was stored.",
                    ),
                ),
            ],
            options={
                "verbose_name": "evidence of a fact",
                "verbose_name_plural": "evidence of facts",
            },
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="asserter",
            field=models.TextField(
                blank=True, db_default="", default="", help_text="Who stated it, by name."
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="confidence",
            field=memory.fields.RealField(
                blank=True, help_text="Confidence of the language model, 0 to 1.", null=True
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="is_multi_valued",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="Whether several values of the slot can be valid at once.",
                verbose_name="multi-valued",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="kind",
            field=models.TextField(
                choices=[
                    ("observed", "stated in a message"),
                    ("inferred", "concluded from messages"),
                    ("entered", "entered by a person or a program"),
                ],
                db_default="entered",
                default="entered",
                help_text="Whether it was stated in a message, concluded, or entered.",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="learned_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When the earliest message of its evidence was sent. Empty: when it "
                "was stored.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="replaces",
            field=models.UUIDField(
                blank=True,
                editable=False,
                help_text="The fact that this one supersedes, or would supersede if it is "
                "confirmed.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="retracted_at",
            field=models.DateTimeField(blank=True, help_text="When it was retracted.", null=True),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="review_reason",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Why a person is to review it, such as conflict or health.",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="run_id",
            field=models.UUIDField(
                blank=True,
                editable=False,
                help_text="The extraction run that proposed it.",
                null=True,
                verbose_name="extraction run",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="slot",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="The attribute of the subject, in snake_case, such as home_city. "
                "Empty: none.",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="state",
            field=models.TextField(
                choices=[
                    ("proposed", "proposed"),
                    ("active", "active"),
                    ("superseded", "superseded"),
                    ("retracted", "retracted"),
                    ("rejected", "rejected"),
                ],
                db_default="active",
                default="active",
                help_text="Only active facts are given to agents.",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="subject",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Whom or what the fact is about, by name.",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="valid_from_precision",
            field=models.TextField(
                blank=True,
                choices=[("", "moment"), ("day", "day"), ("month", "month"), ("year", "year")],
                db_default="",
                default="",
                help_text="How exactly “valid from” is known.",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="valid_to_precision",
            field=models.TextField(
                blank=True,
                choices=[("", "moment"), ("day", "day"), ("month", "month"), ("year", "year")],
                db_default="",
                default="",
                help_text="How exactly “valid until” is known.",
            ),
        ),
        migrations.AddField(
            model_name="memoryentry",
            name="value",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="The value of the slot, such as Oslo.",
            ),
        ),
        migrations.AddIndex(
            model_name="memoryentry",
            index=models.Index(
                condition=models.Q(
                    ("version_of__isnull", True), models.Q(("slot", ""), _negated=True)
                ),
                fields=["user_id", "agent_id", "slot"],
                include=("tenant_id",),
                name="fact_slot",
            ),
        ),
        migrations.AddIndex(
            model_name="memoryentry",
            index=models.Index(
                condition=models.Q(("state", "proposed"), ("version_of__isnull", True)),
                fields=["created_at", "memory_id"],
                include=("tenant_id",),
                name="fact_proposed",
            ),
        ),
        migrations.AddIndex(
            model_name="memoryentry",
            index=models.Index(
                condition=models.Q(("run_id__isnull", False)), fields=["run_id"], name="fact_run"
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["proposed", "active", "superseded", "retracted", "rejected"])
                ),
                name="fact_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="memoryentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["observed", "inferred", "entered"])),
                name="fact_kind",
            ),
        ),
        migrations.AddField(
            model_name="factevent",
            name="memory",
            field=models.ForeignKey(
                db_index=False,
                help_text="The fact.",
                on_delete=django.db.models.deletion.CASCADE,
                related_name="events",
                to="memory.memoryentry",
            ),
        ),
        migrations.AddField(
            model_name="factevidence",
            name="memory",
            field=models.ForeignKey(
                db_index=False,
                help_text="The fact, or the old version of it that was stated.",
                on_delete=django.db.models.deletion.CASCADE,
                related_name="evidence",
                to="memory.memoryentry",
            ),
        ),
        migrations.AddField(
            model_name="factevidence",
            name="message",
            field=models.ForeignKey(
                help_text="The message.",
                on_delete=django.db.models.deletion.PROTECT,
                related_name="fact_evidence",
                to="memory.message",
            ),
        ),
        migrations.AddIndex(
            model_name="factevent",
            index=models.Index(fields=["memory", "number"], name="fact_event_fact"),
        ),
        migrations.AddConstraint(
            model_name="factevent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "action__in",
                        [
                            "enter",
                            "propose",
                            "confirm",
                            "change",
                            "supersede",
                            "retract",
                            "reject",
                            "restore",
                        ],
                    )
                ),
                name="fact_event_action",
            ),
        ),
        migrations.AddIndex(
            model_name="factevidence",
            index=models.Index(
                condition=models.Q(("run_id__isnull", False)),
                fields=["run_id"],
                name="fact_evidence_run",
            ),
        ),
        migrations.AddConstraint(
            model_name="factevidence",
            constraint=models.UniqueConstraint(
                fields=("memory", "message", "start", "end"), name="fact_evidence_quote"
            ),
        ),
        migrations.AddConstraint(
            model_name="factevidence",
            constraint=models.CheckConstraint(
                condition=models.Q(("end__gt", models.F("start"))), name="fact_evidence_end"
            ),
        ),
        ForceRowLevelSecurity("memory_factevidence"),
        GrantToApp("memory_factevidence", "INSERT", "UPDATE (memory_id)", "DELETE"),
        ForceRowLevelSecurity("memory_factevent"),
        GrantToApp("memory_factevent", "INSERT", "DELETE"),
        CommentOnTables(
            {
                "FactEvidence": "The words of a message that a fact rests on. Never changed.",
                "FactEvent": "A change of a fact's state, and its author. Never changed, and"
                " deleted with the fact.",
                "MemoryEntry": "A fact. An update keeps its id, and keeps the earlier state as a"
                " version.",
            }
        ),
    ]
