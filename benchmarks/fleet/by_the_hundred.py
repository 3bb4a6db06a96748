"""Measure the costs of many tenants: create_tenant, migrate, readiness and idle processes.

python -m benchmarks.fleet.by_the_hundred --tenants 200

The script creates its own database in the embedded Postgres, fills it with tenants, and prints
ratios that were measured side by side in this run:

- the size of a schema that holds nothing yet, and how many relations it has;
- `create_tenant`, in turns with the dump of such a schema and its rows, sent as one message;
- `manage.py migrate` with nothing to do, in turns with Django's own `migrate --check` of an empty
  project, and with the public schema alone;
- a column added to one table of every tenant, and Python run for every tenant;
- whether a fresh process is ready, by the public schema's query;
- a column added where one tenant's migration fails, one is locked by a transaction and one has lost
  its schema: who is named, and how each tenant is answered meanwhile;
- transactions a minute of idle processes, a message in, its reply out and a recall, and memory,
  beside a database of ten tenants (serving.py).

`--keep` leaves the databases for another run, which makes only the tenants that are missing.
"""

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psycopg
from django.db import connection

from benchmarks.fleet.serving import FEW, answers, compare_serving, environment_of, keys_of
from benchmarks.tools.throwaway import PROJECT, set_up
from konstruct.local import embedded, services

DATABASE = "konstruct_fleet"
DATABASE_OF_FEW = "konstruct_fleet_few"
# A migration of an app that is installed for this run only.
APP = "fleet_app"
ADD_COLUMN = """
from django.db import migrations, models

class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial"), ("fleet_app", "0001_initial")]
    operations = [migrations.AddField("thing", "note", models.TextField(db_default=""))]
"""
RUN_PYTHON = """
from django.db import migrations

def count(apps, editor):
    apps.get_model("memory", "Message").objects.count()

class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial"), ("fleet_app", "0003_another_column")]
    operations = [migrations.RunPython(count, migrations.RunPython.noop)]
"""
ANOTHER_COLUMN = ADD_COLUMN.replace("note", "note_too").replace(
    '"fleet_app", "0001_initial"', '"fleet_app", "0002_add_column"'
)
FIRST = """
from django.db import migrations, models

class Migration(migrations.Migration):
    operations = [
        migrations.CreateModel("Thing", [("id", models.BigAutoField(primary_key=True))])
    ]
"""
SETTINGS = """
from konstruct.settings import *
TENANT_APPS = [*TENANT_APPS, "fleet_app"]
INSTALLED_APPS = [*INSTALLED_APPS, "fleet_app"]
"""
EMPTY_SETTINGS = """
from konstruct.settings import DATABASES
SECRET_KEY = "x"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth"]
USE_TZ = True
DATABASES = {"default": {**DATABASES["default"], "ENGINE": "django.db.backends.postgresql"}}
DATABASES["default"]["OPTIONS"] = {}
"""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7, help="of what is measured in turns")
    parser.add_argument("--requests", type=int, default=60, help="of each kind that is timed")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, fleet_databases(keep=options.keep):
        project = Project(Path(folder))
        sys.path.insert(0, folder)
        os.environ |= {
            **environment_of(DATABASE),
            "KONSTRUCT_DB_ROLE": "owner",
            "DJANGO_SETTINGS_MODULE": "konstruct.settings",
            "PYTHONPATH": f"{folder}{os.pathsep}{PROJECT}",
        }
        set_up()
        project.manage("migrate")
        tenants = make_tenants(options.tenants)
        print(f"{tenants} tenants")
        print_size()
        compare_creation(options.rounds)
        os.environ["DJANGO_SETTINGS_MODULE"] = "fleet_settings"
        compare_idle_migrate(project, options.rounds)
        time_readiness()
        time_migration(project, "0002_add_column", ADD_COLUMN, tenants, "a column added")
        keys = keys_of(os.environ)
        break_three(project, keys, Path(folder))
        few = environment_of(DATABASE_OF_FEW)
        make_few(project, few)
        compare_serving(
            [(DATABASE_OF_FEW, few, keys_of(few)), (DATABASE, environment_of(DATABASE), keys)],
            Path(folder),
            options.requests,
        )
        time_migration(project, "0004_run_python", RUN_PYTHON, tenants, "Python")


