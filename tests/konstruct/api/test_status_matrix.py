"""The status of every operation for every kind of caller, compared with the recorded matrix.

`status_matrix.json` holds one object for each operation: its action and subject in the access log,
and a status for each caller.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import KeyScope
from tenants.context import public_scope, tenant_scope
from tenants.models import Tenant
from tests.konstruct.api.routes import CASES, routes, view_of
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.conftest import Program, json_bytes

pytestmark = pytest.mark.django_db

MATRIX = json.loads(Path(__file__).with_name("status_matrix.json").read_text())

Send = Callable[..., Any]


def statuses(callers: dict[str, Send], seed: SeedData, route: str, method: str) -> dict[str, int]:
    """Send the request of the operation as each caller, and undo its changes."""
    case = CASES[route, method]
    options: dict[str, Any] = {"content_type": "application/json"}
    found = {}
    for name, send in callers.items():
        options["data"] = b"" if case.body is None else json_bytes(case.body(seed))
        server = seed.program.tenant.server
        with transaction.atomic(using=server):
            found[name] = send(method, case.path(seed), **options).status_code
            transaction.set_rollback(True, using=server)
    return found


@pytest.fixture(scope="module")
def callers(
    seed: SeedData, module_transaction: Callable[[], AbstractContextManager[None]]
) -> dict[str, Send]:
    """Return a function for each kind of caller that sends a request."""
    with module_transaction():
        tenant, every = seed.program.tenant, KeyScope.values
        with public_scope():
            foreign = Tenant.objects.get(slug="tenant-b")
        maria, stranger = {"user_id": "maria"}, {"user_id": "stranger"}
        agent, other = {"agent_id": seed.program.agent.pk}, {"agent_id": seed.other.pk}
        return {
            "no key": Client(headers={"Host": f"{tenant.slug}.localhost"}).generic,
            **{f"scope {scope}": _key(tenant, scopes=[scope]) for scope in every},
            "key of maria": _key(tenant, scopes=every, **maria),
            "key of maria, read": _key(tenant, scopes=["read"], **maria),
            "key of another user": _key(tenant, scopes=every, **stranger),
            "key of the agent": _key(tenant, scopes=every, **agent),
            "key of another agent": _key(tenant, scopes=every, **other),
            "key of the agent and maria": _key(tenant, scopes=every, **agent, **maria),
            "key of another tenant": _key(foreign, scopes=every),
            "superuser": _person(tenant, is_staff=True, is_superuser=True),
            "staff without permissions": _person(tenant, is_staff=True),
            "user who is not staff": _person(tenant),
        }


def _key(tenant: Tenant, **options: Any) -> Send:
    _, key = issue_key(tenant_id=tenant.id, name="matrix", **options)
    return Program(tenant, None, str(key)).request  # type: ignore[arg-type]


def _person(tenant: Tenant, **options: Any) -> Send:
    client = Client(headers={"Host": f"{tenant.slug}.localhost"}, raise_request_exception=False)
    with tenant_scope(tenant.id):
        client.force_login(User.objects.create(username=f"p{uuid4()}", **options))
    return client.generic


def test_every_operation_is_in_the_matrix() -> None:
    assert set(MATRIX) == {f"{method} {route}" for route, method in routes()}


@pytest.mark.parametrize(("route", "method"), sorted(CASES))
def test_each_caller_gets_the_recorded_status(
    seed: SeedData, callers: dict[str, Send], route: str, method: str
) -> None:
    assert statuses(callers, seed, route, method) == MATRIX[f"{method} {route}"]["statuses"]


def test_each_operation_declares_the_recorded_action() -> None:
    declared = {
        f"{method} {route}": [operation.action, operation.subject]
        for route, method in CASES
        for operation in (view_of(route).operations[method],)
    }
    assert declared == {name: case["recorded"] for name, case in MATRIX.items()}
