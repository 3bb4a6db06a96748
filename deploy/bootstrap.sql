-- What a database administrator does once, in the database that Konstruct shall use:
--
--     createdb konstruct
--     KONSTRUCT_OWNER_PASSWORD=… KONSTRUCT_APP_PASSWORD=… psql -d konstruct -f deploy/bootstrap.sql
--
-- As a superuser, or as a managed service's administrator (CREATEROLE). Safe to run again; passwords
-- are changed only where the variables are set. PostgreSQL 16–18, vector >= 0.8. The embedded Postgres
-- runs this same file.

\set ON_ERROR_STOP on
SET client_min_messages = warning;

-- The owner migrates, provisions tenants and erases; the app is what web and workers are. Neither can
-- go round row-level security.
SELECT format('CREATE ROLE %I LOGIN', role)
FROM unnest(ARRAY['konstruct_owner', 'konstruct_app']) AS role
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) \gexec
-- Said only where it is not so already, for who is no superuser may not even repeat it.
SELECT format('ALTER ROLE %I NOSUPERUSER NOBYPASSRLS', rolname)
FROM pg_roles
WHERE rolname IN ('konstruct_owner', 'konstruct_app') AND (rolsuper OR rolbypassrls) \gexec

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
-- a forgotten grant fails safe. The tables in public (tenants, domains) have no tenant's data.
ALTER DEFAULT PRIVILEGES FOR ROLE konstruct_owner GRANT USAGE ON SCHEMAS TO konstruct_app;
ALTER DEFAULT PRIVILEGES FOR ROLE konstruct_owner GRANT SELECT ON TABLES TO konstruct_app;
ALTER DEFAULT PRIVILEGES FOR ROLE konstruct_owner GRANT USAGE ON SEQUENCES TO konstruct_app;
ALTER DEFAULT PRIVILEGES FOR ROLE konstruct_owner IN SCHEMA public
    GRANT INSERT, UPDATE, DELETE ON TABLES TO konstruct_app;