@contextlib.contextmanager
def fleet_databases(*, keep: bool) -> Iterator[None]:
    """Create separate databases in the embedded Postgres."""
    embedded.ensure()
    os.environ |= {
        "REDIS_URL": services.redis_url(),
        "CELERY_BROKER_URL": services.broker_url(),
        "SECRET_KEY": "of the benchmark, which serves nobody: " + "x" * 32,
        "DEBUG": "1",
        "LOG_LEVEL": "WARNING",
    }
    with psycopg.connect(services.database_url("owner"), autocommit=True) as owner:
        for name in (DATABASE, DATABASE_OF_FEW):
            if not keep:
                owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            if owner.execute(f"SELECT FROM pg_database WHERE datname = '{name}'").rowcount == 0:
                owner.execute(f"CREATE DATABASE {name}")
                owner.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
                owner.execute(f"GRANT CONNECT ON DATABASE {name} TO konstruct_app")
        yield
        if not keep:
            for name in (DATABASE, DATABASE_OF_FEW):
                owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Project:
    """This project with one more app, and a Django project that has nothing to migrate."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._migrations = folder / APP / "migrations"
        self._migrations.mkdir(parents=True)
        (folder / APP / "__init__.py").touch()
        (self._migrations / "__init__.py").touch()
        (folder / "fleet_settings.py").write_text(SETTINGS)
        (folder / "empty_settings.py").write_text(EMPTY_SETTINGS)
        self.add("0001_initial", FIRST)

    def add(self, name: str, migration: str) -> None:
        (self._migrations / f"{name}.py").write_text(textwrap.dedent(migration))

    def manage(
        self, *arguments: str, status: int = 0, changes: Mapping[str, str] | None = None
    ) -> tuple[float, str]:
        """Run a command in a changed environment. Return its seconds and its output."""
        began = time.perf_counter()
        ran = subprocess.run(
            [sys.executable, "-m", "django", *arguments],
            env={**os.environ, **(changes or {})},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode not in (status, 1):
            sys.exit(f"{' '.join(arguments)}: {ran.stderr or ran.stdout}")
        return time.perf_counter() - began, ran.stdout + ran.stderr


def make_tenants(number: int) -> int:
    """Create the missing tenants. Return the number of tenants."""
    from tenants.models import Tenant
    from tenants.schemas import provisioning

    began, missing = time.perf_counter(), number - Tenant.objects.count()
    for count in range(missing):
        provisioning.create_tenant(slug=f"fleet-{os.urandom(6).hex()}")
        if count % 50 == 49:
            seconds = (time.perf_counter() - began) / (count + 1)
            print(f"  {count + 1} of {missing} made, {seconds * 1000:.0f} ms each", flush=True)
    return Tenant.objects.count()


def print_size() -> None:
    """Print the size of the newest schema with its indexes, sequences and TOAST tables."""
    from tenants.models import Tenant

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relkind, count(*), sum(CASE WHEN relkind = 'i' THEN 0"
            " ELSE pg_total_relation_size(oid) END)::bigint, count(NULLIF(reltoastrelid, 0))"
            " FROM pg_class WHERE relnamespace = %s::regnamespace GROUP BY relkind",
            [Tenant.objects.latest("created_at").schema_name],
        )
        found = {kind: rest for kind, *rest in cursor.fetchall()}
    print(
        f"an empty tenant: {sum(size for _, size, _ in found.values()) / 1e6:.2f} MB,"
        f" {found['r'][0]} tables, {found['i'][0]} indexes, {found['S'][0]} sequences,"
        f" {found['r'][2]} side tables for long values"
    )


def in_turns(rounds: int, *tasks: Callable[[], object]) -> list[float]:
    """Return the median seconds of each task. The tasks run in turns."""
    seconds: list[list[float]] = [[] for _ in tasks]
    for _ in range(rounds):
        for task, durations in zip(tasks, seconds, strict=True):
            began = time.perf_counter()
            task()
            durations.append(time.perf_counter() - began)
    return [statistics.median(durations) for durations in seconds]


def compare_creation(rounds: int) -> None:
    """Compare create_tenant with a dump of such a schema, sent as one message and transaction."""
    from django.db import transaction

    from tenants.models import Tenant
    from tenants.schemas import provisioning

    model = Tenant.objects.first()
    assert model is not None
    dump = dump_of(model.schema_name)
    copies = []

    def create() -> None:
        copies.append(provisioning.create_tenant(slug=f"copy-{os.urandom(6).hex()}"))

    def send() -> None:
        name = f"d_{os.urandom(6).hex()}"
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(dump.replace(model.schema_name, name))
        dumped.append(name)

    dumped: list[str] = []
    create()
    send()
    own, reference = in_turns(rounds, create, send)
    for tenant in copies:
        provisioning.delete_tenant(tenant)
    with connection.cursor() as cursor:
        for name in dumped:
            cursor.execute(f"DROP SCHEMA {name} CASCADE")
    print(
        f"create_tenant: {own * 1000:.0f} ms, {own / reference:.2f} times its own dump as one"
        f" message ({reference * 1000:.0f} ms)"
    )


def dump_of(schema_name: str) -> str:
    """Return a schema with its rows as pg_dump writes it, without settings and psql commands."""
    tool = [sys.executable, "-m", "konstruct.local.embedded", "tool", "pg_dump"]
    ran = subprocess.run(
        [*tool, "--rows-per-insert=1000", "--schema", schema_name, DATABASE],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    left_out = re.compile(r"--|\\|SET |SELECT pg_catalog\.set_config")
    return "\n".join(line for line in ran.stdout.splitlines() if not left_out.match(line))


def compare_idle_migrate(project: Project, rounds: int) -> None:
    """Compare migrate with nothing to do and Django's own check of an empty project."""
    empty = {"DJANGO_SETTINGS_MODULE": "empty_settings"}
    project.manage("migrate")
    own, shared, reference = in_turns(
        rounds,
        lambda: project.manage("migrate"),
        lambda: project.manage("migrate", "--shared"),
        lambda: project.manage("migrate", "--check", changes=empty),
    )
    print(
        f"migrate, nothing to do: {own:.2f} s, {own - reference:+.2f} s beside Django's"
        f" migrate --check of an empty project ({reference:.2f} s), {own - shared:+.2f} s"
        " beside the public schema alone"
    )


