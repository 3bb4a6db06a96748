"""Presets of the thresholds of recall. An agent with thresholds of its own keeps them."""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0021_notify_people"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="recall_preset",
            field=models.CharField(
                choices=[
                    ("precise", "precise: fewer memories, fewer that are beside the question"),
                    ("balanced", "balanced"),
                    ("thorough", "thorough: more memories, more that are beside the question"),
                ],
                db_default="balanced",
                default="balanced",
                help_text="With the gate: how sure recall must be. Choosing a preset clears the"
                " agent's own thresholds.",
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="agent",
            name="recall_keep_at",
            field=models.FloatField(
                blank=True,
                help_text="Own threshold instead of the preset's, 0 to 1: each memory must have"
                " this value of the gate. Blank: the preset's.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="agent",
            name="recall_open_at",
            field=models.FloatField(
                blank=True,
                help_text="Own threshold instead of the preset's, 0 to 1: the best memory must have"
                " this value of the gate, else none is given. Blank: the preset's.",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="agent",
            constraint=models.CheckConstraint(
                condition=models.Q(("recall_preset__in", ["precise", "balanced", "thorough"])),
                name="agent_recall_preset",
            ),
        ),
        CommentOnTables(
            {
                "Agent": "An AI agent of a tenant: who it is, which model speaks for it, and how it"
                " remembers.",
            }
        ),
    ]
