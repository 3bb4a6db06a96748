"""Describe the scope `erase`. Changes no column."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0008_drop_index_of_agent"),
    ]

    operations = [
        migrations.AlterField(
            model_name="apikey",
            name="scopes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(
                    choices=[
                        ("read", "read: look, and search"),
                        ("write", "write: send, make and edit"),
                        (
                            "erase",
                            "erase: delete facts, clear windows and sessions, request erasures",
                        ),
                    ]
                ),
                help_text="What it may do.",
                size=None,
            ),
        ),
    ]
