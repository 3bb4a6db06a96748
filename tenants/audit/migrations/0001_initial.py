"""The access log, erasures and retention, each table with its policy and grants."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models.functions import Now

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import protect_tables
from tenants.postgresql.expressions import CurrentTenant

# What the application may do besides SELECT. A table with INSERT alone is append-only.
PRIVILEGES = {
    "audit_accessevent": ["INSERT"],
    "audit_erasurerequest": ["INSERT"],
    "audit_retentionrule": ["INSERT", "UPDATE", "DELETE"],
    "audit_messageerasure": ["INSERT"],
    "audit_erasedid": [],
}


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AccessEvent",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "created_at",
                    models.DateTimeField(db_default=Now(), help_text="When."),
                ),
                (
                    "actor_kind",
                    models.TextField(
                        choices=[
                            ("person", "person in the admin"),
                            ("program", "program with an API key"),
                            ("operator", "operator's command"),
                            ("unknown", "unknown"),
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
                            ("view", "viewed"),
                            ("search", "searched"),
                            ("export", "exported"),
                            ("import", "imported"),
                            ("send", "sent"),
                            ("clear", "cleared"),
                            ("create", "created"),
                            ("edit", "edited"),
                            ("delete", "deleted"),
                            ("try", "tried"),
                            ("retry", "retried"),
                            ("erase", "asked to erase"),
                            ("escalate", "called a person into"),
                            ("answer", "answered in"),
                            ("resolve", "resolved"),
                            ("decide", "decided"),
                            ("link", "linked"),
                            ("login", "logged in"),
                            ("logout", "logged out"),
                            ("login_failed", "failed to log in"),
                            ("refuse", "was refused"),
                        ],
                        help_text="What they did.",
                    ),
                ),
                (
                    "subject",
                    models.TextField(
                        help_text="With what: conversation, memories, fact, API key …"
                    ),
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
                        help_text="What was asked for, and how much came of it; of a change, before and after.",
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
                (
                    "address",
                    models.GenericIPAddressField(
                        blank=True, help_text="Where the request came from.", null=True
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
                    "user_id",
                    models.TextField(
                        help_text="Who is to be forgotten. Once it is done, a keyed digest of the id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, db_default="", default="", help_text="Reason."),
                ),
                ("requested_by", models.TextField(help_text="Who asked for it.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was requested.",
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
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The one agent that forgets; none: all of them.",
                        null=True,
                        verbose_name="agent",
                    ),
                ),
                (
                    "threads",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="Sessions of graphs that are the user's, beside those that the transcript knows.",
                        size=None,
                    ),
                ),
                (
                    "progress",
                    models.JSONField(
                        blank=True,
                        editable=False,
                        help_text="While it is being done: how far it is, and what is to be removed yet.",
                        null=True,
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
                        help_text="All ids of the person, as they were linked when it began; in the end, digests.",
                        size=None,
                    ),
                ),
                (
                    "by_bound_key",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="A key of one agent or one user asked for it.",
                    ),
                ),
            ],
            options={
                "verbose_name": "erasure request",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("done_at__isnull", True)),
                        fields=("user_id", "agent_id"),
                        name="erasure_one_open_request",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RetentionRule",
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
                    "agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="Of one agent; none: of all others.",
                        null=True,
                        verbose_name="agent",
                    ),
                ),
                (
                    "days",
                    models.PositiveIntegerField(help_text="What is older is removed every hour."),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="Since when it has been so.",
                    ),
                ),
                (
                    "effective_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When these days take effect.",
                        null=True,
                    ),
                ),
                (
                    "next_days",
                    models.PositiveIntegerField(
                        blank=True,
                        editable=False,
                        help_text="Fewer days that wait; empty: no change waits.",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name": "retention rule",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("agent_id",), name="retention_one_rule", nulls_distinct=False
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("days__gt", 0)), name="retention_days"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("effective_at__isnull", True), ("next_days__isnull", True)),
                            models.Q(("effective_at__isnull", False), ("next_days__gt", 0)),
                            _connector="OR",
                        ),
                        name="retention_next_days",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MessageErasure",
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
                    "agent_id",
                    models.UUIDField(help_text="The agent that forgets it.", verbose_name="agent"),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user whose conversation it is.", verbose_name="user"
                    ),
                ),
                (
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "message_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The message; none: the whole conversation.",
                        null=True,
                        verbose_name="message",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, db_default="", default="", help_text="Reason."),
                ),
                ("requested_by", models.TextField(help_text="Who asked for it.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was requested.",
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
                (
                    "receipt",
                    models.JSONField(
                        blank=True,
                        help_text="How much was removed from where, with digests of the ids.",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name": "erasure of messages",
                "verbose_name_plural": "erasures of messages",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("done_at__isnull", True)),
                        fields=("agent_id", "user_id", "thread_id", "message_id"),
                        name="message_erasure_one_open",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ErasedId",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "digest",
                    models.TextField(
                        help_text="A keyed digest of the id, as in receipts.",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
            ],
            options={
                "verbose_name": "erased id",
            },
        ),
        *protect_tables(PRIVILEGES),
        CommentOnTables(
            tables={
                "AccessEvent": "Who did what with what of a tenant, when and from where. Append-only.",
                "ErasedId": "The pseudonym of an erased user's id: the access log has it instead of the id.",
                "ErasureRequest": "That a person is to be forgotten. Only the owner's process can do it, and notes what it did.",
                "MessageErasure": "That one message, or a conversation, is to be erased. As ErasureRequest, but of no person.",
                "RetentionRule": "How long conversations are kept: of one agent, or of all that have no rule of their own.",
            },
        ),
    ]
