"""The access log, erasures, retention and exports of lists, each table with its policy and grants."""

import uuid

import django.db.models.deletion
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models
from django.db.models.functions import Now

from tenants.fields import CurrentTenant
from tenants.operations import CommentOnTables, protect_tables

# What the application may do besides SELECT. A table with INSERT alone is append-only.
PRIVILEGES = {
    "audit_accessevent": ["INSERT"],
    "audit_erasurerequest": ["INSERT"],
    "audit_retentionrule": ["INSERT", "UPDATE", "DELETE"],
    "audit_messageerasure": ["INSERT"],
    # A lock of a row needs a privilege to update it.
    "audit_person": [
        "INSERT",
        "UPDATE (erasures, time_zone, channel_time_zone, chosen_name, language, metadata)",
    ],
    "audit_listexport": ["INSERT", "UPDATE", "DELETE"],
    "audit_listexportpart": ["INSERT", "DELETE"],
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
                    models.DateTimeField(db_default=Now(), help_text="Time of the event."),
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
                        help_text="Kind of the actor.",
                    ),
                ),
                ("actor_id", models.TextField(help_text="Id of the person, or of the API key.")),
                ("actor", models.TextField(help_text="Name of the actor at that time.")),
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
                            ("unlink", "unlinked"),
                            ("login", "logged in"),
                            ("logout", "logged out"),
                            ("login_failed", "failed to log in"),
                            ("refuse", "was refused"),
                        ],
                        help_text="The action.",
                    ),
                ),
                (
                    "subject",
                    models.TextField(
                        help_text="Type of the object: conversation, memories, fact, API key …"
                    ),
                ),
                (
                    "subject_id",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Id of the object, if the action had a single one.",
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The agent, if the action concerned a single one.",
                        null=True,
                        verbose_name="agent",
                    ),
                ),
                (
                    "pseudonym",
                    models.UUIDField(
                        blank=True,
                        help_text="Pseudonym of the person, if the action concerned a single one.",
                        null=True,
                    ),
                ),
                (
                    "pseudonyms",
                    ArrayField(
                        base_field=models.UUIDField(),
                        blank=True,
                        help_text="Pseudonyms of the people that were shown, at most 200.",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "people_count",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="The number of people that were shown.",
                        null=True,
                        verbose_name="people shown",
                    ),
                ),
                (
                    "detail",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="Numbers and words of the action; for a change, the values before and after. Texts are left out.",
                    ),
                ),
                (
                    "request_id",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Id of the request, as in its log lines, if it is a UUID.",
                    ),
                ),
                (
                    "address",
                    models.GenericIPAddressField(
                        blank=True, help_text="IP address of the client.", null=True
                    ),
                ),
            ],
            options={
                "verbose_name": "access",
                "verbose_name_plural": "access log",
                "permissions": [
                    ("recall_memories", "Can search memories as an agent would"),
                    ("search_everyone", "Can search the messages of all people"),
                    ("export_person", "Can export all data of a person"),
                    ("try_agent", "Can try an agent without storing anything"),
                    ("clear_session", "Can clear sessions of graphs"),
                    ("export_list", "Can export the rows of lists as CSV"),
                ],
                "indexes": [
                    models.Index(fields=["pseudonym", "-id"], name="access_of_person"),
                    models.Index(
                        fields=["-id"],
                        name="access_of_people",
                        condition=models.Q(("pseudonyms__isnull", False)),
                    ),
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
                        help_text="Id of the person to erase. After the erasure, a keyed digest of the id.",
                        verbose_name="user",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, db_default="", default="", help_text="Reason."),
                ),
                (
                    "requested_by",
                    models.TextField(help_text="The person or key that requested it."),
                ),
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
                        help_text="Number of removed rows by table, and the rows that were found left.",
                        null=True,
                    ),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The agent to erase the person from. Empty: all agents.",
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
                        help_text="Graph sessions of the user that the transcript does not name.",
                        size=None,
                    ),
                ),
                (
                    "progress",
                    models.JSONField(
                        blank=True,
                        editable=False,
                        help_text="While it runs: the step, and the rows left to remove.",
                        null=True,
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Error of the last attempt.",
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
                        help_text="All linked ids of the person when the erasure began. After the erasure, digests.",
                        size=None,
                    ),
                ),
                (
                    "by_bound_key",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="Requested by a key that is bound to an agent or a user.",
                    ),
                ),
                (
                    "all_replies",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="All replies to others that were written with this person's words are erased.",
                        verbose_name="erase all replies to others",
                    ),
                ),
                (
                    "reply_ids",
                    ArrayField(
                        base_field=models.UUIDField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.UUIDField(), size=None),
                        ),
                        default=list,
                        help_text="The replies to others that are erased; the others are kept.",
                        size=None,
                        verbose_name="erased replies to others",
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
                        help_text="The agent. Empty: all agents without a rule.",
                        null=True,
                        verbose_name="agent",
                    ),
                ),
                (
                    "days",
                    models.PositiveIntegerField(help_text="Older messages are removed every hour."),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="Time of creation.",
                    ),
                ),
                (
                    "effective_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When the new period takes effect.",
                        null=True,
                    ),
                ),
                (
                    "next_days",
                    models.PositiveIntegerField(
                        blank=True,
                        editable=False,
                        help_text="New, shorter period that has not taken effect yet. Empty: no change is pending.",
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
                    models.UUIDField(
                        help_text="The agent of the conversation.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user of the conversation.", verbose_name="user"
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
                        help_text="The message. Empty: the whole conversation.",
                        null=True,
                        verbose_name="message",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, db_default="", default="", help_text="Reason."),
                ),
                (
                    "requested_by",
                    models.TextField(help_text="The person or key that requested it."),
                ),
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
                        help_text="Error of the last attempt.",
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
                        help_text="Number of removed rows by table, with digests of the ids.",
                        null=True,
                    ),
                ),
                (
                    "reply_ids",
                    ArrayField(
                        base_field=models.UUIDField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.UUIDField(), size=None),
                        ),
                        default=list,
                        help_text="Replies that quote the message, erased with it.",
                        size=None,
                        verbose_name="erased quotations",
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
            name="Person",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="Id of the user.",
                        primary_key=True,
                        serialize=False,
                        verbose_name="user",
                    ),
                ),
                (
                    "pseudonym",
                    models.UUIDField(
                        db_default=RandomUUID(),
                        editable=False,
                        help_text="Random id of the user in the access log. It is deleted with this row.",
                        unique=True,
                    ),
                ),
                (
                    "time_zone",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The time zone that was chosen for the user, such as Asia/Tokyo.",
                    ),
                ),
                (
                    "channel_time_zone",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The time zone that the channel reports, if none was chosen.",
                    ),
                ),
                (
                    "erasures",
                    models.PositiveIntegerField(
                        db_default=0,
                        editable=False,
                        help_text="Number of erasures of the user by one agent.",
                    ),
                ),
                (
                    "chosen_name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The name that a program set.",
                    ),
                ),
                (
                    "language",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The user's language, such as de or pt-BR, in which Latin words of messages and questions are searched, unless the agent has a language.",
                    ),
                ),
                (
                    "metadata",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="Metadata of programs.",
                    ),
                ),
            ],
            options={
                "verbose_name": "person",
                "verbose_name_plural": "people",
            },
        ),
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
                "AccessEvent": "An event of the access log: actor, action, subject, time and address. Append-only.",
                "ErasureRequest": "A request to erase a person. It stays as a receipt.",
                "ListExport": "An export of a list's rows: who asked for it, with which filters, and its progress.",
                "ListExportPart": "A part of the file of an export.",
                "MessageErasure": "A request to erase one message, or a conversation.",
                "Person": "A user with rows in the tenant, and the pseudonym by which the access log names them.",
                "RetentionRule": "The retention period of the conversations of one agent, or of all agents without a rule.",
            },
        ),
    ]
