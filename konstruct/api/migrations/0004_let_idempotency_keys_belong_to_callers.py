"""Creations are recorded for a caller and a digest of its key. Nothing changes in Postgres.

Rows of before keep the bare key; see konstruct/api/http/idempotency.py for how long they count.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("api", "0003_remember_creations")]

    operations = [
        migrations.AlterField(
            model_name="creation",
            name="key",
            field=models.CharField(
                help_text="Caller, and digest of the Idempotency-Key.", max_length=255
            ),
        ),
    ]
