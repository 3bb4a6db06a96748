"""Messages that are held; escalations to people, tool calls with consent, and identities."""

import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import tenants.postgresql.expressions
from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0009_drop_index_message_time"),
        ("orchestrator", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ChannelIdentity",
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
                ("channel", models.TextField(help_text="slack …")),
                (
                    "workspace",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Where in the channel, if it has such.",
                    ),
                ),
                (
                    "native_id",
                    models.TextField(
                        help_text="As the channel knows them there.", verbose_name="id"
                    ),
                ),
                (
                    "own_id",
                    models.TextField(
                        help_text="The user whom they are by themselves; no other identity "
                        "has the same.",
                        verbose_name="own user id",
                    ),
                ),
                (
                    "user_id",
                    models.TextField(help_text="The user as whom they speak.", verbose_name="user"),
                ),
                (
                    "name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What the channel calls them.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When they were heard first.",
                    ),
                ),
                (
                    "linked_at",
                    models.DateTimeField(
                        blank=True, help_text="Since when they speak as somebody else.", null=True
                    ),
                ),
                (
                    "linked_by",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Who linked them."
                    ),
                ),
            ],
            options={
                "verbose_name": "identity",
                "verbose_name_plural": "identities",
                "ordering": ["-created_at"],
            },
        ),
        migrations.CreateModel(
            name="Escalation",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent whose memory this is.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user as the channel knows them, such as a Slack user id.",
                        verbose_name="user",
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
                    "thread_id",
                    models.TextField(
                        help_text="The conversation, as the channel knows it.",
                        verbose_name="thread",
                    ),
                ),
                ("channel", models.TextField(help_text="Where it takes place: rest, slack …")),
                (
                    "message_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The message that asked for it: its reply says that a "
                        "person will answer.",
                        null=True,
                        verbose_name="message",
                    ),
                ),
                (
                    "opened_by",
                    models.TextField(
                        choices=[
                            ("user", "the user asked for it"),
                            ("rule", "a rule of the agent's"),
                            ("program", "a program"),
                            ("person", "a person in the admin"),
                        ],
                        help_text="On whose account.",
                    ),
                ),
                (
                    "opened_by_name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Their name, if it was a program or person.",
                    ),
                ),
                ("reason", models.TextField(help_text="Why, in words.")),
                (
                    "opened_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="Since when.",
                    ),
                ),
                (
                    "resolved_at",
                    models.DateTimeField(
                        blank=True, help_text="Until when; empty while a person answers.", null=True
                    ),
                ),
                (
                    "resolved_by",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Who resolved it."
                    ),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What came of it, for the record.",
                    ),
                ),
            ],
            options={
                "verbose_name": "escalation",
                "ordering": ["-opened_at"],
            },
        ),
        migrations.CreateModel(
            name="MoveOfPast",
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
                ("from_user", models.TextField(help_text="As whom it was said.")),
                ("user_id", models.TextField(help_text="Whose it becomes.", verbose_name="user")),
                ("requested_by", models.TextField(help_text="Who linked the two.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When that was.",
                    ),
                ),
                (
                    "moved",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="How much was moved, by table.",
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why it could not be finished yet.",
                    ),
                ),
                (
                    "done_at",
                    models.DateTimeField(blank=True, help_text="When it was done.", null=True),
                ),
            ],
            options={
                "verbose_name": "move of the past",
                "verbose_name_plural": "moves of the past",
            },
        ),
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=tenants.postgresql.expressions.CurrentTenant(), editable=False
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent whose memory this is.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user as the channel knows them, such as a Slack user id.",
                        verbose_name="user",
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
                    "thread_id",
                    models.TextField(
                        help_text="The conversation of the message.", verbose_name="thread"
                    ),
                ),
                (
                    "round",
                    models.PositiveSmallIntegerField(
                        help_text="Which answer of the language model asked for it, from 0."
                    ),
                ),
                (
                    "position",
                    models.PositiveSmallIntegerField(help_text="Its place in that answer, from 0."),
                ),
                ("call_id", models.TextField(help_text="What the language model calls it.")),
                ("name", models.TextField(help_text="Which tool.", verbose_name="tool")),
                (
                    "arguments",
                    models.JSONField(help_text="What it is to be done with, as it was asked for."),
                ),
                (
                    "question",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="What the user is asked."
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("waiting", "waits for consent"),
                            ("approved", "approved, and about to be done"),
                            ("denied", "denied"),
                            ("expired", "nobody answered in time"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        help_text="How far it is.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="When it was asked for.",
                    ),
                ),
                ("expires_at", models.DateTimeField(help_text="Until when consent can be given.")),
                (
                    "decided_at",
                    models.DateTimeField(blank=True, help_text="When it was decided.", null=True),
                ),
                (
                    "decided_by",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Who decided it, and by which way.",
                    ),
                ),
                (
                    "done_at",
                    models.DateTimeField(
                        blank=True, help_text="When it was done, or failed.", null=True
                    ),
                ),
                (
                    "result",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What the language model was told of it.",
                    ),
                ),
            ],
            options={
                "verbose_name": "tool call",
                "ordering": ["-created_at"],
            },
        ),
        migrations.RemoveIndex(
            model_name="pendingreply",
            name="pending_reply_ring",
        ),
        migrations.AddField(
            model_name="agent",
            name="escalate_after_failures",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="A person is called when so many replies in a row were given up in "
                "a thread. Blank: never.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="escalate_on",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                blank=True,
                db_default=models.Value(
                    [],
                    output_field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), size=None
                    ),
                ),
                default=list,
                help_text="Words or phrases with which a message calls for a person, beside "
                "plain requests such as “talk to a human”, which always do.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="tools",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                blank=True,
                db_default=models.Value(
                    [],
                    output_field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), size=None
                    ),
                ),
                default=list,
                help_text="What it may do beside answering: remember_fact keeps a fact about "
                "the user, who is asked first.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="pendingreply",
            name="held_for",
            field=models.TextField(
                blank=True,
                choices=[
                    ("", "nobody"),
                    ("person", "a person, who answers in this thread"),
                    ("consent", "the user's consent to a tool call"),
                ],
                db_default="",
                default="",
                help_text="Whom it waits for: a person, or the user's consent; empty while "
                "it is tried.",
            ),
        ),
        migrations.AddIndex(
            model_name="pendingreply",
            index=models.Index(
                condition=models.Q(("failed_at__isnull", True), ("held_for", "")),
                fields=["ring_at"],
                name="pending_reply_ring",
            ),
        ),
        migrations.AddConstraint(
            model_name="agent",
            constraint=models.CheckConstraint(
                condition=models.Q(("escalate_after_failures", 0), _negated=True),
                name="agent_escalate_after_failures",
                violation_error_message="escalate_after_failures: Give 1 or more, or leave it out.",
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingreply",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("held_for", ""),
                    models.Q(
                        ("failed_at__isnull", True), ("held_for__in", ["", "person", "consent"])
                    ),
                    _connector="OR",
                ),
                name="pending_reply_held",
            ),
        ),
        migrations.AddIndex(
            model_name="channelidentity",
            index=models.Index(fields=["user_id"], name="identity_user"),
        ),
        migrations.AddIndex(
            model_name="channelidentity",
            index=models.Index(fields=["-created_at", "id"], name="identity_newest"),
        ),
        migrations.AddConstraint(
            model_name="channelidentity",
            constraint=models.UniqueConstraint(
                fields=("channel", "workspace", "native_id"), name="identity_native"
            ),
        ),
        migrations.AddConstraint(
            model_name="channelidentity",
            constraint=models.UniqueConstraint(fields=("own_id",), name="identity_own"),
        ),
        migrations.AddIndex(
            model_name="escalation",
            index=models.Index(
                condition=models.Q(("resolved_at__isnull", True)),
                fields=["thread_id"],
                name="escalation_thread",
            ),
        ),
        migrations.AddIndex(
            model_name="escalation",
            index=models.Index(fields=["-opened_at", "id"], name="escalation_newest"),
        ),
        migrations.AddIndex(
            model_name="escalation",
            index=models.Index(fields=["user_id", "-opened_at"], name="escalation_user"),
        ),
        migrations.AddConstraint(
            model_name="escalation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("resolved_at__isnull", True)),
                fields=("agent_id", "user_id", "thread_id"),
                name="escalation_one_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="escalation",
            constraint=models.CheckConstraint(
                condition=models.Q(("opened_by__in", ["user", "rule", "program", "person"])),
                name="escalation_opened_by",
            ),
        ),
        migrations.AddIndex(
            model_name="moveofpast",
            index=models.Index(fields=["user_id"], name="move_user"),
        ),
        migrations.AddConstraint(
            model_name="moveofpast",
            constraint=models.UniqueConstraint(
                condition=models.Q(("done_at__isnull", True)),
                fields=("from_user",),
                name="move_one_open",
            ),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="message",
            field=models.ForeignKey(
                db_index=False,
                help_text="The message that it is to help to answer.",
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tool_calls",
                to="memory.message",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["expires_at"],
                name="tool_call_overdue",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["thread_id"],
                name="tool_call_thread",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["-created_at", "id"], name="tool_call_newest"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["user_id", "-created_at"], name="tool_call_user"),
        ),
        migrations.AddConstraint(
            model_name="toolcall",
            constraint=models.UniqueConstraint(
                fields=("message", "round", "position"), name="tool_call_place"
            ),
        ),
        migrations.AddConstraint(
            model_name="toolcall",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["waiting", "approved", "denied", "expired", "done", "failed"])
                ),
                name="tool_call_state",
            ),
        ),
        *(
            ForceRowLevelSecurity(table)
            for table in (
                "orchestrator_channelidentity",
                "orchestrator_escalation",
                "orchestrator_moveofpast",
                "orchestrator_toolcall",
            )
        ),
        # Who said what to whom stays as it was written; how far it is changes.
        GrantToApp(
            "orchestrator_channelidentity",
            "INSERT",
            "UPDATE (user_id, name, linked_at, linked_by)",
        ),
        GrantToApp("orchestrator_escalation", "INSERT", "UPDATE (resolved_at, resolved_by, note)"),
        GrantToApp(
            "orchestrator_moveofpast",
            "INSERT",
            "UPDATE (user_id, requested_by, last_error, done_at)",
        ),
        GrantToApp(
            "orchestrator_toolcall",
            "INSERT",
            "UPDATE (state, decided_at, decided_by, done_at, result)",
        ),
    ]
