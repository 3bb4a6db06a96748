"""API keys in a tenant's admin: shown once, and revoked."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from konstruct.api.auth.authentication import admit
from konstruct.api.auth.keys import parse_key
from konstruct.api.models import ApiKey
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Program

KEYS = "/admin/api/apikey/"


@pytest.fixture
def admin(program_a: Program, browser: Callable[..., Client]) -> Client:
    return browser(program_a.tenant)


def test_a_new_key_is_shown_once_and_works(program_a: Program, admin: Client) -> None:
    response = admin.post(
        f"{KEYS}add/", {"name": "billing", "scopes": ["read", "erase"]}, follow=True
    )
    found = re.search(r"ks_[0-9a-f_]+", response.content.decode())
    assert found is not None
    key = parse_key(found[0])
    assert key is not None
    with tenant_scope(program_a.tenant.id):
        stored = ApiKey.objects.get(name="billing")
        assert admit(key).key == stored
        assert (stored.scopes, stored.agent, stored.user_id) == (["read", "erase"], None, None)
    assert found[0] not in admin.get(KEYS).content.decode()
    assert found[0] not in admin.get(f"{KEYS}{stored.pk}/change/").content.decode()


def test_a_key_is_revoked_and_neither_edited_nor_deleted(program_a: Program, admin: Client) -> None:
    with tenant_scope(program_a.tenant.id):
        key = ApiKey.objects.get()
    assert admin.post(f"{KEYS}{key.pk}/change/", {"name": "x"}).status_code == 403
    assert admin.post(f"{KEYS}{key.pk}/delete/").status_code == 403
    assert program_a.get(MESSAGES).status_code == 200
    form: dict[str, Any] = {"action": "revoke", "_selected_action": [str(key.pk)]}
    assert "1 revoked." in admin.post(KEYS, form, follow=True).content.decode()
    assert program_a.get(MESSAGES).status_code == 401
    assert "revoked" in admin.get(KEYS).content.decode()
