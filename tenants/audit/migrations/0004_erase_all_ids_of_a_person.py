"""A request of erasure names all ids of its person, and whether a bound key asked for it."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_name_what_people_decide")]

    operations = [
        migrations.AddField(
            "ErasureRequest",
            "user_ids",
            ArrayField(
                models.TextField(),
                default=list,
                db_default=models.Value([], output_field=ArrayField(models.TextField())),
                blank=True,
                editable=False,
                help_text="All ids of the person, as they were linked when it began; in the end,"
                " digests.",
            ),
        ),
        migrations.AddField(
            "ErasureRequest",
            "by_bound_key",
            models.BooleanField(
                default=False,
                db_default=False,
                editable=False,
                help_text="A key of one agent or one user asked for it.",
            ),
        ),
        migrations.AlterField(
            "ErasureRequest",
            "user_id",
            models.TextField(
                "user",
                help_text="Who is to be forgotten. Once it is done, a keyed digest of the id.",
            ),
        ),
        migrations.AlterField(
            "ErasureRequest",
            "progress",
            models.JSONField(
                null=True,
                blank=True,
                editable=False,
                help_text="While it is being done: how far it is, and what is to be removed yet.",
            ),
        ),
    ]
