"""manage.py migrate: migrate all schemas in parallel; a failing tenant does not stop the others."""

from collections import defaultdict
from typing import Any

from django.apps import apps
from django.core.checks import Tags
from django.core.checks.registry import registry
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db.migrations import CreateModel, Migration
from django.db.migrations.loader import AmbiguityError, MigrationLoader

from tenants.context import fetch_row, tenant_connection
from tenants.locking import migrate_lock
from tenants.management.base import (
    NO_SCHEMA_SERVED,
    SOME_TENANTS_FAILED,
    KonstructCommand,
    UsageError,
    require_confirmation,
)
from tenants.management.migration_report import Report
from tenants.models import SchemaState, Tenant
from tenants.roles import OWNER_ROLE
from tenants.schemas.executor import DJANGO_OPTIONS
from tenants.schemas.fleet import default_parallel, migrate_schemas
from tenants.schemas.migrating import MigrationResult, migrate_schema
from tenants.schemas.migration_state import is_fitting, known_migrations, schemas_to_visit
from tenants.schemas.script import current_state
from tenants.servers import MAIN, servers

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
            "--lock-timeout",
            type=float,
            default=2,
            metavar="SECONDS",
            help=(
                "How long to wait for a lock on a table, during which other sessions wait too. "
                "The tenant is retried after all others (default: %(default)s)."
            ),
        )

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        kwargs: dict[Any, Any] = super().get_check_kwargs(options)
        # Without checks of URLs and of the admin, which import every view and page.
        tags = registry.tags_available() - {Tags.urls, Tags.admin}
        return {**kwargs, "databases": [options["database"]], "tags": sorted(tags)}

    def handle(self, *args: Any, **options: Any) -> None:
        if options["parallel"] < 1:
            raise UsageError("--parallel must be at least 1")
        undone = _migrations_to_undo(options["app_label"], options["migration_name"])
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
            if undone and options["interactive"] and not (options["fake"] or options["shared"]):
                _confirm_deletions(undone, only)
            self._run(only, options)

    def _run(self, only: str | None, options: dict[str, Any]) -> None:
        django_options = {name: options[name] for name in DJANGO_OPTIONS}
        django_options["verbosity"] = max(options["verbosity"] - 1, 0)
        django_options["lock_timeout"] = f"{options['lock_timeout']}s"
        unapplied = False
        self._not_migrated: set[str] = set()
        if only == PUBLIC or (only is None and not options["tenant"]):
            unapplied = self._migrate_public(django_options, options)
        if only != PUBLIC and not options["shared"] and _has_tenants():
            if options["plan"] and not options["app_label"]:
                self._plan(only)
            elif options["check_unapplied"] and not options["app_label"]:
                unapplied |= self._check(only)
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
        outcomes: dict[str, MigrationResult] = {}
        for server in servers():
            if server == MAIN or not outcomes[MAIN].error:
                outcomes[server] = migrate_schema(PUBLIC, django_options, server=server)
                name = PUBLIC if server == MAIN else f"{PUBLIC} of {server}"
                self._report({}, options).write_schema(outcomes[server], name)
        if error := outcomes[MAIN].error:
            raise CommandError(
                f"the public schema was not migrated: {error}", returncode=NO_SCHEMA_SERVED
            )
        self._not_migrated = {server for server, outcome in outcomes.items() if outcome.error}
        return any(outcome.unapplied for outcome in outcomes.values())

    def _plan(self, only: str | None) -> None:
        """Show the migrations that tenants lack, by their states. Nothing is changed."""
        tenants = Tenant.objects.provisioned()
        if only:
            tenants = tenants.filter(schema_name=only)
        states = dict(SchemaState.objects.values_list("name", "migrations"))
        slugs = defaultdict(list)
        for slug, state in tenants.order_by("slug").values_list("slug", "migrated_to"):
            slugs[state].append(slug)
        for state, named in slugs.items():
            missing = sorted(known_migrations() - set(states.get(state, ())))
            lack = f"lack {len(missing)} migrations: {_listed(named)}"
            self.stdout.write(f"{len(named)} tenants  {lack if missing else 'have all migrations'}")
            for migration in missing:
                self.stdout.write(f"    {migration}")

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
        names = ("schema_name", "slug")
        served = dict(Tenant.objects.provisioned().values_list(*names))
        new = dict(Tenant.objects.filter(state=Tenant.State.PROVISIONING).values_list(*names))
        current = 0
        if only:
            served, new = {only: served.get(only) or new[only]}, {}
        elif any(options[name] for name in ("app_label", "plan", "check_unapplied", "fake")):
            new = {}  # they get all migrations or none
        else:
            to_visit, number = schemas_to_visit(current_state()), len(served)
            served = {schema: slug for schema, slug in served.items() if schema in to_visit}
            current = number - len(served)
            if current and options["verbosity"]:
                self.stdout.write(f"{current} tenants  up to date")
        report = self._report(served | new, options)
        for schema in sorted(_schemas_on(self._not_migrated) & (served | new).keys()):
            report.add(MigrationResult(schema, error="its server's public schema was not migrated"))
        parallel = options["parallel"]
        due = [name for name in served if name not in report.outcomes]
        for outcome in migrate_schemas(
            due, django_options, parallel=parallel, canary=options["canary"]
        ):
            report.add(outcome)
        is_stopped = any(name not in report.outcomes for name in due)
        rest = [] if is_stopped else [name for name in new if name not in report.outcomes]
        # Those that another process, such as the owner's worker, sets up or will retry.
        for outcome in migrate_schemas(rest, django_options, parallel=parallel, wait_seconds=0):
            report.add(outcome)
        self._conclude(report, served, new, current)
        return any(outcome.unapplied for outcome in report.outcomes.values())

    def _conclude(
        self,
        report: Report,
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
            return
        is_some = current + len(served) > len(behind) + len(left)
        text = f"{len(behind)} of {current + len(served) + len(new)} tenants not migrated"
        if behind:
            text += (
                f": {_listed(behind)}. Remove the cause and run migrate again; -v 2 shows the"
                " traceback"
            )
        if left:
            text += f". {len(left)} were not begun, because of a failed --canary"
        raise CommandError(
            f"{text}.", returncode=SOME_TENANTS_FAILED if is_some else NO_SCHEMA_SERVED
        )

    def _report(self, slugs: dict[str, str], options: dict[str, Any]) -> Report:
        return Report(self.stdout, self.stderr, slugs=slugs, options=options)


def _schemas_on(names: set[str]) -> set[str]:
    """Return the schemas of the tenants on these servers."""
    tenants = Tenant.objects.filter(server__in=names)
    return set(tenants.values_list("schema_name", flat=True)) if names else set()


def _migrations_to_undo(app_label: str | None, name: str | None) -> list[Migration]:
    """Return the migrations that a schema with all migrations loses at this target.

    Raises:
        UsageError: there is no such app or migration.
    """
    if not app_label:
        return []
    loader = MigrationLoader(None)
    try:
        apps.get_app_config(app_label)
        if name in (None, "zero"):
            keys = loader.graph.root_nodes(app_label) if name else []
        else:
            target = loader.get_migration_by_prefix(app_label, name)
            children = loader.graph.node_map[app_label, target.name].children
            keys = [child.key for child in children if child.key[0] == app_label]
    except (LookupError, AmbiguityError) as error:
        message = f"no migration of {app_label!r} is called {name!r}" if name else str(error)
        raise UsageError(message) from error
    undone = dict.fromkeys(key for first in keys for key in loader.graph.backwards_plan(first))
    return [loader.graph.nodes[key] for key in undone]


def _confirm_deletions(undone: list[Migration], only: str | None) -> None:
    """Ask before migrations are undone, and say of how many tenants that deletes what.

    Raises:
        UsageError: there is no terminal.
        CommandError: the answer is no.
    """
    names = {f"{migration.app_label}.{migration.name}" for migration in undone}
    tenants = Tenant.objects.provisioned().filter(**{"schema_name": only} if only else {})
    states = dict(SchemaState.objects.values_list("name", "migrations"))
    number = sum(
        bool(names.intersection(states.get(state, names)))
        for state in tenants.values_list("migrated_to", flat=True)
    )
    if not number:
        return
    tables = sorted(
        str(operation.options.get("db_table") or f"{migration.app_label}_{operation.name_lower}")
        for migration in undone
        for operation in migration.operations
        if isinstance(operation, CreateModel)
    )
    require_confirmation(
        f"Undoing {_listed(sorted(names))} deletes from {number} tenants {len(tables)} tables"
        f" ({', '.join(tables)}) with all their rows, and all columns that these migrations have"
        " added. Type yes to continue: ",
        "yes",
        "not migrated",
        option="--noinput",
    )


def _schema_name(wanted: str | None) -> str | None:
    """Return the schema of a slug or schema name; None for all schemas."""
    if not wanted or wanted == PUBLIC:
        return wanted or None
    found = Tenant.objects.filter(slug=wanted) | Tenant.objects.filter(schema_name=wanted)
    schema_name = found.values_list("schema_name", flat=True).first()
    if schema_name is None:
        raise UsageError(f"no tenant is called {wanted!r} (list_tenants shows them)")
    return schema_name


def _has_tenants() -> bool:
    """Return whether the table of tenants exists: not before the first migrate."""
    return Tenant._meta.db_table in tenant_connection().introspection.table_names()


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
