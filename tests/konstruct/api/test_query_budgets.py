"""Messages to Postgres of every request: a fixed number for any number of rows."""

from typing import Any

import pytest
from django.db import transaction

from tenants.servers import MAIN
from tests.konstruct.api.routes import CASES, LONG
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.conftest import json_bytes
from tests.messages import messages_to_postgres


def clears_last(case: tuple[str, str]) -> tuple[bool, str]:
    """Order the cases so that sessions, which are outside of a test's transaction, are read."""
    return case[1] == "DELETE", case[0]


def messages_of(seed: SeedData, method: str, address: str, body: Any = None) -> list[list[str]]:
    """Return the statements of each message of a request. Its changes are undone.

    This includes the entry of the access log.
    """
    options: dict[str, Any] = {}
    if body is not None:
        options = {"data": json_bytes(body), "content_type": "application/json"}
    server = seed.program.tenant.server
    with transaction.atomic(using=server):
        with messages_to_postgres() as messages:
            response = seed.program.request(method, address, **options)
        transaction.set_rollback(True, using=server)
    assert response.status_code < 300, response.content
    entries = [
        statement
        for sent in messages
        for statement in sent
        if "INTO audit_accessevent" in statement
    ]
    assert len(entries) == 1
    return messages


@pytest.mark.usefixtures("model_without_facts")
@pytest.mark.parametrize(("route", "method"), sorted(CASES, key=clears_last))
def test_a_request_keeps_its_budget(committed_seed: SeedData, route: str, method: str) -> None:
    case, seed = CASES[route, method], committed_seed
    body = None if case.body is None else case.body(seed)
    messages = messages_of(seed, method, case.path(seed), body)
    # For a tenant of another server the list is read first.
    of_the_list = seed.program.tenant.server != MAIN
    assert len(messages) == case.messages + of_the_list, "\n\n".join(map("\n".join, messages))


@pytest.mark.parametrize("route", sorted(LONG))
def test_a_list_costs_the_same_for_any_number_of_rows(committed_seed: SeedData, route: str) -> None:
    seed = committed_seed
    address = LONG[route](seed)
    joint = "&" if "?" in address else "?"
    one, many = (
        len(messages_of(seed, "GET", f"{address}{joint}limit={limit}")) for limit in (1, 50)
    )
    assert one == many
