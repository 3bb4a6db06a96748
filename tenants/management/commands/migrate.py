"""manage.py migrate: every schema, several at a time, one tenant's failure not the others'."""

from itertools import chain
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db.migrations.loader import AmbiguityError, MigrationLoader

from tenants.context import tenant_connection
from tenants.locks import only_one_migrate
from tenants.management.base import KonstructCommand, UsageError
from tenants.models import Tenant
from tenants.roles import OWNER_ROLE
from tenants.schemas.executor import DJANGO_OPTIONS
from tenants.schemas.migrating import (
    MigrationResult,
    default_parallel,
    migrate_schema,
    migrate_schemas,
    recording_for,
)
from tenants.schemas.migration_state import schemas_to_visit

PUBLIC = "public"


class Command(KonstructCommand):
    """Migrates the public schema first, then each tenant's."""

    # Django's check compares it with makemigrations'.
    autodetector = DjangoMigrate.autodetector
    help = (
        "Migrates all schemas: the public one, then every tenant's. A tenant that fails does not "
        "stop the others and is reported at the end. Tenants that never served come last and are "
        "set up; one that cannot be is reported, and is no failure of the run."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        DjangoMigrate().add_arguments(parser)
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "-s",
            "--schema",
            dest="schema_name",
            metavar="TENANT",
            help="Only this tenant (slug or schema name), or public.",
        )
        which.add_argument("--shared", action="store_true", help="Only the public schema.")
        which.add_argument("--tenant", action="store_true", help="Only the tenants' schemas.")
        parser.add_argument(
            "--parallel",
            type=int,
            default=default_parallel(),
            metavar="N",
            help="How many tenants to migrate at a time (default here: %(default)s).",
        )

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        kwargs: dict[Any, Any] = super().get_check_kwargs(options)
        return {**kwargs, "databases": [options["database"]]}

    def handle(self, *args: Any, **options: Any) -> None:
        if options["parallel"] < 1:
            raise UsageError("--parallel must be at least 1")
        _refuse_unknown_target(options)
        tenant_connection().set_schema_to_public()
        only = _schema_name(options["schema_name"])
        if options["plan"] or options["check_unapplied"]:
            self._run(only, options)
            return
        _refuse_other_roles()
        with only_one_migrate() as is_alone:
            if not is_alone:
                raise CommandError("another migrate is running on this database; wait for it")
            self._run(only, options)

    def _run(self, only: str | None, options: dict[str, Any]) -> None:
        django_options = {name: options[name] for name in DJANGO_OPTIONS}
        django_options["verbosity"] = max(options["verbosity"] - 1, 0)
        outcomes: list[MigrationResult] = []
        if only == PUBLIC or (only is None and not options["tenant"]):
            outcome = migrate_schema(PUBLIC, django_options)
            outcomes.append(outcome)
            self._report(outcome, PUBLIC, "", options)
            if outcome.error:
                raise CommandError(f"the public schema was not migrated: {outcome.error}")
        if only != PUBLIC and not options["shared"]:
            outcomes += self._migrate_tenants(only, django_options, options)
        if options["check_unapplied"] and any(outcome.unapplied for outcome in outcomes):
            raise CommandError("there are migrations that were not applied")

    def _migrate_tenants(
        self, only: str | None, django_options: dict[str, Any], options: dict[str, Any]
    ) -> list[MigrationResult]:
        served, new = _slugs()
        if only:
            served, new = {only: served.get(only) or new[only]}, {}
            django_options = {**django_options, "restored": True}
        elif any(options[name] for name in ("app_label", "plan", "check_unapplied", "fake")):
            new = {}  # they get all migrations or none
        current = 0
        if not only and (recording := recording_for(django_options)) is not None:
            to_visit = schemas_to_visit(recording.state)
            current = len(served)
            served = {schema: slug for schema, slug in served.items() if schema in to_visit}
            current -= len(served)
            if current and options["verbosity"]:
                self.stdout.write(f"{current} tenants  up to date")
        slugs = served | new
        outcomes = []
        migrated = chain(
            migrate_schemas(list(served), django_options, parallel=options["parallel"]),
            # Who is at one of them, or tries again later, is the owner's worker or create_tenant.
            migrate_schemas(
                list(new), django_options, parallel=options["parallel"], wait_seconds=0
            ),
        )
        width = max(map(len, slugs.values()), default=0)
        for number, outcome in enumerate(migrated, start=1):
            outcomes.append(outcome)
            progress = f"[{number:>{len(str(len(slugs)))}}/{len(slugs)}] "
            self._report(outcome, f"{slugs[outcome.schema_name]:<{width}}", progress, options)
        failed = {outcome.schema_name for outcome in outcomes if outcome.error}
        if failed & set(new):
            names = ", ".join(sorted(new[name] for name in failed & set(new)))
            self.stderr.write(
                f"Not set up yet: {names}. The owner's worker goes on trying; when the cause is"
                " removed, create_tenant SLUG does it at once."
            )
        if failed & set(served):
            names = ", ".join(sorted(served[name] for name in failed & set(served)))
            raise CommandError(
                f"{len(failed & set(served))} of {current + len(slugs)} tenants not migrated:"
                f" {names}. Remove the cause and run migrate again; -v 2 shows the traceback."
            )
        return outcomes

    def _report(
        self, outcome: MigrationResult, name: str, progress: str, options: dict[str, Any]
    ) -> None:
        verbosity = options["verbosity"]
        if outcome.busy and verbosity:
            self.stdout.write(f"{progress}{name}  another process is at it")
        elif outcome.error:
            line = f"{progress}{name}  FAILED  {outcome.seconds:.2f} s  {outcome.error}"
            self.stderr.write(line)
        elif verbosity:
            what = f"{outcome.applied} applied" if outcome.applied else "up to date"
            if options["plan"]:
                what = "plan"
            elif options["check_unapplied"]:
                what = "not up to date" if outcome.unapplied else "up to date"
            if outcome.sealed:
                what += f", protected {', '.join(outcome.sealed)}"
            self.stdout.write(f"{progress}{name}  {what}  {outcome.seconds:.2f} s")
        if outcome.details and (verbosity > 1 or options["plan"]):
            self.stdout.write(outcome.details)


