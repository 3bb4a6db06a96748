"""The name of rows of extraction in the admin."""

from django.db import migrations


class Migration(migrations.Migration):
    """Name them as the page does."""

    dependencies = [("orchestrator", "0019_choose_time_zones")]

    operations = [
        migrations.AlterModelOptions(
            name="extractioncursor", options={"verbose_name": "extraction"}
        ),
    ]
