"""Escalations to another agent: whom a thread is handed to, by which rules, and how it ended.

Columns come with a default of the database's, so that nothing is rewritten and code from before
goes on writing its rows. The wider constraint is not checked against the rows here, which would
hold the table's lock: the next migration does that.
"""

import django.contrib.postgres.fields
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

from tenants.operations.policies import GrantToApp


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0013_say_which_agent_answered"),
        ("orchestrator", "0003_name_why_replies_fail"),
    ]

    operations = [
        migrations.AddField(
            "Agent",
            "hands_to",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.UUIDField(),
                blank=True,
                db_default=models.Value(
                    [],
                    output_field=django.contrib.postgres.fields.ArrayField(models.UUIDField()),
                ),
                default=list,
                help_text="Agents to which its language model may hand a conversation, by the tool"
                " hand_to_agent.",
                size=None,
            ),
        ),
        migrations.AddField(
            "Agent",
            "hand_over_on",
            models.JSONField(
                blank=True,
                db_default=models.Value({}, output_field=models.JSONField()),
                default=dict,
                help_text="Words or phrases with which a message is for another agent, each with"
                ' that agent\'s id: {"invoice": "0b6ef0bd-…"}.',
            ),
        ),
        migrations.AddField(
            "Agent",
            "hand_back_on",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                blank=True,
                db_default=models.Value(
                    [],
                    output_field=django.contrib.postgres.fields.ArrayField(models.TextField()),
                ),
                default=list,
                help_text="Words or phrases with which a conversation that was handed to it goes"
                " back to the agent before.",
                size=None,
            ),
        ),
        migrations.AddField(
            "Escalation",
            "to_agent_id",
            models.UUIDField(
                blank=True,
                help_text="The agent that answers instead; empty where a person answers.",
                null=True,
                verbose_name="to agent",
            ),
        ),
        migrations.AddField(
            "Escalation",
            "from_agent_id",
            models.UUIDField(
                blank=True,
                help_text="The agent that answered before, to which a handover can be handed back.",
                null=True,
                verbose_name="from agent",
            ),
        ),
        migrations.AddField(
            "Escalation",
            "outcome",
            models.TextField(
                blank=True,
                choices=[
                    ("", "open, or resolved before outcomes were kept"),
                    ("resolved", "resolved: the thread's own agent answers again"),
                    ("handed_on", "handed on to an agent"),
                    ("handed_back", "handed back to the agent before"),
                    ("to_person", "a person was asked for"),
                ],
                db_default="",
                default="",
                help_text="How it ended: resolved, handed on, handed back, or a person was asked"
                " for.",
            ),
        ),
        migrations.AlterField(
            "Escalation",
            "opened_by",
            models.TextField(
                choices=[
                    ("user", "the user asked for it"),
                    ("rule", "a rule of the agent's"),
                    ("agent", "an agent's language model"),
                    ("program", "a program"),
                    ("person", "a person in the admin"),
                ],
                help_text="On whose account.",
            ),
        ),
        migrations.AlterField(
            "Escalation",
            "resolved_at",
            models.DateTimeField(
                blank=True, help_text="Until when; empty while it is open.", null=True
            ),
        ),
        migrations.AddField(
            "ToolCall",
            "asked_by_id",
            models.UUIDField(
                blank=True,
                help_text="The agent that asked for it, where the thread was handed to another than"
                " its own; what it does is done for that agent.",
                null=True,
                verbose_name="asked by",
            ),
        ),
        GrantToApp("orchestrator_escalation", "UPDATE (outcome)"),
        migrations.RemoveConstraint("Escalation", "escalation_opened_by"),
        # On the way back there is no such word: what a model asked for was a rule's doing.
        migrations.RunSQL(
            migrations.RunSQL.noop,
            "UPDATE orchestrator_escalation SET opened_by = 'rule' WHERE opened_by = 'agent'",
        ),
        AddConstraintNotValid(
            "Escalation",
            models.CheckConstraint(
                condition=models.Q(opened_by__in=["user", "rule", "agent", "program", "person"]),
                name="escalation_opened_by",
            ),
        ),
    ]
