"""Functions of the owner's that do for a tenant what its SQL may not do by itself.

The application may neither call set_config nor take advisory locks. By these it notes what a recall
has found, under two names that no policy knows, and takes locks whose names are its tenant's.
"""

from django.db import migrations

# The first statement of a recall finds candidates, the others read them; all are sent at once.
NOTE_RECALLED = """
CREATE OR REPLACE FUNCTION public.note_recalled(ids text, texts text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    SELECT pg_catalog.set_config('app.recalled', ids, true) IS NOT NULL
       AND pg_catalog.set_config('app.recalled_texts', texts, true) IS NOT NULL;
END
"""
TENANT_LOCK_KEY = """
CREATE OR REPLACE FUNCTION public.tenant_lock_key(key text) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT ('x' || encode(substr(sha256(convert_to(
        coalesce(current_setting('app.current_tenant', true), '') || ' ' || key, 'UTF8'
    )), 1, 8), 'hex'))::bit(64)::bigint;
END
"""
TRY_TENANT_LOCK = """
CREATE OR REPLACE FUNCTION public.try_tenant_lock(key text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    SELECT pg_catalog.pg_try_advisory_xact_lock(public.tenant_lock_key(key));
END
"""
WAIT_FOR_TENANT_LOCK = """
CREATE OR REPLACE FUNCTION public.wait_for_tenant_lock(key text) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER
BEGIN ATOMIC
    SELECT pg_catalog.pg_advisory_xact_lock(public.tenant_lock_key(key));
END
"""

HELD_TENANT_LOCKS = """
CREATE OR REPLACE FUNCTION public.held_tenant_locks(keys text[]) RETURNS SETOF text
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


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_comment_on_tables")]

    operations = [
        migrations.RunSQL(NOTE_RECALLED, "DROP FUNCTION public.note_recalled(text, text)"),
        migrations.RunSQL(TENANT_LOCK_KEY, "DROP FUNCTION public.tenant_lock_key(text)"),
        migrations.RunSQL(TRY_TENANT_LOCK, "DROP FUNCTION public.try_tenant_lock(text)"),
        migrations.RunSQL(HELD_TENANT_LOCKS, "DROP FUNCTION public.held_tenant_locks(text[])"),
        migrations.RunSQL(WAIT_FOR_TENANT_LOCK, "DROP FUNCTION public.wait_for_tenant_lock(text)"),
    ]
