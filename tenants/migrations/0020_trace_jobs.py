"""Keep the trace of a job with it: see docs/traces.md.

The default of a new column is in the catalogue, so no row is written.
"""

from django.db import migrations, models

from tenants.roles import APP_ROLE

GRANT = f"GRANT UPDATE (traceparent, attempt_traceparent) ON public.tenants_job TO {APP_ROLE}"


class Migration(migrations.Migration):
    """See the module."""

    dependencies = [("tenants", "0019_delete_tenants_after_a_grace_period")]

    operations = [
        migrations.AddField(
            "Job",
            "traceparent",
            models.TextField(
                blank=True,
                default="",
                db_default="",
                help_text="The span that enqueued it, as W3C writes it.",
            ),
        ),
        migrations.AddField(
            "Job",
            "attempt_traceparent",
            models.TextField(
                blank=True,
                default="",
                db_default="",
                help_text="The span of its last attempt, as W3C writes it.",
            ),
        ),
        migrations.RunSQL(GRANT, migrations.RunSQL.noop),
    ]
