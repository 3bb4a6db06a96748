-- An administrator runs this in the database that Konstruct is to use, once before the first
-- `manage.py migrate`, and twice in an upgrade: before the new version's migrate, and when the
-- processes of the old version are gone (docs/operations.md).
--
--     createdb konstruct
--     KONSTRUCT_OWNER_PASSWORD=… KONSTRUCT_APP_PASSWORD=… psql -d konstruct -f deploy/bootstrap.sql
--
-- As a superuser, or as a managed service's administrator (CREATEROLE). It is one transaction: after
-- an error nothing is changed. It is safe to run again; passwords are changed only where the variables
-- are set. It needs PostgreSQL 16 or newer and pgvector 0.8 or newer. The embedded Postgres runs this
-- same file.

\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
SET client_min_messages = warning;

SELECT current_setting('server_version_num')::int < 160000 AS server_is_too_old \gset
\if :server_is_too_old
DO $$
BEGIN
    RAISE EXCEPTION USING
        MESSAGE = format('konstruct needs PostgreSQL 16 or newer. This server is PostgreSQL %s.',
                         current_setting('server_version')),
        HINT = 'Nothing was changed. Install a newer server, or use one of a newer image.';
END
$$;
\endif
SELECT NOT EXISTS (
    SELECT FROM pg_available_extensions
    WHERE name = 'vector'
      AND string_to_array(
          substring(coalesce(installed_version, default_version) FROM '^\d+\.\d+'), '.'
      )::int[] >= ARRAY[0, 8]
) AS vector_is_missing \gset
\if :vector_is_missing
DO $$
DECLARE
    found text;
BEGIN
    SELECT format('This database has %s.', coalesce(installed_version, default_version)) INTO found
    FROM pg_available_extensions WHERE name = 'vector';
    RAISE EXCEPTION USING
        MESSAGE = 'konstruct needs pgvector 0.8 or newer. '
            || coalesce(found, 'This server has no extension "vector".'),
        HINT = 'Nothing was changed. Install pgvector for PostgreSQL '
            || current_setting('server_version_num')::int / 10000
            || '. Where the database has an older one: ALTER EXTENSION vector UPDATE.';
END
$$;
\endif
SELECT getdatabaseencoding() <> 'UTF8' AS encoding_is_another \gset
\if :encoding_is_another
DO $$
BEGIN
    RAISE EXCEPTION USING
        MESSAGE = format('konstruct needs a database in UTF8. This one is in %s.', getdatabaseencoding()),
        HINT = 'Nothing was changed. createdb --template template0 --encoding UTF8 --locale-provider builtin'
            ' --builtin-locale C.UTF-8 --locale C (PostgreSQL 17), or --locale C.UTF-8.';
END
$$;
\endif

BEGIN;

-- The owner migrates, provisions tenants and erases; the app is what web and workers are. Neither can
-- go round row-level security.
SELECT format('CREATE ROLE %I LOGIN', role)
FROM unnest(ARRAY['konstruct_owner', 'konstruct_app']) AS role
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) \gexec
-- Said only where it is not so already, for who is no superuser may not even repeat it.
SELECT format('ALTER ROLE %I NOSUPERUSER NOBYPASSRLS', rolname)
FROM pg_roles
WHERE rolname IN ('konstruct_owner', 'konstruct_app') AND (rolsuper OR rolbypassrls) \gexec

-- What Postgres refuses may hold what users said: in the statement, in the details, and in the message
-- itself (invalid input syntax for type uuid: "..."). The client is told; the server's log is not.
SELECT format('ALTER ROLE %I SET %I = %L', role, name, value)
FROM unnest(ARRAY['konstruct_owner', 'konstruct_app']) AS role,
    (VALUES ('log_min_messages', 'log'), ('log_min_error_statement', 'panic'),
            ('log_error_verbosity', 'terse')) AS setting (name, value)
-- A managed service's administrator sets them for the whole server instead: docs/operations.md.
WHERE has_parameter_privilege(name, 'SET') \gexec

\getenv owner_password KONSTRUCT_OWNER_PASSWORD
\if :{?owner_password}
ALTER ROLE konstruct_owner PASSWORD :'owner_password';
\endif
\getenv app_password KONSTRUCT_APP_PASSWORD
\if :{?app_password}
ALTER ROLE konstruct_app PASSWORD :'app_password';
\endif

-- A managed service's administrator may act for another role only as its member.
SELECT format('GRANT konstruct_owner TO %I', current_user)
WHERE NOT pg_has_role('konstruct_owner', 'SET') \gexec

-- The owner creates a schema for each tenant; the app connects, and nothing else.
SELECT format('ALTER DATABASE %I OWNER TO konstruct_owner', current_database())
WHERE NOT (SELECT datistemplate FROM pg_database WHERE datname = current_database()) \gexec
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database())
WHERE NOT (SELECT datistemplate FROM pg_database WHERE datname = current_database()) \gexec
SELECT format('GRANT CONNECT ON DATABASE %I TO konstruct_app', current_database()) \gexec

