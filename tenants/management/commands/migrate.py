"""manage.py migrate: migrate all schemas in parallel; a failing tenant does not stop the others."""

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from signal import SIGINT
from typing import Any

from django.apps import apps
from django.core.checks import Tags
from django.core.checks.registry import registry
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db import ProgrammingError, connections
from django.db.migrations.loader import AmbiguityError, MigrationLoader

from tenants.context import fetch_row, server_scope, tenant_connection
from tenants.locking import migrate_lock
from tenants.management.base import (
    NO_SCHEMA_SERVED,
    SOME_TENANTS_FAILED,
    KonstructCommand,
    UsageError,
)
from tenants.management.migration_report import Report
from tenants.models import SchemaState, Tenant
from tenants.naming import tenant_id_of
from tenants.postgresql.exceptions import ServerDown
from tenants.roles import OWNER_ROLE
from tenants.schemas.executor import DJANGO_OPTIONS
from tenants.schemas.fleet import WAVE, Fleet, default_parallel
from tenants.schemas.migrating import MigrationResult, migrate_schema, recording_for
from tenants.schemas.migration_state import is_fitting, schemas_to_visit
from tenants.schemas.recording import Recording, Step, get_recording
from tenants.schemas.replay import missing_steps
from tenants.servers import MAIN, server_of, servers

PUBLIC = "public"


