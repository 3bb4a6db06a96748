"""The access log has where requests came from, logins, creations and what was refused."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0004_erase_all_ids_of_a_person"),
    ]

    operations = [
        migrations.AddField(
            model_name="accessevent",
            name="address",
            field=models.GenericIPAddressField(
                blank=True, help_text="Where the request came from.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="accessevent",
            name="action",
            field=models.TextField(
                choices=[
                    ("list", "listed"),
                    ("view", "looked at"),
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
                    ("unknown", "nobody who is known"),
                ],
                help_text="Who, of which kind.",
            ),
        ),
        migrations.AlterField(
            model_name="accessevent",
            name="detail",
            field=models.JSONField(
                blank=True,
                db_default=models.Value({}, output_field=models.JSONField()),
                default=dict,
                help_text="What was asked for, and how much came of it; of a change, before and"
                " after.",
            ),
        ),
        migrations.AlterField(
            model_name="accessevent",
            name="subject",
            field=models.TextField(help_text="With what: conversation, memories, fact, API key …"),
        ),
    ]