-- Extensions stand in a schema of their own, which is on every tenant's search_path.
CREATE SCHEMA IF NOT EXISTS extensions;
SELECT 'GRANT USAGE ON SCHEMA extensions TO PUBLIC'
WHERE NOT has_schema_privilege('public', 'extensions', 'USAGE') \gexec
CREATE EXTENSION IF NOT EXISTS vector SCHEMA extensions;

-- What the owner will make, the app may read; each migration grants the rest on its own table, so that
-- a forgotten grant fails safe.
ALTER DEFAULT PRIVILEGES FOR ROLE konstruct_owner GRANT USAGE ON SCHEMAS TO konstruct_app;
ALTER DEFAULT PRIVILEGES FOR ROLE konstruct_owner GRANT SELECT ON TABLES TO konstruct_app;
-- Identity columns need no privilege on their sequences, and one tenant must not use up another's.
ALTER DEFAULT PRIVILEGES FOR ROLE konstruct_owner REVOKE ALL ON SEQUENCES FROM konstruct_app;
-- Earlier versions of this script let the app write every table in public.
ALTER DEFAULT PRIVILEGES FOR ROLE konstruct_owner IN SCHEMA public
    REVOKE INSERT, UPDATE, DELETE ON TABLES FROM konstruct_app;

-- What SQL that is data of a request must not do: enter a tenant (set_config), run text, end or lock
-- others, write large objects, read what others send. Postgres lets everybody call these functions.
-- Of those that do more than compute, the application keeps the ones listed here, which
-- tenants/checks.py lists too. Everybody else has a grant of their own, or is a superuser.
SELECT rolsuper AS is_superuser FROM pg_roles WHERE rolname = current_user \gset
\if :is_superuser
SELECT format('REVOKE EXECUTE ON FUNCTION %1$s FROM PUBLIC, konstruct_app', oid::regprocedure),
       format('GRANT EXECUTE ON FUNCTION %1$s TO konstruct_owner, pg_monitor, pg_read_all_data',
              oid::regprocedure)
FROM pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace
  AND (provolatile = 'v'
       OR proname ~ '^(table|schema|database)_to_xml' OR proname ~ '^pg_stat_get_(backend_)?activity$')
  AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'language_handler'::regtype)
  AND NOT 'internal'::regtype = ANY (proargtypes::oid[])
  AND proname <> ALL (ARRAY[
      'array_sample', 'array_shuffle', 'clock_timestamp', 'gen_random_uuid', 'pg_database_size',
      'pg_indexes_size', 'pg_is_in_recovery', 'pg_relation_size', 'pg_table_size',
      'pg_total_relation_size', 'plpgsql_validator', 'random', 'random_normal', 'timeofday',
      'uuidv4', 'uuidv7'
  ])
  AND has_function_privilege('public', oid, 'EXECUTE')
ORDER BY proname \gexec
GRANT EXECUTE ON FUNCTION pg_catalog.set_config(text, text, boolean) TO konstruct_owner;
REVOKE UPDATE ON pg_catalog.pg_settings FROM PUBLIC;
-- Postgres lets every role drop what it was granted: one DROP OWNED would end the work for all tenants.
CREATE OR REPLACE FUNCTION extensions.konstruct_keep_grants() RETURNS event_trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF 'konstruct_app' IN (session_user, current_user) THEN
        RAISE insufficient_privilege USING MESSAGE = 'permission denied to drop what was granted';
    END IF;
END
$$;
DROP EVENT TRIGGER IF EXISTS konstruct_keep_grants;
CREATE EVENT TRIGGER konstruct_keep_grants ON ddl_command_start WHEN TAG IN ('DROP OWNED')
    EXECUTE FUNCTION extensions.konstruct_keep_grants();
REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
GRANT USAGE ON LANGUAGE plpgsql TO konstruct_owner;
\else
\warn 'konstruct: only a superuser can keep SQL from entering a tenant: see docs/tenancy.md'
\endif

-- No statement of web and workers waits or works for ever, or fills the disk with its temporary files.
-- A value that is set already is kept.
-- A batch of embeddings computes inside its transaction: longer than a job may take.
SELECT format('ALTER ROLE konstruct_app SET %I = %L', name, value)
FROM (VALUES
    ('lock_timeout', '10s'),
    ('statement_timeout', '5min'),
    ('idle_in_transaction_session_timeout', '15min'),
    ('temp_file_limit', '1GB')
) AS wanted (name, value)
WHERE NOT EXISTS (
    SELECT FROM pg_db_role_setting
    WHERE setrole = 'konstruct_app'::regrole
      AND EXISTS (SELECT FROM unnest(setconfig) AS set WHERE starts_with(set, name || '='))
)
-- A managed service's administrator sets this one for the whole server instead: docs/operations.md.
AND (name <> 'temp_file_limit' OR has_parameter_privilege(name, 'SET')) \gexec

COMMIT;
