"""Constructors with a database and a model accept only the configured ones."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from memory.arguments import require_configured_database
from memory.context import ContextManager, LongTermMemory, SessionStore
from memory.embedding.embedder import model_version, require_configured_model
from memory.exceptions import InvalidArgument
from tenants.context import connection, tenant_scope
from tenants.exceptions import SchemaOutdated, UnknownTenant
from tenants.models import Tenant
from tests import database
from tests.memory.conftest import AGENT

pytestmark = pytest.mark.django_db


def configured_url(driver: str = "postgresql", password: str = "") -> str:
    parameters = connection.get_connection_params()
    host = str(parameters["host"]).replace("/", "%2F")
    address = f"{host}:{parameters.get('port', 5432)}/{parameters['dbname']}"
    return f"{driver}://{parameters['user']}{password}@{address}"


@pytest.mark.parametrize("driver", ["postgresql", "postgres", "postgresql+asyncpg"])
def test_the_configured_database_may_be_named(driver: str) -> None:
    require_configured_database(configured_url(driver))
    require_configured_database(configured_url(driver, ":secret"))
    require_configured_database(None)
    LongTermMemory(configured_url())
    SessionStore(database_url=configured_url())
    SessionStore(configured_url())


@pytest.mark.parametrize(
    "make", [LongTermMemory, SessionStore, lambda url: SessionStore(database_url=url)]
)
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://konstruct_app:secret@elsewhere:5432/konstruct",
        "postgresql://elsewhere/konstruct?password=secret",
    ],
)
def test_other_database_is_refused_with_a_remedy(make: Callable[[str], object], url: str) -> None:
    with pytest.raises(
        InvalidArgument, match=r"elsewhere:5432/konstruct.*set DATABASE_URL"
    ) as info:
        make(url)
    assert "secret" not in str(info.value)


def test_invalid_database_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="not the URL of a PostgreSQL database"):
        LongTermMemory("mysql://localhost/konstruct")

    for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", model_version()):
        require_configured_model(name)
        LongTermMemory(embedding_model=name)
    with pytest.raises(
        InvalidArgument, match=r"'all-MiniLM-L6-v2', not with 'bge-m3'.*EMBEDDING_MODEL"
    ):
        LongTermMemory(None, "bge-m3")


@pytest.fixture
def outdate(tenant_a: Tenant) -> Iterator[Callable[[], object]]:
    """Make the schema of tenant A an older version, and call the function."""

    def migrated_to(version: str) -> None:
        with database.as_owner():
            Tenant.objects.filter(id=tenant_a.id).update(migrated_to=version)

    yield partial(migrated_to, "older")
    migrated_to(tenant_a.migrated_to)


def test_setup_checks_that_the_schema_is_migrated(
    tenant_a: Tenant, outdate: Callable[[], object]
) -> None:
    memory = LongTermMemory()
    with tenant_scope(tenant_a.id):
        memory.setup()
    memory.setup()
    outdate()
    with (
        tenant_scope(tenant_a.id),
        pytest.raises(SchemaOutdated, match=rf"tenant {tenant_a.slug} lacks .* migrate"),
    ):
        memory.setup()
    with pytest.raises(SchemaOutdated):
        memory.setup()


def test_setup_of_an_unknown_tenant_is_refused() -> None:
    with tenant_scope(AGENT), pytest.raises(UnknownTenant, match=f"no tenant has the id {AGENT}"):
        LongTermMemory().setup()


def test_a_fact_is_stored_by_position_and_by_name(tenant_a: Tenant) -> None:
    manager, memory = ContextManager(), LongTermMemory()
    ids = [
        manager.store_memory(tenant_a.id, "Ann likes tea."),
        manager.store_memory(tenant_a.id, AGENT, "Ann likes rye."),
        manager.store_memory(tenant_a.id, str(AGENT), "Ann likes jam.", {"topic": "food"}),
        manager.store_memory(tenant_a.id, None, "Ann likes oil.", metadata={"topic": "food"}),
        manager.store_memory(tenant_a.id, AGENT, content="Ann likes ham."),
        manager.store_memory(
            tenant_id=tenant_a.id, agent_id=AGENT, content="Ann likes figs.", metadata={"n": 1}
        ),
    ]
    stored = [memory.get(memory_id, tenant_a.id) for memory_id in ids]
    assert [(fact.agent_id, fact.content, fact.metadata) for fact in stored if fact] == [
        (None, "Ann likes tea.", {}),
        (AGENT, "Ann likes rye.", {}),
        (AGENT, "Ann likes jam.", {"topic": "food"}),
        (None, "Ann likes oil.", {"topic": "food"}),
        (AGENT, "Ann likes ham.", {}),
        (AGENT, "Ann likes figs.", {"n": 1}),
    ]
