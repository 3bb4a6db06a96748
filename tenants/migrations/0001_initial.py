"""The public schema: tenants, their domains, jobs and the operators' log, each behind its policy.

The public schema is last on every search_path: its rows are hidden from connections that are in a tenant.
"""

import uuid

from django.core import validators
from django.db import migrations, models
from django.db.models import deletion
from django.db.models.functions import Cast, Concat, Now, Replace

from tenants.fields import CURRENT_TENANT, IS_CURRENT_TENANT, CurrentTenant
from tenants.naming import APP_ROLE, OWNER_ROLE
from tenants.operations import POLICY, CommentOnTables, GrantToApp

CURRENT = f"(SELECT {CURRENT_TENANT})"
# Rows of the operators, and which of them a tenant sees.
HIDDEN = {
    "auth_group": "false",
    "auth_group_permissions": "false",
    "auth_user": "false",
    "auth_user_groups": "false",
    "auth_user_user_permissions": "false",
    "django_admin_log": "false",
    "django_session": "false",
    "tenants_tenant": f"id = {CURRENT}",
    "tenants_domain": f"tenant_id = {CURRENT}",
    "tenants_operatorevent": "false",
    # A tenant may read which migrations a state has. The owner runs the SQL of this table.
    "tenants_schemastate": "true",
    "tenants_worker": "false",
}
# What the application may do besides SELECT. Operators rename, suspend and resume a tenant, and ask
# for its migration and deletion; the rest is the owner's. Postgres numbers the claims, because a
# tenant could take the numbers of others.
PRIVILEGES = {
    "tenants_tenant": [
        "INSERT",
        "UPDATE (name, state, migration_asked_at, deletion_asked_at, state_before, quotas, usage)",
    ],
    "tenants_domain": ["INSERT", "UPDATE (domain, is_primary, tenant_id)", "DELETE"],
    "tenants_operatorevent": ["INSERT"],
    "tenants_workspaceclaim": ["INSERT (channel, workspace, tenant_id, created_at)", "DELETE"],
    "tenants_job": [
        "UPDATE (worker, lease, leased_until, lane, traceparent)",
    ],
    "auth_user": [
        "INSERT",
        "UPDATE (password, last_login, is_superuser, username, first_name, last_name, email, is_staff, is_active, date_joined)",
        "DELETE",
    ],
    "auth_group": ["INSERT", "UPDATE (name)", "DELETE"],
    "auth_group_permissions": ["INSERT", "DELETE"],
    "auth_user_groups": ["INSERT", "DELETE"],
    "auth_user_user_permissions": ["INSERT", "DELETE"],
    # Rows are deleted with the person who made them.
    "django_admin_log": ["INSERT", "DELETE"],
    "django_session": ["INSERT", "UPDATE (session_data, expire_date)", "DELETE"],
}
# The policies above say who sees a row, which for a DELETE is all that Postgres asks.
OPERATORS_DELETE = f"AS RESTRICTIVE FOR DELETE USING ((SELECT {CURRENT_TENANT}) IS NULL)"
# Functions of the owner return the jobs of workers that have ended.
NO_TENANT = "NULLIF(current_setting('app.current_tenant', true), '') IS NULL"


def policy(table, name, clauses):
    return migrations.RunSQL(
        f"CREATE POLICY {name} ON public.{table} {clauses}", f"DROP POLICY {name} ON public.{table}"
    )


def force(table):
    return migrations.RunSQL(
        f"ALTER TABLE public.{table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        f"ALTER TABLE public.{table} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY",
    )


def hide(table, own_rows):
    """Hide rows of a public table from tenants, except those of a condition.

    Without it, a tenant that lacks a table (or does not exist) would read the operators' table.
    """
    visible = f"{CURRENT} IS NULL OR {own_rows}"
    clauses = f"USING ({visible}) WITH CHECK ({CURRENT} IS NULL)"
    return [force(table), policy(table, POLICY, clauses)]


