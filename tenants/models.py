"""Tenants, their domains and their jobs (public schema), and the base of tenants' models."""

import uuid
from datetime import datetime
from typing import Any, Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.expressions import DatabaseDefault
from django.db.models.functions import Cast, Coalesce, Concat, Now, Replace
from django.utils.translation import gettext
from django_tenants.models import DomainMixin, TenantMixin

from tenants import fields, naming
from tenants.exceptions import InvalidTenant
from tenants.fields import CurrentTenant
from tenants.personal_data import PUBLIC, NoPersonalData, PersonalData
from tenants.servers import MAIN, bytes_on, servers

# A slug is one label of a host name; a domain is labels joined by dots.
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"


class TenantQuerySet(models.QuerySet["Tenant"]):
    """Query vocabulary of tenants."""

    def serving(self) -> "TenantQuerySet":
        """Return the tenants that are served."""
        return self.filter(state=Tenant.State.ACTIVE, moving_to="")

    def provisioned(self) -> "TenantQuerySet":
        """Return the tenants in any state but PROVISIONING: they have a schema."""
        return self.exclude(state=Tenant.State.PROVISIONING)

    def oldest_backup(self) -> datetime | None:
        """Return the earliest time of the tenants' last backups; None if there are no tenants.

        A tenant without a backup counts with its creation time.
        """
        last = Coalesce("backed_up_at", "created_at")
        oldest: datetime | None = self.aggregate(oldest=models.Min(last))["oldest"]
        return oldest

    def with_reached_quotas(self) -> "TenantQuerySet":
        """Return the tenants that had reached a limit of a quota at their last measurement."""
        return self.filter(usage__has_key="reached").exclude(usage__reached={})

    def least_used_server(self) -> str:
        """Return the server with the fewest bytes, among the servers that take new tenants.

        Raises:
            InvalidTenant: no server takes new tenants.
            ServerDown: one of them takes no connections.
        """
        names = [name for name in servers() if name not in settings.TENANT_DATABASES_CLOSED]
        if names == [MAIN]:
            return MAIN
        if not names:
            raise InvalidTenant("no server takes new tenants: see TENANT_DATABASES_CLOSED")
        return min(names, key=bytes_on)


class Tenant(TenantMixin):
    """A customer: one schema with its users, agents and memories, isolated from all others."""

    # Schemas are made by a process with the owner's role: see provisioning.py.
    auto_create_schema = False
    auto_drop_schema = False

    class State(models.TextChoices):
        PROVISIONING = "provisioning"
        ACTIVE = "active"
        SUSPENDED = "suspended"
        RESTORING = "restoring"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.CharField(
        max_length=63,
        unique=True,
        validators=[
            RegexValidator(
                rf"^{_LABEL}\Z", "Use lower-case letters, digits and inner hyphens, at most 63."
            )
        ],
        help_text="Short name; the first part of the default domain.",
    )
    name = models.CharField(max_length=200, help_text="Display name.")
    schema_name = models.CharField(max_length=63, unique=True, editable=False)
    state = models.CharField(
        max_length=12,
        choices=State,
        default=State.PROVISIONING,
        help_text="Only an active tenant is served.",
    )
    server = models.CharField(
        max_length=32,
        db_default="default",
        editable=False,
        help_text="Database server of its schema.",
    )
    moving_to = fields.optional_char(
        max_length=32,
        editable=False,
        help_text="Database server that it is being moved to. It is not served during the move.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    migrated_to = fields.optional_char(
        max_length=33, editable=False, help_text="State of its schema after the last migration."
    )
    migrated_at = fields.optional_time(editable=False, help_text="Time of the last migration.")
    provisioning_error = fields.optional_text(
        editable=False, help_text="Error of the last attempt to create or migrate its schema."
    )
    provisioning_failed_at = fields.optional_time(editable=False, help_text="Time of this error.")
    migration_asked_at = fields.optional_time(
        editable=False,
        help_text="When an operator requested to create or migrate its schema. Empty: no request "
        "is pending.",
    )

    deletion_asked_at = fields.optional_time(
        editable=False, help_text="When an operator requested its deletion. Empty: no request."
    )
    delete_at = fields.optional_time(
        editable=False,
        help_text="When it will be deleted for good, unless it is restored before. Set by the "
        "owner worker.",
    )
    state_before = fields.optional_char(
        max_length=12,
        editable=False,
        help_text="State to return to when its deletion is cancelled or its backup is restored. "
        "Empty: neither is in progress.",
    )
    backed_up_at = fields.optional_time(
        editable=False, help_text="Time of its last backup. Empty: none."
    )

    quotas = fields.json_object(
        editable=False, help_text="Limits by quota: soft, hard or both. Empty: unlimited."
    )
    usage = fields.json_object(
        editable=False, help_text="Usage at the last measurement, and the limits that were reached."
    )

    objects = TenantQuerySet.as_manager()

    personal_data = NoPersonalData("the tenant's name, its limits and its usage in numbers")

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(
                # The code computes the name of the schema from the id.
                condition=models.Q(
                    schema_name=Concat(
                        models.Value("t_"),
                        Replace(
                            Cast("id", models.CharField()), models.Value("-"), models.Value("")
                        ),
                    )
                ),
                name="tenant_schema_is_named_after_its_id",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["provisioning", "active", "suspended", "restoring"]),
                name="tenant_state_is_known",
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Name a new tenant's schema after its id, which the admin's forms settle only now.

        Without a server it is placed on one that takes new tenants.
        """
        if self._state.adding:
            self.id = self.id or uuid.uuid4()
            if isinstance(self.server, DatabaseDefault):
                self.server = Tenant.objects.least_used_server()
            self.schema_name = naming.schema_name_of(self.id)
        super().save(*args, **kwargs)

    def _check_schema_name_is_unique(self) -> None:
        """Do nothing where django-tenants reads all tenants: the id is new, and so is the name."""


class SchemaState(models.Model):
    """A state of tenants' schemas. Only the owner writes it."""

    name = models.CharField(
        primary_key=True, max_length=33, help_text="Value of migrated_to of tenants in this state."
    )
    migrations = models.JSONField(help_text="Migrations that such a schema has.")

    personal_data = NoPersonalData("migrations")

    def __str__(self) -> str:
        return self.name


