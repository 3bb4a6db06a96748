"""Fixtures of the API's tests."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import transaction

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import KeyScope
from konstruct.interfaces.openai import views
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.extraction import fact_requests
from tenants.context import public_scope
from tenants.models import Tenant
from tenants.servers import MAIN
from tests import database
from tests.konstruct.api.case import graph
from tests.konstruct.api.seed_data import SeedData, create_seed_data, talk
from tests.konstruct.conftest import Program


@pytest.fixture(autouse=True)
def _no_wait_for_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Completions do not wait for replies, because no worker runs in these tests."""
    monkeypatch.setattr(views, "WAIT_SECONDS", 0)


@pytest.fixture
def model_without_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language model that finds no facts, without a server."""
    monkeypatch.setattr(fact_requests, "require_model", lambda batch: None)
    monkeypatch.setattr(fact_requests, "request_facts", lambda batch, run: '{"facts": []}')


@pytest.fixture(scope="module")
def seed(
    module_transaction: Callable[[], AbstractContextManager[None]], module_program: Program
) -> SeedData:
    """Rows of a tenant with conversations, created once for all tests of a module."""
    with module_transaction():
        return create_seed_data(module_program)


@pytest.fixture(scope="module")
def committed_seed(django_db_setup: None, django_db_blocker: Any) -> Iterator[SeedData]:
    """The same rows and two sessions, committed, for modules whose tests roll back."""
    with django_db_blocker.unblock():
        # The first transaction of a connection checks if it is pooled.
        with public_scope(), transaction.atomic(using=MAIN):
            tenant = Tenant.objects.get(slug="tenant-a")
        agent = create_agent(tenant_id=tenant.id, name="ada", system_prompt="You are Ada.")
        _, key = issue_key(tenant_id=tenant.id, name="tests", scopes=KeyScope.values)
        seed = create_seed_data(Program(tenant, agent, str(key)))
        for thread in (graph(seed), "another"):
            talk(seed.program, thread, "Hello")
        yield seed
        database.remove_committed_rows()
