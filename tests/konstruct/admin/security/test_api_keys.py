"""API keys in a tenant's admin: shown once, and revoked."""

import re
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from konstruct.api.auth.authentication import look_up_key
from konstruct.api.auth.keys import parse_key
from konstruct.api.models import ApiKey
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Browser, Program

KEYS = "/admin/api/apikey/"


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
        assert look_up_key(key).key == stored
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
    assert "1 revoked." in admin.post(KEYS, form, follow=True).text
    assert "0 revoked." in admin.post(KEYS, form, follow=True).text
    assert program_a.get(MESSAGES).status_code == 401
    assert "revoked" in admin.get(KEYS).content.decode()


def test_a_key_is_rolled_and_the_old_one_works_for_a_while(
    program_a: Program, program_b: Program, browser: Browser
) -> None:
    admin = browser(program_a.tenant)
    with tenant_scope(program_a.tenant.id):
        old = ApiKey.objects.get()
    page = f"/admin/api-keys/{old.pk}/roll/"
    for other in (browser(program_b.tenant), browser(program_a.tenant, "change_apikey")):
        assert other.post(page, {"grace": "0"}).status_code in (403, 404)
    assert f'href="{page}"' in admin.get(KEYS).text
    assert "Roll the key" in admin.get(page).text
    admin.cookies["time_zone"] = "Asia%2FKolkata"
    answer = admin.post(page, {"grace": "24"})
    assert re.search(r"works until .+:[0-9]{2} IST\.", answer.text)
    assert "no-store" in answer.headers["Cache-Control"]
    found = re.search(r"ks_[0-9a-f_]+", answer.text)
    assert found is not None
    new = parse_key(found[0])
    assert new is not None
    with tenant_scope(program_a.tenant.id):
        stored = look_up_key(new).key
        assert (stored.name, stored.scopes, stored.agent_id) == (old.name, old.scopes, old.agent_id)
        assert stored.expires_at is None
    assert program_a.get(MESSAGES).status_code == 200
    listed = {row.pk: row for row in admin.get(KEYS).context["cl"].result_list}
    left = listed[old.pk].expires_at - timezone.now()
    assert timedelta(hours=23) < left < timedelta(hours=24)
    assert admin.post(page, {"grace": "0"}).status_code == 200
    # A request would compare with the start time of the test's transaction.
    with tenant_scope(program_a.tenant.id):
        assert not ApiKey.objects.valid().filter(pk=old.pk).exists()
    assert found[0] not in admin.get(KEYS).text
