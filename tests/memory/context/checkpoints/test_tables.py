"""Tables of the saver: equal to those of the installed LangGraph, created by the owner."""

from uuid import uuid4

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from memory.context.checkpoints import TenantPostgresSaver
from memory.context.exceptions import SessionTablesOutdated
from tenants.models import Tenant
from tests.memory.context.checkpoints.stored import tenant_transaction

# The saver has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)


def test_migration_creates_the_tables_of_the_installed_langgraph(tenant_a: Tenant) -> None:
    with tenant_transaction(tenant_a.id) as lent:
        rows = lent.execute("SELECT v FROM checkpoint_migrations ORDER BY v").fetchall()

    assert [row["v"] for row in rows] == list(range(len(PostgresSaver.MIGRATIONS)))


def test_setup_by_the_application_is_allowed_and_changes_nothing(tenant_a: Tenant) -> None:
    TenantPostgresSaver(tenant_a.id).setup()
    TenantPostgresSaver(tenant_a.id).setup()


def test_setup_without_tables_names_the_remedy() -> None:
    with pytest.raises(
        SessionTablesOutdated, match=r"version -1 and needs 9: run `manage.py migrate`"
    ):
        TenantPostgresSaver(uuid4()).setup()


class NewerSaver(TenantPostgresSaver):
    """A release of LangGraph with more migrations than this project has."""

    MIGRATIONS = [*PostgresSaver.MIGRATIONS, "ALTER TABLE checkpoints ADD COLUMN newer text"]


def test_tables_of_an_older_langgraph_name_the_remedy(tenant_a: Tenant) -> None:
    with pytest.raises(SessionTablesOutdated, match="version 9 and needs 10"):
        NewerSaver(tenant_a.id).setup()
