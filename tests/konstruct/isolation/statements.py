"""Statements of an attacker with all names and ids of the victim, each sent as one message.

`{schema}` and `{victim}` are the victim's schema and id, `{attacker}` the attacker's id. `{column}`
of `{table}` contains data that only the victim may read.
"""

from typing import Final

from tenants.naming import OWNER_ROLE

# They would return the victim's row, in a result or in an error: by naming its table …
NAMING: Final = (
    "SELECT {column} FROM {schema}.{table}",
    "TABLE {schema}.{table}",
    "SELECT {column} FROM {schema}.{table} FOR UPDATE",
    "SELECT {column} FROM ONLY {schema}.{table} WHERE ctid = '(0,1)'",
    "SELECT {column} FROM {schema}.{table} TABLESAMPLE SYSTEM (100)",
    "SELECT found.* FROM generate_series(1, 3), LATERAL (TABLE {schema}.{table}) AS found",
    "WITH RECURSIVE every AS (SELECT {column} FROM {schema}.{table} UNION"
    " SELECT {column} FROM every) TABLE every",
    "SELECT json_agg(row_to_json(theirs)) FROM {schema}.{table} AS theirs",
    "SELECT {column}::int FROM {schema}.{table}",
    "SELECT 1 FROM {schema}.{table} WHERE {column}::int > 0",
    "MERGE INTO {schema}.auth_group AS theirs USING (SELECT 1 AS id) AS ours ON true"
    " WHEN MATCHED THEN DELETE RETURNING theirs.*",
    "SELECT most_common_vals::text, histogram_bounds::text FROM pg_stats"
    " WHERE schemaname = '{schema}'",
)
# … or by entering the victim, running text, or reading Postgres' views of other sessions.
TENANT_SWITCHES: Final = (
    "SELECT set_config('app.current_tenant', '{victim}', true)::int",
    "SELECT query_to_xml('SET app.current_tenant = ''{victim}''', true, true, '')::text",
    "DO $$ BEGIN PERFORM set_config('app.current_tenant', '{victim}', false); END $$",
    "SET app.current_tenant = '{victim}'",
    "WITH s AS MATERIALIZED (SELECT set_config('app.current_tenant', '{victim}', true))"
    " SELECT {column} FROM s, {schema}.{table}",
    "SELECT {column} FROM {schema}.{table}"
    " WHERE pg_catalog.set_config('app.current_tenant', '{victim}', false) IS NOT NULL",
    "UPDATE pg_settings SET setting = '{victim}' WHERE name = 'app.current_tenant'",
    "UPDATE pg_catalog.pg_settings SET setting = 'off' WHERE name = 'row_security'",
    "SELECT query_to_xml('SELECT {column} FROM {schema}.{table}', true, true, '')::text",
    "SELECT table_to_xml('{schema}.{table}', true, true, '')::text",
    "SELECT schema_to_xml('{schema}', true, true, '')::text",
    "SELECT database_to_xml(true, true, '')::text",
    "SELECT word FROM ts_stat('SELECT to_tsvector({column}) FROM {schema}.{table}')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, {column}::tsquery"
    " FROM {schema}.{table}')",
    "SELECT * FROM pg_statistic",
    "SELECT stxdmcv FROM pg_statistic_ext_data",
    "SET SESSION AUTHORIZATION konstruct_owner",
    "SET ROLE konstruct_owner",
    "SET row_security = off",
    "CREATE FUNCTION pg_temp.f() RETURNS text LANGUAGE sql SET app.current_tenant = '{victim}'"
    " RETURN (SELECT string_agg({column}, '') FROM {schema}.{table})",
    "CREATE TEMPORARY TABLE mine AS SELECT {column} FROM {schema}.{table}",
    "CREATE TEMPORARY VIEW mine AS SELECT {column} FROM {schema}.{table}",
    "PREPARE theirs AS SELECT {column} FROM {schema}.{table}",
    "SET LOCAL app.current_tenant = '{victim}'; SELECT {column} FROM {schema}.{table}",
    "SELECT 1; SET app.current_tenant = '{victim}'",
    "SELECT current_query, query FROM pg_stat_activity",
    "SELECT pg_stat_get_activity(NULL)",
    "SELECT rolpassword FROM pg_authid",
    "SELECT pg_read_file('PG_VERSION')",
    "SELECT lo_get(oid) FROM pg_largeobject_metadata",
)
# They would change or add a row of another tenant, or take its name or number.
WRITING: Final = (
    # The session and the row belong to the attacker.
    "INSERT INTO {schema}.auth_group (name, tenant_id) VALUES ('x', '{attacker}') RETURNING 1",
    "INSERT INTO {schema}.auth_group (name, tenant_id) VALUES ('x', '{victim}') RETURNING 1",
    "INSERT INTO {schema}.auth_group (name) VALUES ('x') RETURNING 1",
    "INSERT INTO {schema}.auth_group (name) VALUES ('x') ON CONFLICT DO NOTHING RETURNING 1",
    "INSERT INTO {schema}.auth_group (name, tenant_id) VALUES ('x', '{victim}')"
    " ON CONFLICT (name) DO UPDATE SET name = 'y' RETURNING 1",
    "UPDATE {schema}.auth_user SET username = 'x' RETURNING 1",
    "DELETE FROM {schema}.auth_user RETURNING 1",
    "WITH gone AS (DELETE FROM {schema}.auth_user RETURNING 1) SELECT * FROM gone",
    "MERGE INTO {schema}.auth_group USING (SELECT 1) AS ours ON false"
    " WHEN NOT MATCHED THEN INSERT (name) VALUES ('x')",
    "INSERT INTO public.auth_user (password, is_superuser, username, first_name, last_name, email,"
    " is_staff, is_active, date_joined) VALUES ('', true, 'x', '', '', '', true, true, now())"
    " RETURNING 1",
    "DELETE FROM public.auth_permission RETURNING 1",
    "DELETE FROM public.django_migrations RETURNING 1",
    "UPDATE public.django_content_type SET model = 'x' RETURNING 1",
    "UPDATE public.tenants_tenant SET state = 'suspended' RETURNING 1",
    "UPDATE public.tenants_tenant SET migrated_to = '' RETURNING 1",
    "DELETE FROM public.tenants_tenant RETURNING 1",
    "DELETE FROM public.tenants_domain RETURNING 1",
    "INSERT INTO public.tenants_job (tenant_id, kind, key)"
    " VALUES ('{victim}', 'reply', gen_random_uuid()) RETURNING 1",
    "UPDATE public.tenants_job SET failed_at = now() WHERE tenant_id = '{victim}' RETURNING 1",
    "DELETE FROM public.tenants_job WHERE tenant_id = '{victim}' RETURNING 1",
    "INSERT INTO public.tenants_workspaceclaim (id, channel, workspace, tenant_id)"
    " VALUES (1000000, 'slack', 'TX', '{attacker}') RETURNING 1",
)
# They would end, block or watch other sessions. Postgres refuses each.
HARMING: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock(tenant_lock_key('x'))",
    "SELECT pg_advisory_unlock_all()",
    "SELECT nextval('{schema}.auth_user_id_seq')",
    "SELECT setval('{schema}.auth_user_id_seq', 1)",
    "SELECT last_value FROM {schema}.auth_user_id_seq",
    "SELECT lastval()",
    "SELECT setseed(0.5)",
    "SELECT lo_create(1)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT pg_notify('x', 'x')",
    "SELECT pg_sleep(60)",
    "SELECT pg_logical_emit_message(false, 'x', 'x')",
    "SELECT pg_export_snapshot()",
    "SELECT gin_clean_pending_list('{schema}.auth_user_pkey')",
    "SELECT pg_stat_reset()",
    "TRUNCATE {schema}.auth_user",
    "DROP SCHEMA {schema} CASCADE",
    "DROP OWNED BY konstruct_app",
    "DROP /* all that was granted */ OWNED BY CURRENT_USER CASCADE",
    "CREATE STATISTICS public.theirs ON id, name FROM {schema}.auth_group",
    "CREATE TRIGGER x BEFORE INSERT ON {schema}.auth_group"
    " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE OPERATOR public.=== (FUNCTION = texteq, LEFTARG = text, RIGHTARG = text)",
    "CREATE CAST (text AS int) WITH INOUT",
    "CREATE EXTENSION pg_trgm",
    "ALTER TABLE {schema}.auth_group ADD FOREIGN KEY (id) REFERENCES {schema}.auth_user",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "PREPARE TRANSACTION 'x'",
)
# Postgres allows these statements to every role, on their own. Our cursors do not send them.
UNSENT: Final = (
    "LOCK TABLE {schema}.auth_user",
    "LOCK TABLE public.django_session IN ACCESS EXCLUSIVE MODE",
    "LISTEN x",
    "NOTIFY x, 'x'",
    "ALTER ROLE konstruct_app SET statement_timeout = 1",
    "ALTER ROLE konstruct_app PASSWORD 'x'",
    "ALTER ROLE CURRENT_USER SET search_path = nowhere",
    "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
    # The estimated number of rows shows how common a value is.
    "EXPLAIN SELECT 1 FROM {schema}.{table} WHERE {column} = 'x'",
    "EXPLAIN ANALYZE SELECT 1 FROM {schema}.{table}",
    'DECLARE "kept" NO SCROLL CURSOR WITH HOLD FOR SELECT {column} FROM {table}',
    "COPY {schema}.{table} TO STDOUT",
    "DISCARD ALL",
)
# Privileges of an owner or a superuser.
OWNER_STATEMENTS: Final = (
    f"SET ROLE {OWNER_ROLE}",
    "ALTER TABLE {schema}.memory_message DISABLE ROW LEVEL SECURITY",
    "DROP POLICY tenant_isolation ON {schema}.memory_message",
    "TRUNCATE {schema}.memory_message CASCADE",
    "CREATE TABLE {schema}.mine (x int)",
    "CREATE POLICY opened ON {schema}.memory_message USING (true)",
    "ALTER TABLE {schema}.memory_message OWNER TO konstruct_app",
    "DROP SCHEMA {schema} CASCADE",
    "CREATE FUNCTION {schema}.mine() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
    "SET SESSION AUTHORIZATION postgres",
)
