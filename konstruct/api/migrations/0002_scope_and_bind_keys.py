"""Keys get scopes, may be bound to one agent or user, and tell when they were last used."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

SCOPES = ["read", "write", "erase"]


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0001_initial"),
        ("orchestrator", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="scopes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(
                    choices=[
                        ("read", "read: look, and search"),
                        ("write", "write: send, make and edit"),
                        ("erase", "erase: clear and delete"),
                    ]
                ),
                # What the keys that stand could do so far.
                default=["read", "write"],
                help_text="What it may do.",
                size=None,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="apikey",
            name="agent",
            field=models.ForeignKey(
                blank=True,
                help_text="The one agent that there is for this key. Empty: all of them.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="api_keys",
                to="orchestrator.agent",
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="user_id",
            field=models.TextField(
                blank=True,
                help_text="The one end user whom this key may speak for and read of."
                " Empty: all of them.",
                null=True,
                validators=[
                    django.core.validators.RegexValidator(
                        r"^[^\S\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*\Z",
                        "Give text that is not blank, without control characters such as line"
                        " breaks.",
                    ),
                    django.core.validators.MaxLengthValidator(255),
                ],
                verbose_name="user",
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="last_used_at",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text="When it was last used, to within a few minutes.",
                null=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(scopes__contained_by=SCOPES, scopes__len__gt=0),
                name="api_key_scopes",
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.CheckConstraint(
                condition=models.Q(("user_id", ""), _negated=True),
                name="api_key_user",
                violation_error_message="user_id: Name a user, or none at all.",
            ),
        ),
    ]