def _refuse_unknown_target(options: dict[str, Any]) -> None:
    """Say at once, and once, that an app or a migration does not exist."""
    app_label, name = options.get("app_label"), options.get("migration_name")
    if not app_label:
        return
    try:
        apps.get_app_config(app_label)
        if name and name != "zero":
            MigrationLoader(None).get_migration_by_prefix(app_label, name)
    except (LookupError, AmbiguityError) as error:
        message = f"no migration of {app_label!r} is called {name!r}" if name else str(error)
        raise UsageError(message) from error


def _schema_name(wanted: str | None) -> str | None:
    """Return the schema of a slug or schema name, None for all schemas."""
    if not wanted or wanted == PUBLIC:
        return wanted or None
    found = Tenant.objects.filter(slug=wanted) | Tenant.objects.filter(schema_name=wanted)
    schema_name = found.values_list("schema_name", flat=True).first()
    if schema_name is None:
        raise UsageError(f"no tenant is called {wanted!r} (list_tenants shows them)")
    return schema_name


def _slugs() -> tuple[dict[str, str], dict[str, str]]:
    """Return slugs by schema name: of tenants that have served, and of those that never did.

    None where --plan or --check look at an empty database.
    """
    connection = tenant_connection()
    if Tenant._meta.db_table not in connection.introspection.table_names():
        return {}, {}
    new = Tenant.objects.filter(state=Tenant.State.PROVISIONING)
    of_schema = ("schema_name", "slug")
    return (
        dict(Tenant.objects.provisioned().values_list(*of_schema)),
        dict(new.values_list(*of_schema)),
    )


def _refuse_other_roles() -> None:
    with tenant_connection().cursor() as cursor:
        cursor.execute("SELECT current_user, has_database_privilege(current_database(), 'CREATE')")
        role, may_create = cursor.fetchone()
    if not may_create:
        raise CommandError(
            f"migrate must run as {OWNER_ROLE}, not as {role}: set DATABASE_OWNER_URL and use"
            " manage.py, or set KONSTRUCT_DB_ROLE=owner"
        )
