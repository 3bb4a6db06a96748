"""Permissions of a person in the API: those of the admin, on every route."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import Q
from django.test import Client
from django.urls import get_resolver

from tenants.audit.roles import role_permissions
from tenants.context import tenant_scope
from tests.konstruct.api.case import Case
from tests.konstruct.api.routes import V1, patterns
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.conftest import json_bytes

pytestmark = pytest.mark.django_db

VIEWS = {
    str(pattern.name): pattern.callback.cls
    for path, pattern in patterns(get_resolver("konstruct.urls.api"))
    if path.startswith("v1/")
}
# Without a page in the admin: no role has them, only a superuser.
PERMISSIONS_WITHOUT_ROLE = {
    "memory.delete_message",
    "memory.add_message",
    "orchestrator.add_channelidentity",
    "orchestrator.change_toolcall",
}


def person(seed: SeedData, permissions: set[str]) -> Client:
    """Log in a user with these permissions only."""
    client = Client(headers={"Host": f"{seed.program.tenant.slug}.localhost"})
    with tenant_scope(seed.program.tenant.id):
        user = User.objects.create_user(f"p{uuid4()}", is_staff=True)
        named = Q(pk__in=[])
        for permission in permissions:
            label, codename = permission.split(".")
            named |= Q(content_type__app_label=label, codename=codename)
        found = Permission.objects.filter(named)
        assert len(found) == len(permissions), permissions
        user.user_permissions.set(found)
        client.force_login(user)
    return client


def ask(client: Client, seed: SeedData, case: Case, method: str) -> Any:
    body = None if case.body is None else json_bytes(case.body(seed))
    return client.generic(method, case.path(seed), body or "", content_type="application/json")


def test_permissions_of_the_api_match_those_of_roles_in_the_admin() -> None:
    operations = [one for view in VIEWS.values() for one in view.operations.values()]
    assert all(operation.permissions for operation in operations)
    needed = {permission for operation in operations for permission in operation.permissions}
    assert needed - role_permissions()["admin"] == PERMISSIONS_WITHOUT_ROLE


def test_options_describe_the_address_to_every_logged_in_user(seed: SeedData) -> None:
    client = person(seed, {"memory.view_scope"})
    assert client.options(f"{V1}facts/").status_code == 200
    assert client.head(f"{V1}facts/").status_code == 403


def test_admin_and_api_refuse_the_same_users(seed: SeedData) -> None:
    """The pages of the same objects, for a user who may only read messages."""
    client = person(seed, {"memory.view_message"})
    for address, page in {
        "agents/": "orchestrator/agent/",
        "facts/": "memory/memoryentry/",
        "identities/": "orchestrator/channelidentity/",
        "escalations/": "orchestrator/escalation/",
        "recall-events/": "memory/recallevent/",
        "tool-calls/": "orchestrator/toolcall/",
        "users/": "people/",
    }.items():
        assert (address, client.get(V1 + address).status_code) == (address, 403)
        assert (page, client.get(f"/admin/{page}").status_code) == (page, 403)
    assert client.get(f"{V1}messages/").status_code == 200
    assert client.get("/admin/memory/message/").status_code == 200
