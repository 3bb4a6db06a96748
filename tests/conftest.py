"""Fixtures of all tests: a real Postgres as konstruct_app, a real cache, two tenants."""

import contextlib
import copy
import gc
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.cache import caches
from django.db import connections, transaction
from django.test import Client, TestCase, TransactionTestCase
from django_redis import get_redis_connection
from whitenoise.middleware import WhiteNoiseMiddleware
from xdist.scheduler import LoadFileScheduling

from konstruct.local import embedded, services
from konstruct.local.services import BOOTSTRAP
from tenants.context import leave_tenant, public_scope
from tenants.models import Tenant
from tenants.schemas import provisioning
from tests import database
from tests.konstruct.api.live import serving
from tests.messages import statements
from tests.servers import pooler, postgres

# Each pytest-xdist worker has databases of its own, in Postgres and in the cache.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 6
CACHE_DATABASE, BROKER_DATABASE = 10 + WORKER, 4 + WORKER

# Sessions of the pooler that the application's connections go through (make pooled); 0: none.
POOL_SIZE = int(os.environ.get("KONSTRUCT_POOL_SIZE") or 0)
# Whether the tenants of all tests are spread over three servers (make servers).
SPREAD = bool(os.environ.get("KONSTRUCT_SPREAD"))

# Packages and files in the order of their start. Tests that wait for processes are first, so that
# they run beside those that compute, and no worker runs one of them alone at the end.
FIRST = (
    "end_to_end", "browser", "test_serve", "test_code_blocks", "clients", "servers", "survival",
    "backups", "schemas",
)  # fmt: skip
# Of these, packages that use their own home or write nothing to the tests' database.
OWN_DATABASE = {"end_to_end", "browser", "test_serve", "survival"}
# Fixtures that start processes or create tenants. Their tests get the marker slow.
SLOW_FIXTURES = frozenset({"environment_of_processes", "deployment", "chromium", "make_tenant"})
# Files besides the admin's that take seconds of CPU time: many operations, connections or turns.
BROAD_FILES = re.compile(
    r"test_(contract|client|protocol|pool|events|delivery|history|following|extraction"
    r"|hostile_models|escalations|changed_facts|fact_review)\.py"
)
# A file whose tests all have one of the markers.
WHOLE_FILE = re.compile(
    r"^pytestmark = (?:.*\n(?:    .*\n)*?)??.*\bmark\.(slow|long|data)\b", re.MULTILINE
)
# Tests that share processes or slow imports. One worker runs all tests of a group.
SERVED = (
    "tests/clients/python/",
    "tests/documentation/test_code_blocks.py",
    "tests/konstruct/api/auth/test_other_process.py",
    "tests/konstruct/interfaces/mcp/test_client.py",
    "tests/konstruct/interfaces/mem0/test_client.py",
)
TOGETHER = (
    ("tests/end_to_end/",),
    ("tests/browser/",),
    SERVED,
    ("tests/memory/embedding/",),
    ("tests/tenants/servers/",),
)

# The test that runs.
_current: list[pytest.Item] = []
_slugs = itertools.count(1)
_thrown_away: list[str] = []
# The processes of served_url, while they run.
_served = contextlib.ExitStack()
_served_url: list[str] = []


def pytest_configure() -> None:
    """Point the cache and the broker at databases that only tests use."""
    gc.disable()  # until the end of the imports, which create no garbage
    # The fastest hasher for users of tests. Processes that tests start use the default one.
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        *settings.PASSWORD_HASHERS,
    ]
    # The duration of an example depends on the machine.
    hypothesis.settings.register_profile("konstruct", deadline=None)
    hypothesis.settings.load_profile("konstruct")
    settings.CACHES["default"]["LOCATION"] = _cache_url(CACHE_DATABASE)
    settings.CELERY_BROKER_URL = (
        services.broker_url(BROKER_DATABASE)
        if settings.EMBEDDED_CACHE
        else _cache_url(BROKER_DATABASE)
    )
    _list_static_files_once()
    admin.autodiscover()  # as the URLs do, which some tests do not import
    sys.addaudithook(_refuse_processes_of_quick_tests)


