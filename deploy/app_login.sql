-- A second login for web and workers, beside konstruct_app, so that its password can be replaced while
-- they serve: two logins have two passwords (docs/operations.md, "Rotate secrets").
--
--     KONSTRUCT_APP_PASSWORD=… psql -d konstruct -v login=konstruct_app_2 -f deploy/app_login.sql
--
-- As the superuser who ran bootstrap.sql. Sessions of the login act as konstruct_app, with its grants,
-- its policies and its limits, and with nothing else. Run it again to change the password.

\set ON_ERROR_STOP on
SET client_min_messages = warning;
\getenv password KONSTRUCT_APP_PASSWORD

BEGIN;
SELECT format('CREATE ROLE %I LOGIN IN ROLE konstruct_app', :'login')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'login') \gexec
ALTER ROLE :"login" PASSWORD :'password';
-- Settings of a role hold for its own logins alone.
SELECT format('ALTER ROLE %I SET %I = %L', :'login', split_part(setting, '=', 1),
              substr(setting, strpos(setting, '=') + 1))
FROM pg_db_role_setting, unnest(setconfig) AS setting
WHERE setrole = 'konstruct_app'::regrole AND setdatabase = 0 \gexec
ALTER ROLE :"login" SET role = 'konstruct_app';
COMMIT;
