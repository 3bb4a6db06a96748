"""The user of a key is checked as ids are by now. Nothing of the table changes."""

from django.core.validators import MaxLengthValidator, RegexValidator
from django.db import migrations, models

UNSEEN = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"


class Migration(migrations.Migration):
    """State alone."""

    dependencies = [("api", "0004_let_idempotency_keys_belong_to_callers")]

    operations = [
        migrations.AlterField(
            model_name="apikey",
            name="user_id",
            field=models.TextField(
                verbose_name="user",
                null=True,
                blank=True,
                validators=[
                    RegexValidator(
                        rf"^[^\S{UNSEEN}]*[^\s{UNSEEN}][^{UNSEEN}]*\Z",
                        "Give text that is not blank, without control characters such as line"
                        " breaks.",
                    ),
                    MaxLengthValidator(255),
                ],
                help_text="The one end user whom this key may speak for and read of. Empty: all of"
                " them.",
            ),
        ),
    ]
