"""manage.py migrate: migrate all schemas in parallel; a failing tenant does not stop the others."""

from typing import Any

from django.apps import apps
from django.core.checks import Tags
from django.core.checks.registry import registry
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db.migrations import CreateModel, Migration
from django.db.migrations.loader import AmbiguityError, MigrationLoader

from tenants import naming, postgres_tools
from tenants.context import tenant_connection
from tenants.management import base
from tenants.models import Tenant
from tenants.schemas import migrating
from tenants.servers import MAIN, servers

PUBLIC = "public"
# Options of Django's migrate that are passed on.
DJANGO_OPTIONS = (
    *("app_label", "migration_name", "fake", "fake_initial", "plan", "check_unapplied"),
    *("run_syncdb", "prune"),
)


class Command(base.KonstructCommand):
    """Migrates the public schema first, then each tenant's."""

    # Django's system check compares it with that of makemigrations.
    autodetector = DjangoMigrate.autodetector
    help = (
        "Migrates all schemas: the public one, then those of tenants. A tenant that fails does not "
        "stop the others, and is named at the end."
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
            default=migrating.default_parallel(),
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
            raise base.UsageError("--parallel must be at least 1")
        self.options = options
        self.is_read_only = options["plan"] or options["check_unapplied"]
        self.results: dict[str, migrating.MigrationResult] = {}
        undone = _migrations_to_undo(options["app_label"], options["migration_name"])
        connection = tenant_connection()
        connection.set_schema_to_public()
        only = _schema_name(options["schema_name"])
        if self.is_read_only:
            self._run(only)
            return
        if not connection.is_owners:
            raise CommandError(
                f"migrate must run as {naming.OWNER_ROLE}: set DATABASE_OWNER_URL and use manage.py"
                ", or set KONSTRUCT_DB_ROLE=owner",
                returncode=base.NO_SCHEMA_SERVED,
            )
        with postgres_tools.migrate_lock() as is_alone:
            if not is_alone:
                raise CommandError(
                    "another migrate is running on this database; wait for it",
                    returncode=base.NO_SCHEMA_SERVED,
                )
            if undone and options["interactive"] and not (options["fake"] or options["shared"]):
                _confirm_deletions(undone, only)
            self._run(only)

    def _run(self, only: str | None) -> None:
        options = self.options
        self.django_options = {
            **{name: options[name] for name in DJANGO_OPTIONS},
            "verbosity": max(options["verbosity"] - 1, 0),
            "lock_timeout": f"{options['lock_timeout']}s",
        }
        is_behind, failed = False, list[str]()
        if only == PUBLIC or (only is None and not options["tenant"]):
            is_behind, failed = self._migrate_public()
        # Before the first migrate there is no table of tenants.
        has_tenants = Tenant._meta.db_table in tenant_connection().introspection.table_names()
        if only != PUBLIC and not options["shared"] and has_tenants:
            is_behind |= self._migrate_tenants(only, failed)
        if failed:
            raise CommandError(
                f"the public schema of {', '.join(failed)} was not migrated. Remove the cause and"
                " run migrate again",
                returncode=base.SOME_TENANTS_FAILED,
            )
        if options["check_unapplied"] and is_behind:
            raise CommandError("there are migrations that were not applied")

    def _migrate_public(self) -> tuple[bool, list[str]]:
        """Migrate the public schema of each server.

        Returns:
            Whether one has unapplied migrations, with --check; and the servers where it failed.
        """
        is_behind, failed = False, list[str]()
        for server in servers():
            result = migrating.migrate_schema(PUBLIC, self.django_options, server=server)
            self._show(result, PUBLIC if server == MAIN else f"{PUBLIC} of {server}")
            if result.error and server == MAIN:
                raise CommandError(
                    f"the public schema was not migrated: {result.error}",
                    returncode=base.NO_SCHEMA_SERVED,
                )
            is_behind |= result.unapplied
            failed += [server] if result.error else []
        return is_behind, failed

    def _migrate_tenants(self, only: str | None, failed_servers: list[str]) -> bool:
        """Migrate the tenants; return whether one has unapplied migrations, with --check.

        New tenants are left to create_tenant and to the owner's worker, which set them up.
        """
        options = self.options
        tenants = Tenant.objects.filter(schema_name=only) if only else Tenant.objects.provisioned()
        self.slugs = dict(tenants.values_list("schema_name", "slug"))
        number = len(self.slugs)
        if not (only or options["app_label"] or options["fake"]):
            to_visit = migrating.schemas_to_visit(migrating.current_state())
            self.slugs = {name: slug for name, slug in self.slugs.items() if name in to_visit}
            if number > len(self.slugs) and options["verbosity"]:
                self.stdout.write(f"{number - len(self.slugs)} tenants  up to date")
        on_failed = tenants.filter(server__in=failed_servers, schema_name__in=self.slugs)
        for schema in on_failed.values_list("schema_name", flat=True):
            self._add(
                migrating.MigrationResult(
                    schema, error="its server's public schema was not migrated"
                )
            )
        for result in migrating.migrate_schemas(
            [name for name in self.slugs if name not in self.results],
            self.django_options,
            parallel=options["parallel"],
            canary=options["canary"],
        ):
            self._add(result)
        behind = sorted(self.slugs[name] for name, done in self.results.items() if done.error)
        left = len(self.slugs) - len(self.results)
        if behind:
            text = (
                f"{len(behind)} of {number} tenants not migrated: {_listed(behind)}. Remove the"
                " cause and run migrate again; -v 2 shows the traceback"
            )
            if left:
                text += f". {left} were not begun, because of a failed --canary"
            is_some = number > len(behind) + left
            raise CommandError(
                f"{text}.",
                returncode=base.SOME_TENANTS_FAILED if is_some else base.NO_SCHEMA_SERVED,
            )
        return any(result.unapplied for result in self.results.values())

    def _add(self, result: migrating.MigrationResult) -> None:
        """Print the result of one more tenant."""
        self.results[result.schema_name] = result
        width = max(map(len, self.slugs.values()))
        done, total = len(self.results), len(self.slugs)
        slug = self.slugs[result.schema_name]
        self._show(result, f"[{done:>{len(str(total))}}/{total}] {slug:<{width}}")

    def _show(self, result: migrating.MigrationResult, name: str) -> None:
        """Print the result of a schema in a line that begins with its name."""
        options, seconds = self.options, f"{result.seconds:.2f} s"
        if result.busy and options["verbosity"]:
            self.stdout.write(f"{name}  another process is at it")
        elif result.error:
            self.stderr.write(f"{name}  FAILED  {seconds}  {result.error}")
        elif options["verbosity"]:
            what = f"{result.applied} applied" if result.applied else "up to date"
            if options["plan"]:
                what = "plan"
            elif result.unapplied:
                what = "not up to date"
            if result.protected:
                what += f", protected {', '.join(result.protected)}"
            self.stdout.write(f"{name}  {what}  {seconds}")
        if result.details and (options["verbosity"] > 1 or options["plan"]):
            self.stdout.write(result.details)


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
        raise base.UsageError(message) from error
    undone = dict.fromkeys(key for first in keys for key in loader.graph.backwards_plan(first))
    return [loader.graph.nodes[key] for key in undone]


def _confirm_deletions(undone: list[Migration], only: str | None) -> None:
    """Ask before migrations are undone, and say of how many tenants that deletes what.

    Raises:
        UsageError: there is no terminal.
        CommandError: the answer is no.
    """
    names = sorted(f"{migration.app_label}.{migration.name}" for migration in undone)
    tenants = Tenant.objects.provisioned().filter(**{"schema_name": only} if only else {})
    tables = sorted(
        str(operation.options.get("db_table") or f"{migration.app_label}_{operation.name_lower}")
        for migration in undone
        for operation in migration.operations
        if isinstance(operation, CreateModel)
    )
    base.require_confirmation(
        f"Undoing {_listed(names)} deletes from {tenants.count()} tenants {len(tables)} tables"
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
        raise base.UsageError(f"no tenant is called {wanted!r} (list_tenants shows them)")
    return schema_name


def _listed(slugs: list[str]) -> str:
    more = f" and {len(slugs) - 10} more" if len(slugs) > 10 else ""
    return ", ".join(slugs[:10]) + more
