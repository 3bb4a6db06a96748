"""Agents, and the outbox of replies, behind the tenant's policy.

An agent is not deleted: its memory would be nobody's. The outbox is worked off, so its rows are.
"""

import uuid

import django.contrib.postgres.functions
import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

from tenants.operations.policies import ForceRowLevelSecurity, GrantToApp
from tenants.postgresql.expressions import CurrentTenant

UUID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


def tenant_id():
    return models.UUIDField(db_default=CurrentTenant(), editable=False)


def text(help_text):
    return models.TextField(blank=True, db_default="", default="", help_text=help_text)


def server_time(**options):
    now = models.Func(function="now", output_field=models.DateTimeField())
    return models.DateTimeField(db_default=now, **options)


class Migration(migrations.Migration):
    initial = True

    dependencies = [("memory", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Agent",
            fields=[
                ("tenant_id", tenant_id()),
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
                    "name",
                    models.CharField(
                        help_text="How programs and people call it. Unique in the tenant, and not "
                        "a UUID.",
                        max_length=120,
                        validators=[django.core.validators.ProhibitNullCharactersValidator()],
                    ),
                ),
                ("system_prompt", text("What it is for and how it works. Opens every prompt.")),
                ("identity", text("Who it is: “You are Ada, the librarian …”")),
                ("persona", text("How it speaks: tone, language, manners.")),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Model name for the LLM pool. Blank: LLM_MODEL, or the pool "
                        "decides by tier.",
                        max_length=200,
                    ),
                ),
                (
                    "model_tier",
                    models.CharField(
                        choices=[("fast", "Fast"), ("reasoning", "Reasoning")],
                        db_default="fast",
                        default="fast",
                        help_text="fast: short contexts and low cost. reasoning: long contexts.",
                        max_length=20,
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
                    "recall_mode",
                    models.CharField(
                        choices=[
                            ("hybrid", "hybrid: meaning and words"),
                            ("vector", "vector: cosine similarity alone"),
                        ],
                        db_default="hybrid",
                        default="hybrid",
                        help_text="How it looks for memories.",
                        max_length=20,
                    ),
                ),
                (
                    "recall_top_k",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="At most this many memories go into a prompt, 1 to 100. Blank: "
                        "as measured (10).",
                        null=True,
                    ),
                ),
                (
                    "recall_gate",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Leave out what is probably beside the question, all of it if "
                        "need be.",
                    ),
                ),
                (
                    "recall_open_at",
                    models.FloatField(
                        blank=True,
                        help_text="With the gate: the best memory must be relevant with "
                        "this probability, 0 to 1, else none is given. Blank: as measured.",
                        null=True,
                    ),
                ),
                (
                    "recall_keep_at",
                    models.FloatField(
                        blank=True,
                        help_text="With the gate: each memory must be relevant with this "
                        "probability, 0 to 1. Blank: as measured.",
                        null=True,
                    ),
                ),
                (
                    "recall_neighbours",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Turns before and after a memory that are given along with it, 0 "
                        "to 10. Blank: as measured (0).",
                        null=True,
                    ),
                ),
                (
                    "recall_weights",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Weights of the ranking that differ from the measured ones, such "
                        'as {"time": 1}.',
                    ),
                ),
                ("created_at", server_time(editable=False, help_text="When it was made.")),
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
                        condition=models.Q(("name__iregex", UUID_PATTERN), _negated=True),
                        name="agent_name_is_no_id",
                        violation_error_message="This name reads as an id. Choose one that is not "
                        "a UUID.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("model_tier__in", ["fast", "reasoning"])),
                        name="agent_model_tier",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("recall_mode__in", ["hybrid", "vector"])),
                        name="agent_recall_mode",
                    ),
                ],
            },
        ),
        ForceRowLevelSecurity("orchestrator_agent"),
        GrantToApp("orchestrator_agent", "INSERT", "UPDATE"),
        migrations.CreateModel(
            name="PendingReply",
            fields=[
                ("tenant_id", tenant_id()),
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="pending_reply",
                        serialize=False,
                        to="memory.message",
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="How often it has failed."
                    ),
                ),
                ("last_error", text("Why it failed last.")),
                ("due_at", server_time(help_text="From when on it may be tried (again).")),
                ("ring_at", server_time(help_text="When the sweeper rings for a worker (again).")),
                (
                    "failed_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it was given up; empty while it is still tried.",
                        null=True,
                    ),
                ),
                ("created_at", server_time(help_text="When it was accepted.")),
            ],
            options={
                "verbose_name": "pending reply",
                "verbose_name_plural": "pending replies",
                "indexes": [
                    models.Index(
                        condition=models.Q(("failed_at__isnull", True)),
                        fields=["ring_at"],
                        name="pending_reply_ring",
                    )
                ],
            },
        ),
        ForceRowLevelSecurity("orchestrator_pendingreply"),
        GrantToApp("orchestrator_pendingreply", "INSERT", "UPDATE", "DELETE"),
    ]
