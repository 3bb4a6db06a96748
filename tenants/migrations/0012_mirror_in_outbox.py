"""Nothing is left of this migration: triggers that wrote to the outbox are gone."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tenants", "0011_outbox")]

    operations = []