# A tenant adds and removes its own claims; no session may change one. Sessions without a tenant
# read all of them, to find a tenant by them; only the owner removes them there, with the tenant.
CLAIMS = [
    force("tenants_workspaceclaim"),
    policy(
        "tenants_workspaceclaim",
        POLICY,
        f"FOR SELECT USING ({CURRENT} IS NULL OR {IS_CURRENT_TENANT})",
    ),
    policy(
        "tenants_workspaceclaim", "tenant_claims", f"FOR INSERT WITH CHECK ({IS_CURRENT_TENANT})"
    ),
    policy("tenants_workspaceclaim", "tenant_releases", f"FOR DELETE USING ({IS_CURRENT_TENANT})"),
    policy(
        "tenants_workspaceclaim",
        "owner_removes",
        f"FOR DELETE TO {OWNER_ROLE} USING ({CURRENT} IS NULL)",
    ),
    migrations.RunSQL(
        f"REVOKE UPDATE ON public.tenants_workspaceclaim FROM {APP_ROLE}",
        f"GRANT UPDATE ON public.tenants_workspaceclaim TO {APP_ROLE}",
    ),
]
# A tenant has all privileges on its own jobs. A session without a tenant sees jobs that can be
# tried, and may only move a due sweep_at from the past into the future. No session may change the
# tenant or subject of a row.
CAN_BE_TRIED = f"{CURRENT} IS NULL AND failed_at IS NULL"
JOBS = [
    force("tenants_job"),
    policy("tenants_job", POLICY, f"USING ({IS_CURRENT_TENANT}) WITH CHECK ({IS_CURRENT_TENANT})"),
    policy(
        "tenants_job",
        "workers_look",
        f"FOR SELECT USING ({CAN_BE_TRIED} AND sweep_at IS NOT NULL)",
    ),
    policy(
        "tenants_job",
        "workers_claim",
        f"FOR UPDATE USING ({CAN_BE_TRIED} AND sweep_at <= statement_timestamp())"
        f" WITH CHECK ({CAN_BE_TRIED} AND sweep_at > statement_timestamp())",
    ),
    migrations.RunSQL(
        f"REVOKE UPDATE ON public.tenants_job FROM {APP_ROLE};"
        "GRANT INSERT, DELETE, UPDATE (attempts, begun_at, error_code, last_error, due_at, sweep_at,"
        f" failed_at, held_for) ON public.tenants_job TO {APP_ROLE}",
        f"REVOKE INSERT, UPDATE, DELETE ON public.tenants_job FROM {APP_ROLE}",
    ),
]


