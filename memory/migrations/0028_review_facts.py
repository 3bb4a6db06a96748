"""Add the permission to review facts. Changes no column."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0027_keep_evidence_and_states_of_facts"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="memoryentry",
            options={
                "permissions": [
                    ("review_memoryentry", "Can confirm, reject, retract and restore facts")
                ],
                "verbose_name": "fact",
            },
        ),
    ]