class Domain(DomainMixin):
    """A host name that serves a tenant."""

    domain = models.CharField(
        max_length=253,
        unique=True,
        validators=[
            RegexValidator(
                rf"^{_LABEL}(\.{_LABEL})*\Z", "Give a lower-case host name, without a port."
            )
        ],
        error_messages={"unique": "This host serves a tenant already."},
        help_text="Host name, without a port.",
    )

    personal_data = NoPersonalData("names of hosts")

    class Meta:
        ordering = ["domain"]

    def __str__(self) -> str:
        return self.domain

    def clean(self) -> None:
        """Refuse the hosts that serve the operators."""
        if self.domain in settings.PUBLIC_HOSTS:
            raise ValidationError(
                {"domain": f"{self.domain} is a public host of this deployment (PUBLIC_HOSTS)."}
            )


class WorkspaceClaim(models.Model):
    """The tenant of a workspace of a channel (a Slack team). A workspace has one tenant.

    What comes from a channel names its workspace and no tenant: this is where the tenant is found.
    Inside a tenant, Postgres shows and takes its own claims only; no claim is ever changed.
    """

    channel = models.CharField(max_length=32, help_text="slack …")
    workspace = models.CharField(max_length=255, help_text="The channel's id of the workspace.")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="claims")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    personal_data = NoPersonalData("ids of workspaces")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "workspace"], name="workspace_has_a_tenant")
        ]

    def __str__(self) -> str:
        return f"{self.channel} {self.workspace}"


class OperatorEvent(models.Model):
    """An event of the operators' log: actor, action, subject, time and address. Append-only.

    Written in the transaction of the action. It has no content of a tenant.
    """

    class ActorKind(models.TextChoices):
        PERSON = "person", "operator in the admin"
        COMMAND = "command", "operator's command"
        UNKNOWN = "unknown", "unknown"

    class Action(models.TextChoices):
        LIST = "list", "listed"
        VIEW = "view", "looked at"
        SEARCH = "search", "searched"
        EXPORT = "export", "exported"
        CREATE = "create", "created"
        EDIT = "edit", "edited"
        SUSPEND = "suspend", "suspended"
        RESUME = "resume", "resumed"
        REQUEST_DELETION = "request_deletion", "asked to delete"
        DELETE = "delete", "deleted"
        RESTORE = "restore", "restored"
        LOGIN = "login", "logged in"
        LOGOUT = "logout", "logged out"
        LOGIN_FAILED = "login_failed", "failed to log in"
        REFUSE = "refuse", "was refused"

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField(db_default=Now(), help_text="Time of the event.")
    actor_kind = models.TextField(choices=ActorKind, help_text="Kind of the actor.")
    actor_id = models.TextField(
        blank=True, default="", help_text="Id of the operator who was logged in."
    )
    actor = models.TextField(
        help_text="Name of the actor at that time; for a command, the account that ran it."
    )
    action = models.TextField(choices=Action, help_text="The action.")
    subject = models.TextField(help_text="Type of the object: tenant, user, group …")
    subject_id = models.TextField(
        blank=True, default="", help_text="Id of the object, if the action had a single one."
    )
    name = models.TextField(blank=True, default="", help_text="Name of the object.")
    address = models.GenericIPAddressField(
        null=True, blank=True, help_text="IP address of the client."
    )
    detail = fields.json_object(
        blank=True, help_text="Parameters; for a change, the values before and after."
    )

    personal_data = NoPersonalData("what operators did with tenants")

    class Meta:
        verbose_name = "operation"
        verbose_name_plural = "operators' log"

    def __str__(self) -> str:
        return gettext("%(actor)s %(action)s %(subject)s") % {
            "actor": self.actor,
            "action": self.get_action_display(),
            "subject": self.name or gettext(self.subject),
        }


