"""A URL in an answer can be read with the scope of the request."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import KeyScope
from tests.konstruct.api.routes import CASES
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.api.test_every_route import ask
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces import mem0_routes

pytestmark = pytest.mark.django_db
# Interfaces of other products have their own addresses.
ROUTES = sorted(CASES.keys() - mem0_routes.CASES.keys())


@pytest.fixture(scope="module")
def by_scope(
    module_transaction: Callable[[], AbstractContextManager[None]], seed: SeedData
) -> list[Program]:
    """Return a program for each scope, whose key has only that scope."""
    tenant, agent = seed.program.tenant, seed.program.agent
    with module_transaction():
        keys = [issue_key(tenant_id=tenant.id, name=s, scopes=[s])[1] for s in KeyScope.values]
    return [Program(tenant, agent, str(key)) for key in keys]


def urls_in(document: Any) -> Iterator[str]:
    """Yield every `url` of an answer, at any depth."""
    if isinstance(document, dict):
        yield from (value for name, value in document.items() if name == "url" and value)
        for value in document.values():
            yield from urls_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from urls_in(value)


@pytest.mark.usefixtures("model_without_facts")
@pytest.mark.parametrize("key", ROUTES, ids=" ".join)
def test_a_url_is_readable_with_the_scope_that_got_it(
    seed: SeedData, by_scope: list[Program], key: tuple[str, str]
) -> None:
    statuses = {}
    for program in by_scope:
        answer = ask(CASES[key], key[1], seed, program)
        if answer.status_code in (403, 404):
            continue  # not with this scope; and no graph has had a session
        assert answer.status_code < 300, answer.content
        is_json = answer.headers.get("Content-Type") == "application/json"
        urls = {*urls_in(answer.json())} if is_json else set()
        for url in urls | {answer.headers.get("Location", "")} - {""}:
            read = program.get(url.removeprefix("http://localhost"))
            statuses[url, program.key] = read.status_code
    assert statuses == dict.fromkeys(statuses, 200)
