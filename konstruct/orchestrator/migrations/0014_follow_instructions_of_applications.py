"""Instructions of applications, and an agent's limits on what applications ask for.

Columns with constant defaults: no row is written anew, and code from before goes on.
"""

import django.contrib.postgres.fields
from django.db import migrations, models

from tenants.operations.comments import CommentOnTables


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0013_keep_what_is_said_before_calls")]

    operations = [
        migrations.AddField(
            "Agent",
            "accepts_client_instructions",
            models.BooleanField(
                db_default=True,
                default=True,
                help_text="Follow the system and developer messages that an application sends"
                " through OpenAI's interface, after the agent's own instructions. Those of a bound"
                " key are never followed.",
                verbose_name="accepts instructions of applications",
            ),
        ),
        migrations.AddField(
            "Agent",
            "max_completion_tokens",
            models.PositiveIntegerField(
                blank=True,
                help_text="Tokens that one answer of the language model may have. An application"
                " may ask for fewer. Blank: no limit but the model's own.",
                null=True,
                verbose_name="most tokens of an answer",
            ),
        ),
        migrations.AddConstraint(
            "Agent",
            models.CheckConstraint(
                condition=models.Q(("max_completion_tokens", 0), _negated=True),
                name="agent_max_completion_tokens",
                violation_error_message="max_completion_tokens: Give 1 or more, or leave it out.",
            ),
        ),
        migrations.AddField(
            "AnswerOptions",
            "instructions",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                db_default=models.Value(
                    [],
                    output_field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), size=None
                    ),
                ),
                default=list,
                help_text="The program's system and developer messages, in their order.",
                size=None,
            ),
        ),
        migrations.AlterField(
            "AnswerOptions",
            "options",
            models.JSONField(
                help_text="By the names of OpenAI's API: tools, response_format, temperature,"
                " max_tokens …"
            ),
        ),
        CommentOnTables(
            {
                "Agent": "An AI agent of a tenant: who it is, which model speaks for it, and how it"
                " remembers.",
                "AnswerOptions": "What the program that sent a message asks of its answer, until"
                " there is one.",
            }
        ),
    ]
