"""Operators delete tenants after a grace period, and see what waits of each tenant.

The application may ask for a deletion and take it back. When it is due is the owner's to say. The
numbers of jobs are read by the owner's policy of tenants_job, which shows nothing inside a tenant.
"""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables

COLUMNS = "UPDATE (deletion_asked_at, state_before) ON public.tenants_tenant"
BACKLOGS = """
CREATE FUNCTION public.job_backlogs()
RETURNS TABLE (tenant_id uuid, waiting bigint, failed bigint, oldest timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT job.tenant_id, count(*) FILTER (WHERE job.failed_at IS NULL AND job.held_for = ''),
           count(*) FILTER (WHERE job.failed_at IS NOT NULL),
           min(job.due_at) FILTER (WHERE job.failed_at IS NULL AND job.held_for = ''
                                   AND job.due_at <= statement_timestamp())
    FROM public.tenants_job AS job
    WHERE NULLIF(current_setting('app.current_tenant', true), '') IS NULL
    GROUP BY job.tenant_id;
END;
REVOKE ALL ON FUNCTION public.job_backlogs() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.job_backlogs() TO konstruct_app
"""


class Migration(migrations.Migration):
    """See the module."""

    dependencies = [("tenants", "0018_renew_a_registered_worker")]

    operations = [
        migrations.AddField(
            "Tenant",
            "deletion_asked_at",
            models.DateTimeField(
                editable=False,
                help_text="When an operator asked for its deletion; empty: it stays.",
                null=True,
            ),
        ),
        migrations.AddField(
            "Tenant",
            "delete_at",
            models.DateTimeField(
                editable=False,
                help_text="When it is deleted for good, unless it is restored before. The owner's"
                " worker sets it.",
                null=True,
            ),
        ),
        migrations.AddField(
            "Tenant",
            "state_before",
            models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="State to which it is restored; empty: its deletion is not asked for.",
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="operatorevent",
            name="action",
            field=models.TextField(
                choices=[
                    ("list", "listed"),
                    ("view", "looked at"),
                    ("search", "searched"),
                    ("create", "created"),
                    ("edit", "edited"),
                    ("suspend", "suspended"),
                    ("resume", "resumed"),
                    ("delete", "deleted"),
                    ("restore", "restored"),
                    ("login", "logged in"),
                    ("logout", "logged out"),
                    ("login_failed", "failed to log in"),
                    ("refuse", "was refused"),
                ],
                help_text="What they did.",
            ),
        ),
        migrations.RunSQL(
            f"GRANT {COLUMNS} TO konstruct_app", f"REVOKE {COLUMNS} FROM konstruct_app"
        ),
        migrations.RunSQL(BACKLOGS, "DROP FUNCTION public.job_backlogs()"),
        CommentOnTables(
            {
                "Tenant": "A customer: one schema, one set of users, agents and memories, unseen by"
                " all others.",
            }
        ),
    ]