def pytest_runtestloop() -> None:
    """Start the cache, which each test empties, also one without a connection to Postgres."""
    if settings.EMBEDDED_CACHE:
        embedded.ensure_valkey()


def _refuse_processes_of_quick_tests(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail if a test without the marker slow starts a process."""
    may_start = ("slow", "data", "long")
    if (
        event != "subprocess.Popen"
        or not _current
        or any(map(_current[0].get_closest_marker, may_start))
    ):
        return
    # The services of all tests are allowed.
    services = {pooler.EXECUTABLE, "supervisor.supervisord", BOOTSTRAP, postgres.USE}
    services.add("konstruct.local.embedded")  # stops them
    if SPREAD:  # tenants are moved before the first test
        services |= {"--enable-row-security", "--output=/dev/null"}
    if services.isdisjoint([arguments[0], *arguments[1]]):
        raise RuntimeError(f"mark this test as slow: it starts {arguments[1]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Store the current test."""
    _current[:] = [item]
    result = yield
    _current.clear()
    return result


def _list_static_files_once() -> None:
    """List the static files once. Each test client loads the middleware, which takes 40 ms."""
    list_files, listed = WhiteNoiseMiddleware.add_files_from_finders, dict[str, Any]()

    def list_once(middleware: WhiteNoiseMiddleware) -> None:
        if not listed:
            list_files(middleware)
            listed.update(middleware.files)
        middleware.files.update(listed)

    WhiteNoiseMiddleware.add_files_from_finders = list_once


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files without a selected test: torch and clients of other products are slow."""
    if collection_path.suffix == ".py" and collection_path.name.startswith("test_"):
        marked = WHOLE_FILE.search(collection_path.read_text())
        if marked and f"not {marked[1]}" in config.option.markexpr:
            return True
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark tests with slow fixtures and broad tests, and sort the slowest tests first."""
    for item in items:
        if POOL_SIZE and item.get_closest_marker("of_a_session"):
            item.add_marker(pytest.mark.skip(reason="a pooler gives no session"))
        if SPREAD and (marker := item.get_closest_marker("of_one_server")):
            item.add_marker(pytest.mark.skip(reason=marker.kwargs["reason"]))
        elif SPREAD and not item.get_closest_marker("django_db"):
            item.add_marker(pytest.mark.django_db)  # entering a tenant reads its server
        if SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        if "admin" in item.path.parts or BROAD_FILES.fullmatch(item.path.name):
            item.add_marker(pytest.mark.broad)
    rank = {name: number for number, name in enumerate(FIRST)}

    def names_of(item: pytest.Item) -> set[str]:
        return {item.path.parent.name, item.path.stem}

    def place(item: pytest.Item) -> int:
        return min(rank.get(name, len(FIRST)) for name in names_of(item))

    items.sort(key=place)
    result = yield
    # pytest-django has put tests with a rollback first, then tests that commit, then tests without
    # a database. Tests with their own databases mostly wait, so FIRST sets their order again.
    items.sort(key=lambda item: place(item) if names_of(item) & OWN_DATABASE else len(FIRST))
    return result


def pytest_collection_finish() -> None:
    """Enable garbage collection, except for imported modules and collected tests."""
    gc.freeze()
    gc.enable()


class FilesOrGroups(LoadFileScheduling):
    """Give a worker of pytest-xdist all tests of a file, or of a group of TOGETHER."""

    def _split_scope(self, nodeid: str) -> str:
        groups = (group[0] for group in TOGETHER if nodeid.startswith(group))
        return next(groups, None) or super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Replace --dist loadfile."""
    return FilesOrGroups(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores, because workers sometimes wait for processes."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """A database with two tenants, created by the owner. Tests connect as konstruct_app.

    It replaces pytest-django's fixture, which migrates a database in every worker, and creates
    none for a file whose tests use the database only through their own fixtures.
    """
    patch = pytest.MonkeyPatch()
    # Django would TRUNCATE all tables, also those of tenants. konstruct_app has no such privilege.
    patch.setattr(
        TransactionTestCase, "_fixture_teardown", lambda case: database.remove_committed_rows()
    )
    # Django would reconnect after each test that commits. This fixture and
    # pytest_runtest_teardown reset the state of the connection instead.
    patch.setattr(TransactionTestCase, "_should_reload_connections", lambda case: False)
    # A test has a transaction on each server.
    patch.setattr(TransactionTestCase, "databases", "__all__")
    with contextlib.ExitStack() as made:
        with django_db_blocker.unblock():
            made.enter_context(database.made())
            if POOL_SIZE:
                url = made.enter_context(pooler.pooler(size=POOL_SIZE))
                entering = database.entering(database.SHARED_TENANTS[-1])
                made.enter_context(database.through(url))
                made.enter_context(pooler.other_clients(database.url_of("app"), entering))
            if SPREAD:
                made.enter_context(postgres.further_servers())
                made.enter_context(postgres.spread(database.SHARED_TENANTS))
        yield
        patch.undo()
        with django_db_blocker.unblock():
            made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Leave the tenant, empty the cache, and delete the tenants of the test.

    This runs after the fixtures of the test, because its transaction can hold locks on its tenants.
    """
    if _served_url and (nextitem is None or not nextitem.nodeid.startswith(SERVED)):
        _served_url.clear()
        _served.close()
    result = yield
    connections["default"].pinned_tenant = None
    leave_tenant()
    if caches.all(initialized_only=True):
        get_redis_connection("default").flushdb()
    # After the last test the database is dropped.
    if _thrown_away and nextitem is not None:
        from pytest_django.plugin import blocking_manager_key

        with item.config.stash[blocking_manager_key].unblock(), database.as_owner():
            for tenant in Tenant.objects.filter(slug__in=_thrown_away):
                provisioning.delete_tenant(tenant)
        _thrown_away.clear()
    return result


@pytest.fixture(scope="module")
def module_transaction(
    django_db_setup: None, django_db_blocker: Any
) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """``with module_transaction():`` the block creates rows for all tests of a module.

    The transaction of each test is a savepoint inside this one. Tests of the module must not
    commit. The cache is emptied after each test, also of the entries of these rows.
    """
    begun = {alias: transaction.atomic(using=alias) for alias in connections}
    with django_db_blocker.unblock():
        for atomic in begun.values():
            atomic._from_testcase = True  # allows durable blocks inside
            atomic.__enter__()
    yield django_db_blocker.unblock
    with django_db_blocker.unblock():
        for alias, atomic in begun.items():
            transaction.set_rollback(True, using=alias)
            atomic.__exit__(None, None, None)


@pytest.fixture(scope="session")
def shared_tenants(django_db_setup: None, django_db_blocker: Any) -> dict[str, Tenant]:
    """The tenants of all tests, by slug."""
    with django_db_blocker.unblock(), public_scope():
        return {tenant.slug: tenant for tenant in Tenant.objects.all()}


@pytest.fixture
def tenant_a(db: None, shared_tenants: dict[str, Tenant]) -> Tenant:
    """An active tenant without rows in its schema."""
    return copy.deepcopy(shared_tenants["tenant-a"])


@pytest.fixture
def tenant_b(db: None, shared_tenants: dict[str, Tenant]) -> Tenant:
    """Another active tenant without rows."""
    return copy.deepcopy(shared_tenants["tenant-b"])


@pytest.fixture
def inside(tenant_a: Tenant) -> Iterator[Tenant]:
    """Tenant A, as the current tenant of the test, which may enter others."""
    with database.inside(tenant_a):
        yield tenant_a


@pytest.fixture
def operator(db: None) -> Client:
    """An operator on the public host."""
    client = Client(headers={"Host": "localhost"})
    client.force_login(User.objects.create_superuser("olga"))
    return client


@pytest.fixture
def django_assert_num_queries(db: None) -> Callable[[int], AbstractContextManager[None]]:
    """As in pytest-django, for the statements on all servers."""

    @contextlib.contextmanager
    def require(number: int) -> Iterator[None]:
        with statements() as sent:
            yield
        assert len(sent) == number, "\n".join((f"{len(sent)} statements", *sent))

    return require


@pytest.fixture
def django_capture_on_commit_callbacks(db: None) -> Callable[..., AbstractContextManager[Any]]:
    """As in pytest-django, for the transactions on all servers."""

    @contextlib.contextmanager
    def capture(*, execute: bool = False) -> Iterator[list[Callable[[], Any]]]:
        captured: list[Callable[[], Any]] = []
        with contextlib.ExitStack() as transactions:
            callbacks = [
                transactions.enter_context(
                    TestCase.captureOnCommitCallbacks(using=alias, execute=execute)
                )
                for alias in connections
            ]
            yield captured
        captured += itertools.chain(*callbacks)

    return capture


@pytest.fixture
def make_tenant(db: None) -> Callable[..., Tenant]:
    """Create committed tenants for this test. Each runs all migrations."""

    def make(slug: str = "", **options: str) -> Tenant:
        slug = slug or f"throwaway-{next(_slugs)}"
        _thrown_away.append(slug)
        with database.as_owner():
            provisioning.create_tenant(slug=slug, **options)
        with public_scope():
            return Tenant.objects.get(slug=slug)

    return make


@pytest.fixture(scope="session")
def environment_of_processes(django_db_setup: None) -> dict[str, str]:
    """Environment of a process (worker, web) on the tests' databases."""
    if settings.EMBEDDED_CACHE:
        embedded.ensure_valkey()  # a process with REDIS_URL starts no Valkey
    return {
        **os.environ,
        "DATABASE_URL": database.url_of("app"),
        "DATABASE_OWNER_URL": database.url_of("owner"),
        "TENANT_DATABASES": _named(settings.TENANT_DATABASES),
        "TENANT_DATABASES_OWNER": _named(settings.TENANT_DATABASES_OWNER),
        "TENANT_DATABASES_CLOSED": ",".join(settings.TENANT_DATABASES_CLOSED),
        "REDIS_URL": _cache_url(CACHE_DATABASE),
        "CELERY_BROKER_URL": settings.CELERY_BROKER_URL,
        "SECRET_KEY": settings.SECRET_KEY,
        "CHANNEL_TOKEN_KEYS": ",".join(settings.CHANNEL_TOKEN_KEYS),
        "DEBUG": "0",
        "ALLOWED_HOSTS": ",".join(settings.ALLOWED_HOSTS),
        "DJANGO_SETTINGS_MODULE": "konstruct.settings",
    }


@pytest.fixture
def process_environment(
    environment_of_processes: dict[str, str], transactional_db: None
) -> dict[str, str]:
    """The same, for a test that commits rows for its processes."""
    return dict(environment_of_processes)


@pytest.fixture
def served_url(
    environment_of_processes: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Address of a web process with a worker, on the tests' databases: one for all of SERVED."""
    if not _served_url:
        log = tmp_path_factory.mktemp("served") / "log"
        _served_url.append(
            _served.enter_context(serving(environment_of_processes, log, worker=True))
        )
    return _served_url[0]


def _named(urls: dict[str, str]) -> str:
    return ",".join(f"{name}={url}" for name, url in urls.items())


def _cache_url(number: int) -> str:
    if settings.EMBEDDED_CACHE:
        return services.redis_url(number)
    return urlsplit(settings.REDIS_URL)._replace(path=f"/{number}").geturl()