class Command(KonstructCommand):
    """Migrates the public schema first, then each tenant's."""

    # Django's system check compares it with that of makemigrations.
    autodetector = DjangoMigrate.autodetector
    help = (
        "Migrates all schemas: the public one, then every tenant's. A tenant that fails "
        "does not stop the others and is reported at the end. Tenants in state "
        "provisioning come last and are set up; an error in one of them is reported, "
        "and does not fail the run."
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
            help="Number of tenants to migrate in parallel (default here: %(default)s).",
        )
        parser.add_argument(
            "--canary",
            type=int,
            default=0,
            metavar="N",
            help="Migrate N tenants first; stop if one of them fails.",
        )
        parser.add_argument(
            "--stop", action="store_true", help="Stop after the --canary tenants in any case."
        )
        parser.add_argument(
            "--wave",
            type=int,
            default=WAVE,
            metavar="N",
            help="Stop if all of N tenants in a row fail (default: %(default)s).",
        )
        parser.add_argument(
            "--lock-timeout",
            type=float,
            default=2,
            metavar="SECONDS",
            help=(
                "How long to wait for a lock on a table, during which other sessions wait too. "
                "The tenant is retried after all others (default: %(default)s)."
            ),
        )
        parser.add_argument(
            "--json",
            action="store_true",
            help="Print one JSON document per line: each tenant, then the totals.",
        )

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        kwargs: dict[Any, Any] = super().get_check_kwargs(options)
        # Without checks of URLs and of the admin, which import every view and page.
        tags = registry.tags_available() - {Tags.urls, Tags.admin}
        return {**kwargs, "databases": [options["database"]], "tags": sorted(tags)}

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("parallel", "wave"):
            if options[name] < 1:
                raise UsageError(f"--{name} must be at least 1")
        if options["stop"] and not options["canary"]:
            raise UsageError("--stop needs --canary: it stops after those")
        _refuse_unknown_target(options)
        tenant_connection().set_schema_to_public()
        only = _schema_name(options["schema_name"])
        if options["plan"] or options["check_unapplied"]:
            self._run(only, options)
            return
        _refuse_other_roles()
        with migrate_lock() as is_alone:
            if not is_alone:
                raise CommandError(
                    "another migrate is running on this database; wait for it",
                    returncode=NO_SCHEMA_SERVED,
                )
            self._run(only, options)

    def _run(self, only: str | None, options: dict[str, Any]) -> None:
        django_options = {name: options[name] for name in DJANGO_OPTIONS}
        django_options["verbosity"] = max(options["verbosity"] - 1, 0)
        django_options["lock_timeout"] = f"{options['lock_timeout']}s"
        unapplied = False
        self._not_migrated: set[str] = set()
        if only == PUBLIC or (only is None and not options["tenant"]):
            unapplied = self._migrate_public(django_options, options)
        if only != PUBLIC and not options["shared"]:
            if options["plan"] and not options["app_label"] and _has_tenant_states():
                self._plan(only, options)
            elif options["check_unapplied"] and not options["app_label"] and not unapplied:
                unapplied = self._check(only)
            else:
                unapplied |= self._migrate_tenants(only, django_options, options)
        if self._not_migrated:
            raise CommandError(
                f"the public schema of {', '.join(sorted(self._not_migrated))} was not migrated."
                " Remove the cause and run migrate again",
                returncode=SOME_TENANTS_FAILED,
            )
        if options["check_unapplied"] and unapplied:
            raise CommandError("there are migrations that were not applied")

    def _migrate_public(self, django_options: dict[str, Any], options: dict[str, Any]) -> bool:
        """Migrate the public schema of each server; return whether one has unapplied migrations."""
        outcomes = {MAIN: migrate_schema(PUBLIC, django_options)}
        if not outcomes[MAIN].error and (others := servers()[1:]):
            with ThreadPoolExecutor(len(others)) as threads:
                results = threads.map(lambda server: _public_of(server, django_options), others)
                outcomes |= zip(others, results, strict=True)
        for server, outcome in outcomes.items():
            if not options["json"]:
                name = PUBLIC if server == MAIN else f"{PUBLIC} of {server}"
                self._report({}, options).write_schema(outcome, name)
        if error := outcomes[MAIN].error:
            raise CommandError(
                f"the public schema was not migrated: {error}", returncode=NO_SCHEMA_SERVED
            )
        self._not_migrated = {server for server, outcome in outcomes.items() if outcome.error}
        return any(outcome.unapplied for outcome in outcomes.values())

    def _plan(self, only: str | None, options: dict[str, Any]) -> None:
        """Show the migrations that tenants lack. Nothing is changed."""
        served, _ = _slugs()
        schemas = [only] if only else list(served)
        for missing, names in _plans_of(get_recording(keep=False), schemas).items():
            tenants = f"{len(names)} tenants  "
            if missing is None:
                self.stdout.write(f"{tenants}without a schema: {_some(served, names)}")
            elif not missing:
                self.stdout.write(f"{tenants}have all migrations")
            else:
                number = "1 migration" if len(missing) == 1 else f"{len(missing)} migrations"
                self.stdout.write(f"{tenants}lack {number}: {_some(served, names)}")
                for step in missing:
                    note = "" if step.can_be_replayed(empty=False) else "  (by Django, one by one)"
                    self.stdout.write(f"    {step.app}.{step.name}{note}")

    def _check(self, only: str | None) -> bool:
        """List the tenants that lack migrations; return whether there are any."""
        tenants = Tenant.objects.provisioned()
        if only:
            tenants = tenants.filter(schema_name=only)
        behind = list(tenants.exclude(is_fitting()).values_list("slug", flat=True))
        if behind:
            self.stdout.write(f"{len(behind)} tenants  not up to date: {_listed(behind)}")
        if number := tenants.count() - len(behind):
            self.stdout.write(f"{number} tenants  up to date")
        return bool(behind)

    def _migrate_tenants(
        self, only: str | None, django_options: dict[str, Any], options: dict[str, Any]
    ) -> bool:
        """Migrate the tenants; return whether one has unapplied migrations, with --check."""
        served, new = _slugs()
        current = 0
        if only:
            served, new = {only: served.get(only) or new[only]}, {}
            django_options = {**django_options, "restored": True}
        elif any(options[name] for name in ("app_label", "plan", "check_unapplied", "fake")):
            new = {}  # they get all migrations or none
        if not only and (made := recording_for(django_options)) is not None:
            to_visit, number = schemas_to_visit(made.state), len(served)
            served = {schema: slug for schema, slug in served.items() if schema in to_visit}
            current = number - len(served)
            if current and options["verbosity"] and not options["json"]:
                self.stdout.write(f"{current} tenants  up to date")
        report = self._report(served | new, options)
        for schema in sorted(_schemas_on(self._not_migrated) & (served | new).keys()):
            report.add(MigrationResult(schema, error="its server's public schema was not migrated"))
        pace = {"canary": options["canary"], "stop": options["stop"], "wave": options["wave"]}
        fleet = Fleet(django_options, parallel=options["parallel"], **pace)
        # Tenants that another process, the owner's worker or create_tenant, sets up or will retry.
        others = Fleet(django_options, parallel=options["parallel"], wait_seconds=0)
        try:
            for outcome in fleet.migrate([name for name in served if name not in report.outcomes]):
                report.add(outcome)
            rest = [] if fleet.stopped else [name for name in new if name not in report.outcomes]
            for outcome in others.migrate(rest):
                report.add(outcome)
        except KeyboardInterrupt:
            report.end("interrupted", up_to_date=current)
            done = len(report.outcomes)
            raise CommandError(
                f"interrupted: {done} of {len(served | new)} tenants are done; run migrate again to"
                " go on",
                returncode=128 + SIGINT,
            ) from None
        self._conclude(report, fleet.stopped, served, new, current)
        return any(outcome.unapplied for outcome in report.outcomes.values())

    def _conclude(
        self,
        report: Report,
        stopped: str,
        served: dict[str, str],
        new: dict[str, str],
        current: int,
    ) -> None:
        failed = report.failed()
        not_set_up = sorted(failed.keys() & set(new.values()))
        behind = sorted(failed.keys() & set(served.values()))
        left = [slug for name, slug in served.items() if name not in report.outcomes]
        if not_set_up:
            self.stderr.write(
                f"Not set up yet: {', '.join(not_set_up)}. The owner's worker goes on trying; when"
                " the cause is removed, create_tenant SLUG does it at once."
            )
        if not behind and not left:
            report.end("all", up_to_date=current)
            return
        is_some = current + len(served) > len(behind) + len(left)
        report.end("some behind" if is_some else "nothing done", up_to_date=current)
        text = f"{len(behind)} of {current + len(served) + len(new)} tenants not migrated"
        if behind:
            text += (
                f": {_listed(behind)}. Remove the cause and run migrate again; -v 2 shows the"
                " traceback"
            )
        if left:
            text += f". {len(left)} were not begun, for {stopped}"
        raise CommandError(
            f"{text}.", returncode=SOME_TENANTS_FAILED if is_some else NO_SCHEMA_SERVED
        )

    def _report(self, slugs: dict[str, str], options: dict[str, Any]) -> Report:
        return Report(self.stdout, self.stderr, slugs=slugs, options=options)


