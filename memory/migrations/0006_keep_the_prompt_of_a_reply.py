"""A recall event keeps the whole prompt, and the facts that were weighed for it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0005_tell_questions_from_statements")]

    operations = [
        migrations.AddField(
            "RecallEvent",
            "facts",
            models.JSONField(
                default=list,
                db_default=models.Value([], output_field=models.JSONField()),
                help_text="Facts that were found, with their similarity, and why some were not"
                " given.",
            ),
        ),
        migrations.AddField(
            "RecallEvent",
            "prompt",
            models.JSONField(
                null=True,
                help_text="The prompt as it was sent, with the tokens of each section and how much"
                " was left out; none for replies from before prompts were kept.",
            ),
        ),
    ]
