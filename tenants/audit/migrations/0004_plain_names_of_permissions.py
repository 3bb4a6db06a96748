from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0003_clear_sessions_by_permission"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="accessevent",
            options={
                "permissions": [
                    ("recall_memories", "Can search memories as an agent would"),
                    ("search_everyone", "Can search the messages of all people"),
                    ("export_person", "Can export all data of a person"),
                    ("try_agent", "Can try an agent without storing anything"),
                    ("clear_session", "Can clear sessions of graphs"),
                    ("export_list", "Can export the rows of lists as CSV and JSON"),
                ],
                "verbose_name": "access",
                "verbose_name_plural": "access log",
            },
        ),
    ]