# Functions of the owner's that do for a tenant what its SQL may not do, and the view of replies.
#
# The application may not take advisory locks. By these it takes locks with names of its tenant.
# Workers lease jobs by functions: see decision 71.
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
        SET worker = NULL, leased_until = NULL,
            sweep_at = CASE WHEN failed_at IS NULL AND held_for = '' THEN least(due_at, clock_timestamp())
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
        SET worker = NULL, leased_until = NULL, begun_at = NULL,
            attempts = greatest(attempts - (begun_at IS NOT NULL)::int, 0),
            sweep_at = CASE WHEN failed_at IS NULL AND held_for = '' THEN least(due_at, clock_timestamp())
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
    initial = True

    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Tenant",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        help_text="Short name; the first part of the default domain.",
                        max_length=63,
                        unique=True,
                        validators=[
                            validators.RegexValidator(
                                "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\Z",
                                "Use lower-case letters, digits and inner hyphens, at most 63.",
                            )
                        ],
                    ),
                ),
                ("name", models.CharField(help_text="Display name.", max_length=200)),
                ("schema_name", models.CharField(editable=False, max_length=63, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("provisioning", "Provisioning"),
                            ("active", "Active"),
                            ("suspended", "Suspended"),
                            ("restoring", "Restoring"),
                        ],
                        default="provisioning",
                        help_text="Only an active tenant is served.",
                        max_length=12,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=Now(), editable=False),
                ),
                (
                    "migrated_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="Time of the last migration.",
                        null=True,
                    ),
                ),
                (
                    "migrated_to",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="State of its schema after the last migration.",
                        max_length=33,
                    ),
                ),
                (
                    "provisioning_error",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="Error of the last attempt to create or migrate its schema.",
                    ),
                ),
                (
                    "provisioning_failed_at",
                    models.DateTimeField(
                        blank=True, editable=False, help_text="Time of this error.", null=True
                    ),
                ),
                (
                    "migration_asked_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When an operator requested to create or migrate its schema. Empty: no request is pending.",
                        null=True,
                    ),
                ),
                (
                    "server",
                    models.CharField(
                        db_default="default",
                        editable=False,
                        help_text="Database server of its schema.",
                        max_length=32,
                    ),
                ),
                (
                    "moving_to",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="Database server that it is being moved to. It is not served during the move.",
                        max_length=32,
                    ),
                ),
                (
                    "deletion_asked_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When an operator requested its deletion. Empty: no request.",
                        null=True,
                    ),
                ),
                (
                    "delete_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="When it will be deleted for good, unless it is restored before. Set by the owner worker.",
                        null=True,
                    ),
                ),
                (
                    "state_before",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="State to return to when its deletion is cancelled or its backup is restored. Empty: neither is in progress.",
                        max_length=12,
                    ),
                ),
                (
                    "backed_up_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="Time of its last backup. Empty: none.",
                        null=True,
                    ),
                ),
                (
                    "quotas",
                    models.JSONField(
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        editable=False,
                        help_text="Limits by quota: soft, hard or both. Empty: unlimited.",
                    ),
                ),
                (
                    "usage",
                    models.JSONField(
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        editable=False,
                        help_text="Usage at the last measurement, and the limits that were reached.",
                    ),
                ),
            ],
            options={
                "ordering": ["slug"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "schema_name",
                                Concat(
                                    models.Value("t_"),
                                    Replace(
                                        Cast("id", models.CharField()),
                                        models.Value("-"),
                                        models.Value(""),
                                    ),
                                ),
                            )
                        ),
                        name="tenant_schema_is_named_after_its_id",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["provisioning", "active", "suspended", "restoring"])
                        ),
                        name="tenant_state_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Domain",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("is_primary", models.BooleanField(db_index=True, default=True)),
                (
                    "domain",
                    models.CharField(
                        error_messages={"unique": "This host serves a tenant already."},
                        help_text="Host name, without a port.",
                        max_length=253,
                        unique=True,
                        validators=[
                            validators.RegexValidator(
                                "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\\Z",
                                "Give a lower-case host name, without a port.",
                            )
                        ],
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=deletion.CASCADE,
                        related_name="domains",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "ordering": ["domain"],
            },
        ),
        migrations.CreateModel(
            name="WorkspaceClaim",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("channel", models.CharField(help_text="slack …", max_length=32)),
                (
                    "workspace",
                    models.CharField(
                        help_text="The channel's id of the workspace.", max_length=255
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=deletion.CASCADE,
                        related_name="claims",
                        to="tenants.tenant",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=Now(), editable=False),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("channel", "workspace"), name="workspace_has_a_tenant"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OperatorEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "created_at",
                    models.DateTimeField(db_default=Now(), help_text="Time of the event."),
                ),
                (
                    "actor_kind",
                    models.TextField(
                        choices=[
                            ("person", "operator in the admin"),
                            ("command", "operator's command"),
                            ("unknown", "unknown"),
                        ],
                        help_text="Kind of the actor.",
                    ),
                ),
                (
                    "actor_id",
                    models.TextField(
                        blank=True, default="", help_text="Id of the operator who was logged in."
                    ),
                ),
                (
                    "actor",
                    models.TextField(
                        help_text="Name of the actor at that time; for a command, the account that ran it."
                    ),
                ),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("list", "listed"),
                            ("view", "looked at"),
                            ("search", "searched"),
                            ("export", "exported"),
                            ("create", "created"),
                            ("edit", "edited"),
                            ("suspend", "suspended"),
                            ("resume", "resumed"),
                            ("request_deletion", "asked to delete"),
                            ("delete", "deleted"),
                            ("restore", "restored"),
                            ("login", "logged in"),
                            ("logout", "logged out"),
                            ("login_failed", "failed to log in"),
                            ("refuse", "was refused"),
                        ],
                        help_text="The action.",
                    ),
                ),
                (
                    "subject",
                    models.TextField(help_text="Type of the object: tenant, user, group …"),
                ),
                (
                    "subject_id",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Id of the object, if the action had a single one.",
                    ),
                ),
                (
                    "name",
                    models.TextField(blank=True, default="", help_text="Name of the object."),
                ),
                (
                    "address",
                    models.GenericIPAddressField(
                        blank=True, help_text="IP address of the client.", null=True
                    ),
                ),
                (
                    "detail",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, output_field=models.JSONField()),
                        default=dict,
                        help_text="Parameters; for a change, the values before and after.",
                    ),
                ),
            ],
            options={
                "verbose_name": "operation",
                "verbose_name_plural": "operators' log",
            },
        ),
        migrations.CreateModel(
            name="SchemaState",
            fields=[
                (
                    "name",
                    models.CharField(
                        help_text="Value of migrated_to of tenants in this state.",
                        max_length=33,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("migrations", models.JSONField(help_text="Migrations that such a schema has.")),
            ],
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "kind",
                        "key",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "tenant_id",
                    models.UUIDField(
                        db_default=CurrentTenant(),
                        help_text="The tenant of the job.",
                    ),
                ),
                ("kind", models.TextField(help_text="Kind of the job: reply …")),
                (
                    "key",
                    models.UUIDField(
                        help_text="Id of the job's object: for most kinds, a message."
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        db_default=0, default=0, help_text="Number of attempts."
                    ),
                ),
                (
                    "begun_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Start of the current attempt. Empty: no attempt is running.",
                        null=True,
                    ),
                ),
                (
                    "error_code",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Code of the last error.",
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True, db_default="", default="", help_text="Text of the last error."
                    ),
                ),
                (
                    "due_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="Earliest time of the next attempt.",
                    ),
                ),
                (
                    "sweep_at",
                    models.DateTimeField(
                        blank=True,
                        db_default=Now(),
                        help_text="Earliest time at which a worker may claim it. Empty: it waits for a person.",
                        null=True,
                    ),
                ),
                (
                    "failed_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it failed for good. Empty: it is still retried.",
                        null=True,
                    ),
                ),
                (
                    "held_for",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why it waits, such as for a person. Empty: it does not wait.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(),
                        help_text="When it was enqueued.",
                    ),
                ),
                (
                    "worker",
                    models.UUIDField(
                        blank=True, help_text="Worker process that leases it.", null=True
                    ),
                ),
                (
                    "lease",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Number of leases, the fencing token of the current one.",
                    ),
                ),
                (
                    "leased_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="End of the lease. Another worker may then lease the job.",
                        null=True,
                    ),
                ),
                (
                    "lane",
                    models.UUIDField(
                        blank=True,
                        help_text="At most one job of a lane is leased at a time.",
                        null=True,
                    ),
                ),
                (
                    "traceparent",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The span that enqueued it, in W3C format.",
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("failed_at__isnull", True), ("sweep_at__isnull", False)
                        ),
                        fields=["kind", "tenant_id", "sweep_at"],
                        name="job_turns",
                    ),
                    models.Index(
                        condition=models.Q(("worker__isnull", False)),
                        fields=["worker"],
                        name="job_worker",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("lane__isnull", False), ("leased_until__isnull", False)
                        ),
                        fields=("tenant_id", "kind", "lane"),
                        name="job_lane",
                    )
                ],
            },
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
        *(operation for table, own_rows in HIDDEN.items() for operation in hide(table, own_rows)),
        *CLAIMS,
        *JOBS,
        *(GrantToApp(table, *privileges) for table, privileges in PRIVILEGES.items()),
        policy("tenants_tenant", "operators_delete", OPERATORS_DELETE),
        policy("tenants_domain", "operators_delete", OPERATORS_DELETE),
        policy(
            "tenants_job",
            "workers_return",
            f"FOR UPDATE TO {OWNER_ROLE} USING ({NO_TENANT}) WITH CHECK ({NO_TENANT})",
        ),
        policy(
            "tenants_job", "workers_return_look", f"FOR SELECT TO {OWNER_ROLE} USING ({NO_TENANT})"
        ),
        # Functions of the owner's alone reach it.
        migrations.RunSQL(
            f"REVOKE ALL ON public.tenants_worker FROM {APP_ROLE}",
            f"GRANT SELECT ON public.tenants_worker TO {APP_ROLE}",
        ),
        CommentOnTables(
            tables={
                "Domain": "A host name that serves a tenant.",
                "Job": "Work of a tenant that waits for a worker. One table for all tenants and kinds of work.",
                "OperatorEvent": "An event of the operators' log: actor, action, subject, time and address. Append-only.",
                "SchemaState": "A state of tenants' schemas. Only the owner writes it.",
                "Tenant": "A customer: one schema with its users, agents and memories, isolated from all others.",
                "Worker": "A worker process that leases jobs, until it expires.",
                "WorkspaceClaim": "The tenant of a workspace of a channel (a Slack team). A workspace has one tenant.",
            },
        ),
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
