"""Plain labels of actions, actors and reasons. Changes no column."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0008_keep_pseudonyms_of_erased_ids"),
    ]

    operations = [
        migrations.AlterField(
            model_name="accessevent",
            name="action",
            field=models.TextField(
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
        migrations.AlterField(
            model_name="accessevent",
            name="actor_kind",
            field=models.TextField(
                choices=[
                    ("person", "person in the admin"),
                    ("program", "program with an API key"),
                    ("operator", "operator's command"),
                    ("unknown", "unknown"),
                ],
                help_text="Who, of which kind.",
            ),
        ),
        migrations.AlterField(
            model_name="erasurerequest",
            name="reason",
            field=models.TextField(blank=True, db_default="", default="", help_text="Reason."),
        ),
        migrations.AlterField(
            model_name="messageerasure",
            name="reason",
            field=models.TextField(blank=True, db_default="", default="", help_text="Reason."),
        ),
    ]