def time_migration(project: Project, name: str, migration: str, tenants: int, what: str) -> None:
    """Time a migration of every tenant, minus a run with nothing to do."""
    (idle,) = in_turns(3, lambda: project.manage("migrate"))
    project.add(name, migration)
    seconds, output = project.manage("migrate")
    assert output.count(" applied") == tenants + 1, output[-2000:]
    beyond = seconds - idle
    print(
        f"{what} for {tenants} tenants: {seconds:.2f} s, {beyond:+.2f} s beyond nothing to do,"
        f" {beyond / tenants * 1000:.1f} ms each",
        flush=True,
    )


def break_three(project: Project, keys: dict[str, str], folder: Path) -> None:
    """Add a column where one tenant fails, one is locked, one lacks its schema; test requests."""
    from tenants.models import Tenant

    failing, locked, gone = Tenant.objects.order_by("created_at")[:3]
    project.add("0003_another_column", ANOTHER_COLUMN)
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(f"ALTER TABLE {failing.schema_name}.fleet_app_thing ADD note_too text")
        owner.execute(f"ALTER SCHEMA {gone.schema_name} RENAME TO gone")
        with owner.transaction():
            owner.execute(f"LOCK TABLE {locked.schema_name}.fleet_app_thing IN ACCESS SHARE MODE")
            seconds, output = project.manage("migrate", status=4)
    print(f"three that cannot be migrated: the run took {seconds:.1f} s, and said")
    for line in output.splitlines():
        if "FAILED" in line or "not migrated" in line:
            print(f"  {line}")
    ready, status = answers(keys, folder / "answers.log")
    unserved = {slug: code for slug, code in status.items() if code != 200}
    print(
        f"  a fresh process is ready by {ready * 1000:.0f} ms of its own, serves"
        f" {len(status) - len(unserved)} of {len(status)} tenants, and answers"
        f" {sorted(unserved.values())} for the others"
    )
    assert unserved.keys() == {failing.slug, locked.slug, gone.slug}, unserved
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(f"ALTER TABLE {failing.schema_name}.fleet_app_thing DROP note_too")
        owner.execute(f"ALTER SCHEMA gone RENAME TO {gone.schema_name}")
    seconds, output = project.manage("migrate")
    print(f"  when the causes are removed: {output.count(' applied')} migrated in {seconds:.1f} s")


def make_few(project: Project, environment: dict[str, str]) -> None:
    """Create the database of few tenants with the same migrations."""
    project.manage("migrate", changes=environment)
    code = (
        "import django; django.setup()\n"
        "from tenants.models import Tenant\n"
        "from tenants.schemas.provisioning import create_tenant\n"
        f"for number in range(Tenant.objects.count(), {FEW}):\n"
        "    create_tenant(slug=f'few-{number}')\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, cwd=PROJECT, check=True
    )


def time_readiness() -> None:
    """Time the readiness query for schemas in a fresh process."""
    from konstruct.api import health

    began = time.perf_counter()
    state = health._migrations()
    print(f"readiness, migrations: {(time.perf_counter() - began) * 1000:.0f} ms ({state})")


if __name__ == "__main__":
    main()