class TenantModel(models.Model):
    """Base of every model of a tenant's schema; Postgres itself fills in the tenant."""

    tenant_id = models.UUIDField(db_default=CurrentTenant(), editable=False)

    class Meta:
        abstract = True


class JobQuerySet(models.QuerySet[Any]):
    """Jobs."""

    def waiting(self) -> Self:
        """Jobs that workers still try."""
        return self.filter(failed_at__isnull=True, held_for="")

    def held(self, held_for: str | None = None) -> Self:
        """Jobs that wait for an action: of any person, or of `held_for`."""
        held = self.exclude(held_for="")
        return held if held_for is None else held.filter(held_for=held_for)

    def failed(self) -> Self:
        """Jobs that were given up."""
        return self.filter(failed_at__isnull=False)

    def due(self) -> Self:
        """Jobs that may be done now."""
        return self.waiting().filter(due_at__lte=Now())

    def wake(self) -> int:
        """Make all due jobs claimable immediately, in their order; return their number."""
        return self.due().update(sweep_at=models.F("due_at"))


class JobColumns(models.Model):
    """The due time, the attempts and the last error of a job. No personal data."""

    attempts = fields.count(help_text="Number of attempts.")
    begun_at = fields.optional_time(
        help_text="Start of the current attempt. Empty: no attempt is running."
    )
    error_code = fields.optional_text(help_text="Code of the last error.")
    last_error = fields.optional_text(help_text="Text of the last error.")
    due_at = models.DateTimeField(db_default=Now(), help_text="Earliest time of the next attempt.")
    sweep_at = fields.optional_time(
        db_default=Now(),
        help_text="Earliest time at which a worker may claim it. Empty: it waits for a person.",
    )
    failed_at = fields.optional_time(
        help_text="When it failed for good. Empty: it is still retried."
    )
    held_for = fields.optional_text(
        help_text="Why it waits, such as for a person. Empty: it does not wait."
    )
    created_at = models.DateTimeField(db_default=Now(), help_text="When it was enqueued.")

    class Meta:
        abstract = True


class Job(JobColumns):
    """Work of a tenant that waits for a worker. One table for all tenants and kinds of work.

    Inside a tenant, Postgres shows and changes its own rows only. Where no tenant is set, workers
    see the jobs that are still tried, and may only claim due ones: they move `sweep_at` on.
    """

    pk = models.CompositePrimaryKey("tenant_id", "kind", "key")
    tenant_id = models.UUIDField(db_default=CurrentTenant(), help_text="The tenant of the job.")
    kind = models.TextField(help_text="Kind of the job: reply …")
    key = models.UUIDField(help_text="Id of the job's object: for most kinds, a message.")

    worker = fields.optional_id(help_text="Worker process that leases it.")
    lease = fields.count(help_text="Number of leases, the fencing token of the current one.")
    leased_until = fields.optional_time(
        help_text="End of the lease. Another worker may then lease the job."
    )
    lane = fields.optional_id(help_text="At most one job of a lane is leased at a time.")
    traceparent = fields.optional_text(help_text="The span that enqueued it, in W3C format.")

    # The receipt of an erasure has the keys of replies, from PendingReply.
    personal_data = PersonalData(message="key", schema=PUBLIC)

    objects = JobQuerySet.as_manager()

    class Meta:
        verbose_name = "job"
        indexes = [
            # Claims, tenant by tenant.
            models.Index(
                fields=["kind", "tenant_id", "sweep_at"],
                name="job_turns",
                condition=models.Q(failed_at__isnull=True, sweep_at__isnull=False),
            ),
            fields.index_if_set("worker", "job_worker"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant_id", "kind", "lane"],
                condition=models.Q(lane__isnull=False, leased_until__isnull=False),
                name="job_lane",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Worker(models.Model):
    """A worker process that leases jobs. The functions of Postgres that renew and end it are the
    only way to its row: see `tenants.jobs`.
    """

    id = models.UUIDField(primary_key=True)
    expires_at = models.DateTimeField(help_text="When its leases end, unless it renews them.")

    personal_data = NoPersonalData("worker processes")

    def __str__(self) -> str:
        return str(self.id)


def jobs_of(kind: str, key: Any) -> JobQuerySet:
    """Return the jobs of the rows of an outer query; `key` is an expression of that query."""
    return Job.objects.filter(tenant_id=models.OuterRef("tenant_id"), kind=kind, key=key)


def has_failed(kind: str, key: Any) -> models.Exists:
    """Return the condition that the last attempt of a row's job failed."""
    return models.Exists(jobs_of(kind, key).exclude(last_error=""))


def job_columns(kind: str, key: Any) -> dict[str, models.Subquery]:
    """Return annotations of rows by columns of their job; None where a row has no job."""
    jobs = jobs_of(kind, key)
    names = ("attempts", "error_code", "last_error", "due_at", "failed_at", "held_for")
    return {name: models.Subquery(jobs.values(name)) for name in names}
