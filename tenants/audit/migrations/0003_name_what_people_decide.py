"""What people decide is written down under words of its own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_erase_in_steps_and_retain")]

    operations = [
        migrations.AlterField(
            model_name="accessevent",
            name="action",
            field=models.TextField(
                choices=[
                    ("list", "listed"),
                    ("view", "looked at"),
                    ("search", "searched"),
                    ("export", "exported"),
                    ("clear", "cleared"),
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
                ],
                help_text="What they did.",
            ),
        ),
    ]
