"""A tenant says how far its schema is, and why it is no further."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0002_hide_operators_from_tenants"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="migrated_at",
            field=models.DateTimeField(editable=False, help_text="When that was.", null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="migrated_to",
            field=models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="Digest of the migrations that its schema was given last.",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="provisioning_error",
            field=models.TextField(
                db_default="",
                default="",
                editable=False,
                help_text="Why its schema could not be made or migrated.",
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="provisioning_failed_at",
            field=models.DateTimeField(editable=False, help_text="When that was.", null=True),
        ),
    ]
