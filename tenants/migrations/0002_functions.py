"""Functions of the owner's that do for a tenant what its SQL may not do, and the view of replies.

The application may neither call set_config nor take advisory locks. By these it notes what a recall
has found, under two names that no policy knows, and takes locks with names of its tenant. Workers
lease jobs by functions: see decision 71.
"""

from django.db import migrations

from tenants.postgresql.expressions import IS_CURRENT_TENANT

# The first statement of a recall finds candidates, the others read them; all are sent at once.
NOTE_RECALLED = """
CREATE FUNCTION public.note_recalled(ids text, texts text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    SELECT pg_catalog.set_config('app.recalled', ids, true) IS NOT NULL
       AND pg_catalog.set_config('app.recalled_texts', texts, true) IS NOT NULL;
END
"""
TENANT_LOCK_KEY = """
CREATE FUNCTION public.tenant_lock_key(key text) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT ('x' || encode(substr(sha256(convert_to(
        coalesce(current_setting('app.current_tenant', true), '') || ' ' || key, 'UTF8'
    )), 1, 8), 'hex'))::bit(64)::bigint;
END
"""
TRY_TENANT_LOCK = """
CREATE FUNCTION public.try_tenant_lock(key text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    SELECT pg_catalog.pg_try_advisory_xact_lock(public.tenant_lock_key(key));
END
"""
WAIT_FOR_TENANT_LOCK = """
CREATE FUNCTION public.wait_for_tenant_lock(key text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    SELECT pg_catalog.pg_advisory_xact_lock(public.tenant_lock_key(key));
END
"""
HELD_TENANT_LOCKS = """
CREATE FUNCTION public.held_tenant_locks(keys text[]) RETURNS SETOF text
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    WITH held AS MATERIALIZED (
        SELECT (classid::bigint << 32) | objid::bigint AS number FROM pg_catalog.pg_locks
        WHERE locktype = 'advisory' AND granted AND objsubid = 1
          AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    )
    SELECT key FROM unnest(keys) AS key
    WHERE public.tenant_lock_key(key) IN (SELECT number FROM held);
END
"""
# A worker whose leases were returned has no row, and renews nothing afterwards. The jobs that it
# leases before it notices this are returned too. An outage ends a renewal before or after Postgres
# has done it. The worker says is_new afterwards.
RENEW = """
CREATE FUNCTION public.renew_worker(worker uuid, valid interval, is_new boolean)
RETURNS boolean LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    WITH renewed AS (
        UPDATE public.tenants_worker SET expires_at = clock_timestamp() + valid
        WHERE id = worker RETURNING id
    ), added AS (
        INSERT INTO public.tenants_worker (id, expires_at)
        SELECT worker, clock_timestamp() + valid
        WHERE is_new AND NOT EXISTS (SELECT FROM renewed) RETURNING id
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
# Numbers of jobs by the owner's policy of tenants_job, which shows nothing inside a tenant.
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
# `konstruct.orchestrator` reads it as the table of its model PendingReply.
REPLIES = f"""
CREATE VIEW public.orchestrator_pendingreply WITH (security_invoker = true) AS
SELECT tenant_id, key AS message_id, kind, attempts, begun_at, error_code, last_error, due_at,
       sweep_at, failed_at, held_for, created_at
FROM public.tenants_job WHERE {IS_CURRENT_TENANT} AND kind = 'reply';
GRANT INSERT, UPDATE, DELETE ON public.orchestrator_pendingreply TO konstruct_app;
ALTER VIEW public.orchestrator_pendingreply ALTER COLUMN kind SET DEFAULT 'reply';
COMMENT ON VIEW public.orchestrator_pendingreply IS
    'Messages of the current tenant that wait for their reply: their jobs.'
"""  # noqa: S608


def function(sql, signature):
    return migrations.RunSQL(sql, f"DROP FUNCTION public.{signature}")


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]

    operations = [
        function(NOTE_RECALLED, "note_recalled(text, text)"),
        function(TENANT_LOCK_KEY, "tenant_lock_key(text)"),
        function(TRY_TENANT_LOCK, "try_tenant_lock(text)"),
        function(HELD_TENANT_LOCKS, "held_tenant_locks(text[])"),
        function(WAIT_FOR_TENANT_LOCK, "wait_for_tenant_lock(text)"),
        function(RENEW, "renew_worker(uuid, interval, boolean)"),
        function(RETURN_EXPIRED, "return_expired_jobs()"),
        function(GIVE_BACK, "give_back_jobs(uuid)"),
        function(BACKLOGS, "job_backlogs()"),
        migrations.RunSQL(REPLIES, "DROP VIEW public.orchestrator_pendingreply"),
    ]
