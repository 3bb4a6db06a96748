"""Lease jobs to worker processes: see decision 71.

New columns without values, so no row is written. `tenants_worker` is reached by functions only.
"""

from django.db import migrations, models

from tenants.operations.comments import CommentOnTables
from tenants.operations.policies import HideFromTenants
from tenants.roles import APP_ROLE, OWNER_ROLE

GRANTS = f"""
GRANT UPDATE (worker, lease, leased_until, lane) ON public.tenants_job TO {APP_ROLE};
CREATE POLICY workers_return ON public.tenants_job FOR UPDATE TO {OWNER_ROLE}
    USING (NULLIF(current_setting('app.current_tenant', true), '') IS NULL)
    WITH CHECK (NULLIF(current_setting('app.current_tenant', true), '') IS NULL);
CREATE POLICY workers_return_look ON public.tenants_job FOR SELECT TO {OWNER_ROLE}
    USING (NULLIF(current_setting('app.current_tenant', true), '') IS NULL);
REVOKE ALL ON public.tenants_worker FROM {APP_ROLE}
"""  # noqa: S608
NO_GRANTS = """
DROP POLICY workers_return ON public.tenants_job;
DROP POLICY workers_return_look ON public.tenants_job
"""
# A worker whose leases were returned has no row, and renews nothing afterwards. The jobs that it
# leases before it notices this are returned too.
RENEW = """
CREATE FUNCTION public.renew_worker(worker uuid, valid interval, is_new boolean) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    WITH renewed AS (
        UPDATE public.tenants_worker SET expires_at = clock_timestamp() + valid
        WHERE id = worker RETURNING id
    ), added AS (
        INSERT INTO public.tenants_worker (id, expires_at)
        SELECT worker, clock_timestamp() + valid WHERE is_new RETURNING id
    )
    SELECT EXISTS (SELECT FROM renewed UNION ALL SELECT FROM added);
END
"""
RETURN_EXPIRED = """
CREATE FUNCTION public.return_expired_jobs() RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    WITH expired AS (
        DELETE FROM public.tenants_worker WHERE expires_at < clock_timestamp() RETURNING id
    ), returned AS (
        UPDATE public.tenants_job AS job
        SET worker = NULL, leased_until = NULL, lane = NULL,
            sweep_at = CASE WHEN failed_at IS NULL AND held_for = '' THEN clock_timestamp()
                            ELSE sweep_at END
        WHERE job.worker IS NOT NULL
          AND NULLIF(current_setting('app.current_tenant', true), '') IS NULL
          AND NOT EXISTS (
              SELECT FROM public.tenants_worker AS alive
              WHERE alive.id = job.worker AND alive.expires_at >= clock_timestamp()
          )
        RETURNING 1
    )
    SELECT count(*) FROM returned;
END
"""
GIVE_BACK = """
CREATE FUNCTION public.give_back_jobs(of_worker uuid) RETURNS bigint
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    WITH ended AS (
        DELETE FROM public.tenants_worker WHERE id = of_worker RETURNING id
    ), returned AS (
        UPDATE public.tenants_job AS job
        SET worker = NULL, leased_until = NULL, lane = NULL, begun_at = NULL,
            attempts = greatest(attempts - (begun_at IS NOT NULL)::int, 0),
            sweep_at = CASE WHEN failed_at IS NULL AND held_for = '' THEN clock_timestamp()
                            ELSE sweep_at END
        FROM ended WHERE job.worker = ended.id RETURNING 1
    )
    SELECT count(*) FROM returned;
END
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0016_rename_outbox_to_job")]

    operations = [
        migrations.AddField(
            "Job",
            "worker",
            models.UUIDField(null=True, blank=True, help_text="Worker process that leases it."),
        ),
        migrations.AddField(
            "Job",
            "lease",
            models.PositiveIntegerField(
                default=0, db_default=0, help_text="How often it was leased: the token of a lease."
            ),
        ),
        migrations.AddField(
            "Job",
            "leased_until",
            models.DateTimeField(
                null=True, blank=True, help_text="When another worker may lease it in any case."
            ),
        ),
        migrations.AddField(
            "Job",
            "lane",
            models.UUIDField(
                null=True, blank=True, help_text="Of leased jobs of one lane there is one."
            ),
        ),
        migrations.AddConstraint(
            "Job",
            models.UniqueConstraint(
                fields=["tenant_id", "kind", "lane"],
                condition=models.Q(lane__isnull=False),
                name="job_lane",
            ),
        ),
        migrations.AddIndex(
            "Job",
            models.Index(
                fields=["worker"], condition=models.Q(worker__isnull=False), name="job_worker"
            ),
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                (
                    "expires_at",
                    models.DateTimeField(help_text="When its leases end, unless it renews them."),
                ),
            ],
        ),
        HideFromTenants("tenants_worker"),
        CommentOnTables(
            {
                "Job": "Work of a tenant that waits for a worker. One table for all tenants and"
                " kinds of work.",
                "Worker": "A worker process that leases jobs, until it expires.",
            }
        ),
        migrations.RunSQL(GRANTS, NO_GRANTS),
        migrations.RunSQL(RENEW, "DROP FUNCTION public.renew_worker(uuid, interval, boolean)"),
        migrations.RunSQL(RETURN_EXPIRED, "DROP FUNCTION public.return_expired_jobs()"),
        migrations.RunSQL(GIVE_BACK, "DROP FUNCTION public.give_back_jobs(uuid)"),
    ]
