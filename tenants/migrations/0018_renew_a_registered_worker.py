"""Renew a worker that does not know whether it is registered: its last renewal failed."""

from django.db import migrations

# An outage ends a renewal before or after Postgres has done it. The worker says is_new afterwards.
RENEW = """
CREATE OR REPLACE FUNCTION public.renew_worker(worker uuid, valid interval, is_new boolean)
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
BEFORE = """
CREATE OR REPLACE FUNCTION public.renew_worker(worker uuid, valid interval, is_new boolean)
RETURNS boolean LANGUAGE sql VOLATILE SECURITY DEFINER
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


class Migration(migrations.Migration):
    """See the module."""

    dependencies = [("tenants", "0017_lease_jobs")]
    operations = [migrations.RunSQL(RENEW, BEFORE)]
