"""Agents, their tools and teams, and the work on replies, each table with its policy and grants."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.core import validators
from django.core.serializers.json import DjangoJSONEncoder
from django.db import migrations, models
from django.db.models import deletion
from django.db.models.functions import Now

from tenants.fields import CurrentTenant
from tenants.operations import CommentOnTables, protect_tables

# What the application may do besides SELECT. A table with INSERT alone is append-only.
PRIVILEGES = {
    "orchestrator_agent": ["INSERT", "UPDATE"],
    "orchestrator_channelidentity": [
        "INSERT",
        "UPDATE (user_id, name, looked_up_at, linked_at, linked_by)",
    ],
    "orchestrator_escalation": [
        "INSERT",
        "UPDATE (resolved_at, resolved_by, note, outcome, assigned_to)",
    ],
    "orchestrator_toolcall": ["INSERT", "UPDATE (state, decided_at, decided_by, done_at, result)"],
    "orchestrator_moveofpast": ["INSERT", "UPDATE (user_id, requested_by, last_error, done_at)"],
    "orchestrator_answeroptions": ["INSERT", "DELETE"],
    "orchestrator_extractioncursor": ["INSERT", "UPDATE", "DELETE"],
    "orchestrator_extractionrun": ["INSERT", "UPDATE"],
    "orchestrator_modelcall": ["INSERT", "UPDATE"],
    "orchestrator_dailyactivity": ["INSERT", "DELETE"],
    "orchestrator_dailyusage": ["INSERT", "UPDATE"],
    "orchestrator_agentversion": ["INSERT"],
    "orchestrator_savedquestion": ["INSERT", "UPDATE (content)", "DELETE"],
    "orchestrator_languagemodel": ["INSERT", "UPDATE", "DELETE"],
    "orchestrator_questionanswer": ["INSERT", "DELETE"],
    "orchestrator_historyimport": [
        "INSERT",
        "UPDATE (content, is_dry_run, report, finished_at, error)",
        "DELETE",
    ],
}

FORGET_ERASED_MESSAGES = """
ALTER TABLE orchestrator_modelcall ADD CONSTRAINT model_call_message
    FOREIGN KEY (message_id) REFERENCES memory_message (id) ON DELETE SET NULL
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("memory", "0001_initial"),
        # The view of pending replies is in the public schema.
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Agent",
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
                        help_text="The name for programs and people. Unique in the tenant, and not a UUID.",
                        max_length=120,
                        validators=[validators.ProhibitNullCharactersValidator()],
                    ),
                ),
                (
                    "system_prompt",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The agent's purpose and instructions. Every prompt begins with them.",
                    ),
                ),
                (
                    "identity",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The agent's identity: “You are Ada, the librarian …”",
                    ),
                ),
                (
                    "persona",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The agent's style: tone, language, manners.",
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Name of the language model for the deployment's server, and for language models of the tenant without a name of a model. Blank: the deployment's model of the tier.",
                        max_length=200,
                    ),
                ),
                (
                    "model_tier",
                    models.TextField(
                        choices=[("fast", "Fast"), ("reasoning", "Reasoning")],
                        db_default="fast",
                        default="fast",
                        help_text="fast: short contexts and low cost. reasoning: long contexts.",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="An inactive agent accepts no messages; its memory stays.",
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("en", "English"),
                            ("de", "German"),
                            ("es", "Spanish"),
                            ("fr", "French"),
                            ("pt", "Portuguese"),
                            ("pl", "Polish"),
                            ("tr", "Turkish"),
                            ("nl", "Dutch"),
                            ("it", "Italian"),
                            ("sv", "Swedish"),
                            ("da", "Danish"),
                            ("nb", "Norwegian Bokmal"),
                            ("fi", "Finnish"),
                            ("id", "Indonesian"),
                        ],
                        db_default="",
                        default="",
                        help_text="Language in which all Latin words of messages and questions are searched. Blank: that of the user, or else of each text, by its frequent words.",
                        max_length=2,
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Time zone of users without one of their own, such as Europe/Berlin, for times in prompts and the days of messages. Blank: UTC.",
                        max_length=64,
                    ),
                ),
                (
                    "recall_mode",
                    models.TextField(
                        choices=[
                            ("hybrid", "hybrid: meaning and words"),
                            ("vector", "vector: cosine similarity alone"),
                        ],
                        db_default="hybrid",
                        default="hybrid",
                        help_text="How the agent searches memories.",
                    ),
                ),
                (
                    "recall_top_k",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10).",
                        null=True,
                    ),
                ),
                (
                    "recall_gate",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Leave out memories that are probably irrelevant, all of them if necessary.",
                    ),
                ),
                (
                    "recall_open_at",
                    models.FloatField(
                        blank=True,
                        help_text="Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has at least this gate value. Blank: the preset's.",
                        null=True,
                    ),
                ),
                (
                    "recall_keep_at",
                    models.FloatField(
                        blank=True,
                        help_text="Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate value. Blank: the preset's.",
                        null=True,
                    ),
                ),
                (
                    "recall_neighbours",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Number of turns before and after a memory that are included with it, 0 to 10. Blank: as measured (0).",
                        null=True,
                    ),
                ),
                (
                    "recall_weights",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text='Weights of the ranking that differ from the measured ones, such as {"time": 1}.',
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=models.Func(function="now", output_field=models.DateTimeField()),
                        editable=False,
                        help_text="Time of creation.",
                    ),
                ),
                (
                    "escalate_after_failures",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Number of failed replies in a row in a thread after which a person is called. Blank: never.",
                        null=True,
                    ),
                ),
                (
                    "escalate_on",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="Words or phrases in a message that call for a person, in addition to plain requests such as “talk to a human”.",
                        size=None,
                    ),
                ),
                (
                    "tools",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="Tools that the agent may use. remember_fact stores a fact about the user, after the user consents.",
                        size=None,
                    ),
                ),
                (
                    "hands_to",
                    ArrayField(
                        base_field=models.UUIDField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.UUIDField(), size=None),
                        ),
                        default=list,
                        help_text="Agents to which the language model may hand a conversation, with the tool hand_to_agent.",
                        size=None,
                    ),
                ),
                (
                    "hand_over_on",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text='Words or phrases in a message that hand the conversation to another agent, each with that agent\'s id: {"invoice": "0b6ef0bd-…"}.',
                    ),
                ),
                (
                    "hand_back_on",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="Words or phrases in a message that return a conversation to the previous agent.",
                        size=None,
                    ),
                ),
                (
                    "language_models",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="Names of the tenant's language models that answer, in this order: the next one is called if one fails. None: the tenant's default models.",
                        size=None,
                    ),
                ),
                (
                    "reranker",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Name of the tenant's reranker, which sorts recalled memories. Blank: none.",
                        max_length=120,
                    ),
                ),
                (
                    "accepts_client_instructions",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Follow the system and developer messages that an application sends through OpenAI's interface, after the agent's own instructions. Those of a bound key are never followed.",
                        verbose_name="accepts instructions of applications",
                    ),
                ),
                (
                    "max_completion_tokens",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Maximum number of tokens in one answer of the language model. An application may ask for fewer. Blank: only the model's own limit.",
                        null=True,
                        verbose_name="most tokens of an answer",
                    ),
                ),
                (
                    "max_tokens_per_day",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="After this many tokens of replies in a day (UTC) the agent's replies fail. Blank: no limit.",
                        null=True,
                        verbose_name="maximum tokens of replies a day",
                    ),
                ),
                (
                    "conversation_pause_hours",
                    models.PositiveIntegerField(
                        db_default=12,
                        default=12,
                        help_text="After this many hours without a message, a new conversation begins: earlier turns are recalled, instead of being turns of the prompt.",
                    ),
                ),
                (
                    "extraction_batch_size",
                    models.PositiveSmallIntegerField(
                        db_default=40,
                        default=40,
                        help_text="Maximum number of messages in one request to the language model, 1 to 200. A conversation with this many new messages is processed at once.",
                    ),
                ),
                (
                    "extraction_idle_seconds",
                    models.PositiveIntegerField(
                        db_default=600,
                        default=600,
                        help_text="A conversation is idle after this many seconds without a message.",
                    ),
                ),
                (
                    "extraction_max_tokens_per_day",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Maximum number of tokens that extraction may use for this agent in a day (UTC). Blank: no limit.",
                        null=True,
                        verbose_name="maximum tokens for facts a day",
                    ),
                ),
                (
                    "extraction_model",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Model that extracts facts. Blank: the agent's model.",
                        max_length=200,
                    ),
                ),
                (
                    "extracts_facts",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Extract facts from idle conversations. The deployment must have a language model.",
                        verbose_name="extracts facts",
                    ),
                ),
                (
                    "fact_review",
                    models.TextField(
                        choices=[
                            ("none", "none: use all facts at once"),
                            (
                                "doubtful",
                                "doubtful: conflicts, conclusions, sensitive topics",
                            ),
                            ("all", "all"),
                        ],
                        db_default="doubtful",
                        default="doubtful",
                        help_text="Which extracted facts a person confirms before agents use them.",
                        verbose_name="review of facts",
                    ),
                ),
                (
                    "fact_review_by_slot",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text='Different rules for single slots, such as {"diet": "all", "hobby": "none"}.',
                        verbose_name="review by slot",
                    ),
                ),
                (
                    "recall_preset",
                    models.TextField(
                        choices=[
                            (
                                "precise",
                                "precise: fewer memories, fewer irrelevant ones",
                            ),
                            ("balanced", "balanced"),
                            (
                                "thorough",
                                "thorough: more memories, more irrelevant ones",
                            ),
                        ],
                        db_default="balanced",
                        default="balanced",
                        help_text="With the gate: how strict recall is. Choosing a preset clears the agent's own thresholds.",
                    ),
                ),
            ],
            options={
                "verbose_name": "agent",
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name",),
                        name="agent_name",
                        violation_error_message="This tenant has an agent of that name already.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "name__iregex",
                                "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
                            ),
                            _negated=True,
                        ),
                        name="agent_name_is_no_id",
                        violation_error_message="This name reads as an id. Choose one that is not a UUID.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("model_tier__in", ["fast", "reasoning"])),
                        name="agent_model_tier",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("recall_mode__in", ["hybrid", "vector"])),
                        name="agent_recall_mode",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("escalate_after_failures", 0), _negated=True),
                        name="agent_escalate_after_failures",
                        violation_error_message="escalate_after_failures: Give 1 or more, or leave it out.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_completion_tokens", 0), _negated=True),
                        name="agent_max_completion_tokens",
                        violation_error_message="max_completion_tokens: Give 1 or more, or leave it out.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("fact_review__in", ["none", "doubtful", "all"])),
                        name="agent_fact_review",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("extraction_batch_size__range", (1, 200))),
                        name="agent_extraction_batch_size",
                        violation_error_message="extraction_batch_size: Give 1 to 200.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("recall_preset__in", ["precise", "balanced", "thorough"])
                        ),
                        name="agent_recall_preset",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ChannelIdentity",
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
                ("channel", models.TextField(help_text="slack …")),
                (
                    "workspace",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The workspace in the channel, if the channel has workspaces.",
                    ),
                ),
                (
                    "native_id",
                    models.TextField(
                        help_text="The sender's id in the channel.", verbose_name="id"
                    ),
                ),
                (
                    "own_id",
                    models.TextField(
                        help_text="The identity's own user id; no other identity has the same.",
                        verbose_name="own user id",
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user that the identity belongs to.", verbose_name="user"
                    ),
                ),
                (
                    "name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The sender's name in the channel.",
                    ),
                ),
                (
                    "looked_up_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the channel was last asked for the name.",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="Time of the first message.",
                    ),
                ),
                (
                    "linked_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the identity was linked to another user.",
                        null=True,
                    ),
                ),
                (
                    "linked_by",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="The person who linked it."
                    ),
                ),
            ],
            options={
                "verbose_name": "identity",
                "verbose_name_plural": "identities",
                "ordering": ["-created_at"],
                "indexes": [
                    models.Index(fields=["user_id"], name="identity_user"),
                    models.Index(fields=["-created_at", "id"], name="identity_newest"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("channel", "workspace", "native_id"), name="identity_native"
                    ),
                    models.UniqueConstraint(fields=("own_id",), name="identity_own"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Escalation",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
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
                    "thread_id",
                    models.TextField(
                        help_text="The conversation's id in the channel.",
                        verbose_name="thread",
                    ),
                ),
                ("channel", models.TextField(help_text="The channel: rest, slack …")),
                (
                    "message_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The message that caused the escalation. Its reply announces that a person will answer.",
                        null=True,
                        verbose_name="message",
                    ),
                ),
                (
                    "opened_by",
                    models.TextField(
                        choices=[
                            ("user", "the user asked for it"),
                            ("rule", "a rule of the agent"),
                            ("agent", "an agent's language model"),
                            ("program", "a program"),
                            ("person", "a person in the admin"),
                        ],
                        help_text="What opened the escalation: the user, a rule, an agent, a program or a person.",
                    ),
                ),
                (
                    "opened_by_name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The name of the program or person.",
                    ),
                ),
                ("reason", models.TextField(help_text="The reason.")),
                (
                    "opened_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was opened.",
                    ),
                ),
                (
                    "resolved_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it was resolved; empty while it is open.",
                        null=True,
                    ),
                ),
                (
                    "resolved_by",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The person who resolved it.",
                    ),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Note on the outcome, for the record.",
                    ),
                ),
                (
                    "to_agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The agent that answers instead; empty if a person answers.",
                        null=True,
                        verbose_name="to agent",
                    ),
                ),
                (
                    "from_agent_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The previous agent, which can get the conversation back.",
                        null=True,
                        verbose_name="from agent",
                    ),
                ),
                (
                    "outcome",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("", "open, or resolved before outcomes were kept"),
                            ("resolved", "resolved: the thread's own agent answers again"),
                            ("handed_on", "handed on to an agent"),
                            ("handed_back", "handed back to the agent before"),
                            ("to_person", "a person was requested"),
                        ],
                        db_default="",
                        default="",
                        help_text="How it ended: resolved, handed on, handed back, or a person was requested.",
                    ),
                ),
                (
                    "assigned_to",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Username of the colleague to whom it is assigned; empty: unassigned.",
                    ),
                ),
            ],
            options={
                "verbose_name": "escalation",
                "ordering": ["-opened_at"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("resolved_at__isnull", True)),
                        fields=["thread_id"],
                        name="escalation_thread",
                    ),
                    models.Index(fields=["-opened_at", "id"], name="escalation_newest"),
                    models.Index(fields=["user_id", "-opened_at"], name="escalation_user"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("resolved_at__isnull", True)),
                        fields=("agent_id", "user_id", "thread_id"),
                        name="escalation_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("opened_by__in", ["user", "rule", "agent", "program", "person"])
                        ),
                        name="escalation_opened_by",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
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
                    "thread_id",
                    models.TextField(
                        help_text="The conversation of the message.", verbose_name="thread"
                    ),
                ),
                (
                    "round",
                    models.PositiveSmallIntegerField(
                        help_text="Index of the model's answer that requested it, from 0."
                    ),
                ),
                (
                    "position",
                    models.PositiveSmallIntegerField(
                        help_text="Index of the call in that answer, from 0."
                    ),
                ),
                ("call_id", models.TextField(help_text="Id of the call, from the language model.")),
                ("name", models.TextField(help_text="The tool.", verbose_name="tool")),
                (
                    "arguments",
                    models.JSONField(help_text="Arguments of the call, as requested."),
                ),
                (
                    "question",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="The question to the user."
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("waiting", "waits for consent"),
                            ("with_program", "waits for the program that has the tool"),
                            ("approved", "approved, not yet executed"),
                            ("denied", "denied"),
                            ("expired", "no answer in time"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        help_text="State of the call.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was requested.",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        help_text="Deadline for the consent or the program's result."
                    ),
                ),
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
                        help_text="The author and the channel of the decision.",
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
                        help_text="The result that the language model received.",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The message that the agent answers.",
                        on_delete=deletion.PROTECT,
                        related_name="tool_calls",
                        to="memory.message",
                    ),
                ),
                (
                    "asked_by_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The agent that requested the call, if the thread was handed to another agent. The call is executed for that agent.",
                        null=True,
                        verbose_name="asked by",
                    ),
                ),
                (
                    "content",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The agent's text before the call; with the first call of an answer.",
                        verbose_name="text before",
                    ),
                ),
            ],
            options={
                "verbose_name": "tool call",
                "ordering": ["-created_at"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["expires_at"],
                        name="tool_call_overdue",
                    ),
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["thread_id"],
                        name="tool_call_thread",
                    ),
                    models.Index(fields=["-created_at", "id"], name="tool_call_newest"),
                    models.Index(fields=["user_id", "-created_at"], name="tool_call_user"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "round", "position"), name="tool_call_place"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "waiting",
                                    "with_program",
                                    "approved",
                                    "denied",
                                    "expired",
                                    "done",
                                    "failed",
                                ],
                            )
                        ),
                        name="tool_call_state",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HistoryMerge",
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
                    "from_user",
                    models.TextField(help_text="The user that the messages belonged to."),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user that the messages are moved to.", verbose_name="user"
                    ),
                ),
                ("requested_by", models.TextField(help_text="The person who linked the users.")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When the users were linked.",
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
                        help_text="Error of the last attempt.",
                    ),
                ),
                (
                    "done_at",
                    models.DateTimeField(blank=True, help_text="When it was done.", null=True),
                ),
            ],
            options={
                "verbose_name": "history merge",
                "indexes": [models.Index(fields=["user_id"], name="move_user")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("done_at__isnull", True)),
                        fields=("from_user",),
                        name="move_one_open",
                    )
                ],
                "db_table": "orchestrator_moveofpast",
            },
        ),
        migrations.CreateModel(
            name="PendingReply",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "message",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=deletion.PROTECT,
                        primary_key=True,
                        related_name="pending_reply",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Number of attempts."
                    ),
                ),
                (
                    "begun_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Start of the current attempt. Empty: no attempt is running.",
                        null=True,
                    ),
                ),
                (
                    "error_code",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Code of the last error.",
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Text of the last error."
                    ),
                ),
                (
                    "due_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="Earliest time of the next attempt.",
                    ),
                ),
                (
                    "sweep_at",
                    models.DateTimeField(
                        blank=True,
                        db_default=Now(),
                        help_text="Earliest time at which a worker may claim it. Empty: it waits for a person.",
                        null=True,
                    ),
                ),
                (
                    "failed_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it failed for good. Empty: it is still retried.",
                        null=True,
                    ),
                ),
                (
                    "held_for",
                    models.TextField(
                        blank=True,
                        choices=[
                            ("", "not held"),
                            ("person", "a person, who answers in this thread"),
                            ("consent", "the user's consent to a tool call"),
                        ],
                        db_default="",
                        default="",
                        help_text="Why the reply waits: for a person, or for the user's consent. Empty: it does not wait.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was enqueued.",
                    ),
                ),
            ],
            options={
                "verbose_name": "pending reply",
                "verbose_name_plural": "pending replies",
                "db_table": "orchestrator_pendingreply",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="AnswerOptions",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "message",
                    models.OneToOneField(
                        help_text="The message that is to be answered.",
                        on_delete=deletion.PROTECT,
                        primary_key=True,
                        related_name="answer_options",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                (
                    "options",
                    models.JSONField(
                        help_text="By the names of OpenAI's API: tools, response_format, temperature, max_tokens …"
                    ),
                ),
                (
                    "instructions",
                    ArrayField(
                        base_field=models.TextField(),
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="The program's system and developer messages, in their order.",
                        size=None,
                    ),
                ),
                (
                    "history",
                    models.JSONField(
                        help_text="The turns of the prompt, as the program sent them. Null: those of the window.",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name": "answer options",
                "verbose_name_plural": "answer options",
            },
        ),
        migrations.CreateModel(
            name="ExtractionCursor",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
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
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "last_number",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of the last message that was processed.",
                    ),
                ),
                (
                    "processed_at",
                    models.DateTimeField(
                        blank=True, help_text="When the last run ended.", null=True
                    ),
                ),
            ],
            options={
                "verbose_name": "extraction",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user_id", "agent_id", "thread_id"), name="extraction_cursor_thread"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ExtractionRun",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "agent_id",
                    models.UUIDField(
                        help_text="The agent that this memory belongs to.", verbose_name="agent"
                    ),
                ),
                (
                    "user_id",
                    models.TextField(
                        help_text="The user's id in the channel, such as a Slack user id.",
                        verbose_name="user",
                    ),
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
                    "thread_id",
                    models.TextField(help_text="The conversation.", verbose_name="thread"),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("running", "running"),
                            ("preview", "preview"),
                            ("applied", "applied"),
                            ("failed", "failed"),
                            ("rolled_back", "rolled back"),
                        ],
                        db_default="running",
                        default="running",
                        help_text="A preview changes no facts.",
                    ),
                ),
                (
                    "message_ids",
                    ArrayField(
                        base_field=models.UUIDField(),
                        help_text="The messages that were processed, in their order.",
                        size=None,
                    ),
                ),
                (
                    "replay_of",
                    models.UUIDField(
                        blank=True,
                        help_text="The run that this one replays.",
                        null=True,
                    ),
                ),
                (
                    "requested_by",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The person or key that requested it. Empty: the platform.",
                    ),
                ),
                (
                    "model",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The language model.",
                    ),
                ),
                (
                    "endpoint",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Host and port of the language model's server.",
                    ),
                ),
                (
                    "response_format",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="json_schema, json_object or text: what the endpoint supports.",
                    ),
                ),
                (
                    "prompt_digest",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="SHA-256 of the instructions.",
                    ),
                ),
                (
                    "output",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The answer of the model, verbatim.",
                    ),
                ),
                (
                    "prompt_tokens",
                    models.PositiveIntegerField(db_default=0, default=0, help_text="Tokens sent."),
                ),
                (
                    "completion_tokens",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Tokens received."
                    ),
                ),
                (
                    "cost",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="Cost, by the prices of the language models at that time.",
                        max_digits=12,
                    ),
                ),
                (
                    "result",
                    models.JSONField(
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="Counts: proposed, active, confirmed, superseded, and refused by reason.",
                    ),
                ),
                (
                    "candidates",
                    models.JSONField(
                        db_default=models.Value([], output_field=models.JSONField()),
                        default=list,
                        help_text="Each candidate with its outcome and the fact that it led to.",
                    ),
                ),
                (
                    "error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why it failed."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="Time of the first message.",
                    ),
                ),
                (
                    "ended_at",
                    models.DateTimeField(blank=True, help_text="When it ended.", null=True),
                ),
            ],
            options={
                "verbose_name": "extraction run",
                "indexes": [
                    models.Index(fields=["-created_at", "id"], name="extraction_run_newest"),
                    models.Index(fields=["user_id", "-created_at"], name="extraction_run_user"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                ["running", "preview", "applied", "failed", "rolled_back"],
                            )
                        ),
                        name="extraction_run_state",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelCall",
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
                        blank=True, help_text="The agent.", null=True, verbose_name="agent"
                    ),
                ),
                (
                    "agent_version",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Number of the agent's version that answered. Empty: it has none, or no reply was asked for.",
                        null=True,
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        help_text="The message that the call answers. Empty: none, or it was erased.",
                        null=True,
                        on_delete=deletion.DO_NOTHING,
                        related_name="model_calls",
                        to="memory.message",
                    ),
                ),
                (
                    "purpose",
                    models.TextField(help_text="Purpose of the call, such as reply or extraction."),
                ),
                (
                    "model",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="The language model."
                    ),
                ),
                (
                    "language_model",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Name of the tenant's language model. Empty: the deployment's.",
                    ),
                ),
                (
                    "endpoint",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Host and port of the language model's server.",
                    ),
                ),
                (
                    "outcome",
                    models.TextField(
                        blank=True,
                        choices=[("", "unknown"), ("done", "done"), ("failed", "failed")],
                        db_default="",
                        default="",
                        help_text="Empty: the process ended before the answer came.",
                    ),
                ),
                (
                    "error",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The reason of a failure.",
                        verbose_name="reason",
                    ),
                ),
                (
                    "prompt_tokens",
                    models.PositiveIntegerField(db_default=0, default=0, help_text="Tokens sent."),
                ),
                (
                    "completion_tokens",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Tokens received."
                    ),
                ),
                (
                    "prompt_price",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="Price of a million tokens sent.",
                        max_digits=12,
                    ),
                ),
                (
                    "completion_price",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="Price of a million tokens received.",
                        max_digits=12,
                    ),
                ),
                (
                    "cost",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="Cost of the tokens, by these prices.",
                        max_digits=12,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was sent.",
                    ),
                ),
                (
                    "requests",
                    models.PositiveSmallIntegerField(
                        db_default=1,
                        default=1,
                        help_text="HTTP requests that were sent: a failed one is repeated up to twice.",
                    ),
                ),
            ],
            options={
                "verbose_name": "call of a language model",
                "verbose_name_plural": "calls of language models",
                "indexes": [
                    models.Index(
                        fields=["created_at", "agent_id"],
                        include=("tenant_id",),
                        name="model_call_time",
                    ),
                    models.Index(
                        fields=["created_at"],
                        condition=models.Q(outcome=""),
                        name="model_call_unknown",
                    ),
                    models.Index(
                        fields=["message", "created_at"],
                        condition=models.Q(("message__isnull", False)),
                        name="model_call_of_message",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", ["", "done", "failed"])),
                        name="model_call_outcome",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyUsage",
            fields=[
                (
                    "tenant_id",
                    models.UUIDField(db_default=CurrentTenant(), editable=False),
                ),
                (
                    "day",
                    models.DateField(help_text="The day (UTC).", primary_key=True, serialize=False),
                ),
                (
                    "messages",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Messages of users that were accepted."
                    ),
                ),
                (
                    "replies",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Replies of agents that were written."
                    ),
                ),
                (
                    "memories",
                    models.PositiveBigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Messages, replies, imported turns and facts, together.",
                    ),
                ),
                (
                    "calls",
                    models.PositiveBigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Calls of language models with a known outcome.",
                    ),
                ),
                (
                    "failed",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Calls of language models that failed."
                    ),
                ),
                (
                    "prompt_tokens",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Tokens sent."
                    ),
                ),
                (
                    "completion_tokens",
                    models.PositiveBigIntegerField(
                        db_default=0, default=0, help_text="Tokens received."
                    ),
                ),
                (
                    "cost",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="Cost, by the prices of the language models at that time.",
                        max_digits=18,
                    ),
                ),
            ],
            options={
                "verbose_name": "usage by day",
                "verbose_name_plural": "usage by day",
            },
        ),
        migrations.CreateModel(
            name="DailyActivity",
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
                ("day", models.DateField(help_text="The day (UTC).")),
                (
                    "agent_id",
                    models.UUIDField(
                        blank=True, help_text="The agent.", null=True, verbose_name="agent"
                    ),
                ),
                (
                    "channel",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="The channel."
                    ),
                ),
                (
                    "messages",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Users' messages."
                    ),
                ),
                (
                    "replies",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Replies of agents that have a recall event.",
                    ),
                ),
                (
                    "from_facts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Replies with facts in their prompt."
                    ),
                ),
                (
                    "from_memories",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Replies with recalled messages and without facts.",
                    ),
                ),
                (
                    "from_turns",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Replies with recent turns alone."
                    ),
                ),
                (
                    "from_nothing",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Replies without any of them."
                    ),
                ),
                (
                    "prompt_tokens",
                    models.PositiveBigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Tokens sent, as the language model reported them.",
                    ),
                ),
                (
                    "completion_tokens",
                    models.PositiveBigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Tokens received, as the language model reported them.",
                    ),
                ),
                (
                    "reply_times",
                    ArrayField(
                        base_field=models.PositiveIntegerField(),
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(
                                base_field=models.PositiveIntegerField(), size=None
                            ),
                        ),
                        default=list,
                        help_text="Numbers of replies by their time: activity.py has the limits.",
                        size=None,
                    ),
                ),
            ],
            options={
                "verbose_name": "daily activity",
                "verbose_name_plural": "daily activity",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "agent_id", "channel"),
                        name="daily_activity_day",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AgentVersion",
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
                ("agent_id", models.UUIDField(help_text="The agent.", verbose_name="agent")),
                (
                    "number",
                    models.PositiveIntegerField(help_text="1 for the first version of the agent."),
                ),
                (
                    "settings",
                    models.JSONField(
                        help_text="All settings of the agent, by the names of its columns."
                    ),
                ),
                (
                    "changed",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="Names of the settings that differ from the version before.",
                        size=None,
                    ),
                ),
                (
                    "restores",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Number of the version that this one restores.",
                        null=True,
                    ),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The author's note on the change.",
                    ),
                ),
                (
                    "author",
                    models.TextField(
                        help_text="Kind and id of the author, such as person:7; system: for the platform."
                    ),
                ),
                (
                    "author_name",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Name of the author at that time.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When the agent changed.",
                    ),
                ),
            ],
            options={
                "verbose_name": "version of an agent",
                "verbose_name_plural": "versions of agents",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("agent_id", "number"), name="agent_version_number"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedQuestion",
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
                    models.UUIDField(help_text="The agent that is asked.", verbose_name="agent"),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        help_text="The person who asks. Empty: none.",
                        null=True,
                        verbose_name="person",
                    ),
                ),
                ("content", models.TextField(help_text="The message.", verbose_name="question")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was saved.",
                    ),
                ),
            ],
            options={
                "verbose_name": "saved question",
                "indexes": [
                    models.Index(fields=["agent_id", "created_at"], name="saved_question_agent")
                ],
            },
        ),
        migrations.CreateModel(
            name="QuestionAnswer",
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
                    models.UUIDField(help_text="The agent that answered.", verbose_name="agent"),
                ),
                (
                    "user_id",
                    models.TextField(
                        blank=True,
                        help_text="The person who asks. Empty: none.",
                        null=True,
                        verbose_name="person",
                    ),
                ),
                (
                    "version",
                    models.PositiveIntegerField(
                        help_text="Number of the agent's version. 0: before its first version."
                    ),
                ),
                (
                    "content",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The answer; may be empty.",
                        verbose_name="answer",
                    ),
                ),
                (
                    "steps",
                    ArrayField(
                        base_field=models.TextField(),
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.TextField(), size=None),
                        ),
                        default=list,
                        help_text="The decision and its reason.",
                        size=None,
                    ),
                ),
                (
                    "problem",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why there is no answer."
                    ),
                ),
                (
                    "message_ids",
                    ArrayField(
                        base_field=models.UUIDField(),
                        db_default=models.Value(
                            [],
                            output_field=ArrayField(base_field=models.UUIDField(), size=None),
                        ),
                        default=list,
                        help_text="The messages in the prompt: recalled ones and recent turns.",
                        size=None,
                    ),
                ),
                (
                    "source_count",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Recalled messages and facts in the prompt.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was answered.",
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The question.",
                        on_delete=deletion.CASCADE,
                        related_name="answers",
                        to="orchestrator.savedquestion",
                    ),
                ),
            ],
            options={
                "verbose_name": "answer to a saved question",
                "verbose_name_plural": "answers to saved questions",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("question", "version"), name="question_answer_version"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HistoryImport",
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
                    "created_at",
                    models.DateTimeField(db_default=Now(), help_text="When the file was sent."),
                ),
                ("file_name", models.TextField(help_text="Name of the file.", verbose_name="file")),
                ("content", models.BinaryField(help_text="The file, until it is imported.")),
                (
                    "options",
                    models.JSONField(
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="How it is read, and who is who in it.",
                    ),
                ),
                (
                    "is_dry_run",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Whether nothing is stored.",
                        verbose_name="preview",
                    ),
                ),
                (
                    "requested_by",
                    models.TextField(help_text="Name of the person or the API key."),
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
                        editable=False,
                        help_text="Kind of the actor.",
                    ),
                ),
                ("actor_id", models.TextField(editable=False, help_text="Id of the actor.")),
                (
                    "report",
                    models.JSONField(
                        blank=True,
                        encoder=DjangoJSONEncoder,
                        help_text="Conversations, authors, and what is left out.",
                        null=True,
                    ),
                ),
                (
                    "finished_at",
                    models.DateTimeField(
                        blank=True, help_text="When the preview or the import ended.", null=True
                    ),
                ),
                (
                    "error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Why it failed."
                    ),
                ),
            ],
            options={
                "verbose_name": "history import",
            },
        ),
        migrations.CreateModel(
            name="LanguageModel",
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
                        help_text="The name by which agents refer to it. Unique in the tenant.",
                        max_length=120,
                        validators=[
                            validators.ProhibitNullCharactersValidator(),
                            validators.RegexValidator("^\\S(.*\\S)?$"),
                        ],
                    ),
                ),
                (
                    "kind",
                    models.TextField(
                        choices=[
                            (
                                "language_model",
                                "language model: answers and extracts facts",
                            ),
                            ("reranker", "reranker: sorts recalled memories"),
                        ],
                        db_default="language_model",
                        default="language_model",
                        help_text="A reranker sorts the memories of agents that name it. Its server is asked at /rerank below the address.",
                    ),
                ),
                (
                    "endpoint",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Address of an OpenAI-compatible server, such as https://api.example.com/v1, or of a pool. Blank: the deployment's server, with its key and its prices.",
                        max_length=2000,
                        verbose_name="address",
                    ),
                ),
                (
                    "secret_key",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="The key, encrypted.",
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Name of the model for the server. Blank: the agent's model, or else its tier.",
                        max_length=200,
                        validators=[validators.ProhibitNullCharactersValidator()],
                    ),
                ),
                (
                    "prompt_price",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="Price of a million input tokens.",
                        max_digits=12,
                        validators=[validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "completion_price",
                    models.DecimalField(
                        db_default=0,
                        decimal_places=6,
                        default=0,
                        help_text="Price of a million output tokens.",
                        max_digits=12,
                        validators=[validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "timeout_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a next one gets at most half of the time that is left. Blank: LLM_TIMEOUT.",
                        null=True,
                    ),
                ),
                (
                    "max_tokens_per_day",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="After this many tokens of a day (UTC) the next model is called. Blank: no limit.",
                        null=True,
                        verbose_name="maximum tokens a day",
                    ),
                ),
                (
                    "position",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Place among the models of agents without own ones, lowest first. Blank: it is only for agents that name it.",
                        null=True,
                    ),
                ),
                (
                    "min_score",
                    models.FloatField(
                        blank=True,
                        help_text="Of a reranker: memories with a lower score are left out. Blank: none are.",
                        null=True,
                        verbose_name="minimum score",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Whether it is called.",
                        verbose_name="active",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(), editable=False, help_text="Time of creation."
                    ),
                ),
            ],
            options={
                "verbose_name": "language model",
                "ordering": ["position", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name",),
                        name="language_model_name",
                        violation_error_message="This tenant has a language model of that name already.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind", "language_model"),
                            models.Q(
                                ("kind", "reranker"),
                                ("position", None),
                                models.Q(("endpoint", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="language_model_kind",
                        violation_error_message="A reranker has an address and no position.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("timeout_seconds__gt", 0), ("timeout_seconds", None), _connector="OR"
                        ),
                        name="language_model_timeout",
                        violation_error_message="timeout_seconds: Give 1 or more, or leave it out.",
                    ),
                ],
            },
        ),
        migrations.RunSQL(FORGET_ERASED_MESSAGES, migrations.RunSQL.noop),
        *protect_tables(PRIVILEGES),
        CommentOnTables(
            tables={
                "Agent": "An AI agent of a tenant: its identity, language model and memory settings.",
                "AgentVersion": "The settings of an agent after a change. Never changed.",
                "AnswerOptions": "Options for the answer, given by the program that sent the message; kept until the answer.",
                "ChannelIdentity": "An account of a channel, and the user that owns its memory.",
                "DailyActivity": "Counts of one ended day (UTC), agent and channel.",
                "Escalation": "A period in which a person or another agent answers in a thread.",
                "ExtractionCursor": "The last message of a conversation from which facts were extracted.",
                "ExtractionRun": "One request for the facts of a part of a conversation, with its answer and its result.",
                "HistoryImport": "A file with history of another system: its options, its preview and its import.",
                "HistoryMerge": "A request to move the memory of one user to another. The owner's process does it.",
                "DailyUsage": "Counts of one day (UTC).",
                "LanguageModel": "A language model of the tenant: its server, key, prices and limits.",
                "ModelCall": "A request to a language model, recorded before it is sent.",
                "QuestionAnswer": "An agent's answer to a saved question, by one version of the agent.",
                "SavedQuestion": "A question that an agent is asked again after each change.",
                "ToolCall": "A tool call that an agent requested while it answered a message.",
            },
        ),
    ]