def _plans_of(
    recording: Recording, schema_names: Iterable[str]
) -> dict[tuple[Step, ...] | None, list[str]]:
    """Group schemas by the migrations that they lack; under None those that cannot be read."""
    groups: dict[tuple[Step, ...] | None, list[str]] = defaultdict(list)
    for schema_name in schema_names:
        tenant_id = tenant_id_of(schema_name)
        with server_scope(MAIN if tenant_id is None else server_of(tenant_id)):
            tenant_connection().set_schema(schema_name)
            try:
                groups[tuple(missing_steps(recording, schema_name))].append(schema_name)
            except (ProgrammingError, ServerDown):
                groups[None].append(schema_name)
    return groups


def _public_of(server: str, django_options: dict[str, Any]) -> MigrationResult:
    """Migrate the public schema of a server, in another thread."""
    try:
        return migrate_schema(PUBLIC, django_options, server=server)
    finally:
        connections.close_all()


def _schemas_on(names: set[str]) -> set[str]:
    """Return the schemas of the tenants on these servers."""
    tenants = Tenant.objects.filter(server__in=names)
    return set(tenants.values_list("schema_name", flat=True)) if names else set()


def _refuse_unknown_target(options: dict[str, Any]) -> None:
    """Raise once, before any schema is migrated, if an app or a migration does not exist."""
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
    """Return the schema of a slug or schema name; None for all schemas."""
    if not wanted or wanted == PUBLIC:
        return wanted or None
    found = Tenant.objects.filter(slug=wanted) | Tenant.objects.filter(schema_name=wanted)
    schema_name = found.values_list("schema_name", flat=True).first()
    if schema_name is None:
        raise UsageError(f"no tenant is called {wanted!r} (list_tenants shows them)")
    return schema_name


def _slugs() -> tuple[dict[str, str], dict[str, str]]:
    """Return slugs by schema name: of tenants that have been served, and of those that never were.

    Both are empty for --plan and --check on an empty database.
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


def _has_tenant_states() -> bool:
    """Return whether the public schema stores the state of tenants."""
    return SchemaState._meta.db_table in tenant_connection().introspection.table_names()


def _some(slugs: dict[str, str], schema_names: list[str]) -> str:
    return _listed([slugs.get(name, name) for name in schema_names])


def _listed(slugs: list[str]) -> str:
    more = f" and {len(slugs) - 10} more" if len(slugs) > 10 else ""
    return ", ".join(slugs[:10]) + more


def _refuse_other_roles() -> None:
    role, may_create = fetch_row(
        "SELECT current_user, has_database_privilege(current_database(), 'CREATE')"
    )
    if not may_create:
        raise CommandError(
            f"migrate must run as {OWNER_ROLE}, not as {role}: set DATABASE_OWNER_URL and use"
            " manage.py, or set KONSTRUCT_DB_ROLE=owner",
            returncode=NO_SCHEMA_SERVED,
        )
