"""Authentication of the API: keys, hosts, and sessions."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from konstruct.api.auth.keys import bearer_key, issue_key, new_key, parse_key, revoke_key
from konstruct.api.models import ApiKey
from memory.models import Message
from tenants.context import current_tenant_id, tenant_scope
from tenants.models import Tenant
from tests.database import as_owner
from tests.konstruct.conftest import MESSAGES, Program

PASSWORD = "correct horse battery staple"


def status(program: Program, *, host: str = "localhost", key: str | None = None) -> int:
    program.host = host
    program.key = program.key if key is None else key
    response = program.get(MESSAGES)
    if response.status_code == 401:
        assert response.headers["WWW-Authenticate"] == 'Bearer realm="konstruct"'
        assert response.headers["Content-Type"] == "application/problem+json"
        assert response.json()["type"] == "urn:konstruct:problem:unauthenticated"
    return int(response.status_code)


def test_a_key_works_on_the_neutral_host_and_on_its_tenants(program_a: Program) -> None:
    assert status(program_a) == 200
    assert status(program_a, host="127.0.0.1:8000") == 200
    assert status(program_a, host="tenant-a.localhost") == 200


def test_key_is_refused_on_the_host_of_another_tenant(
    program_a: Program, program_b: Program
) -> None:
    assert status(program_a, host="tenant-b.localhost") == 401


def test_the_key_alone_decides_the_tenant_on_the_neutral_host(
    program_a: Program, program_b: Program
) -> None:
    program_a.send("said in A")
    assert [len(program.get(MESSAGES).json()["results"]) for program in (program_a, program_b)] == [
        1,
        0,
    ]
    assert current_tenant_id() is None


def test_only_a_valid_key_learns_that_its_tenant_is_suspended(program_a: Program) -> None:
    with as_owner():
        Tenant.objects.filter(pk=program_a.tenant.pk).update(state=Tenant.State.SUSPENDED)
    try:
        answer = program_a.get(MESSAGES)
        assert (answer.status_code, answer.json()["status"]) == (403, 403)
        assert answer.json()["detail"].startswith("This tenant is suspended.")
        assert status(program_a, key=str(new_key(program_a.tenant.id))) == 401
    finally:
        with as_owner():
            Tenant.objects.filter(pk=program_a.tenant.pk).update(state=Tenant.State.ACTIVE)


def test_tenant_without_its_schema_is_unavailable(program_a: Program) -> None:
    """Its keys are not invalid: they work again after a restore."""
    with as_owner():
        lost = Tenant.objects.create(slug="lost", name="Lost", state="active")
    try:
        assert status(program_a, key=str(new_key(lost.id))) == 503
    finally:
        with as_owner():
            lost.delete()


def test_a_revoked_key_is_refused(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        key = ApiKey.objects.get()
        assert [revoke_key(key.pk), revoke_key(key.pk)] == [True, False]
    assert status(program_a) == 401


def test_an_expired_key_is_refused(program_a: Program) -> None:
    for age, expected in ((timedelta(hours=1), 401), (-timedelta(hours=1), 200)):
        _, text = issue_key(
            tenant_id=program_a.tenant.id, name="old", expires_at=timezone.now() - age
        )
        assert status(program_a, key=str(text)) == expected


def test_refusal_does_not_reveal_which_part_was_wrong(
    program_a: Program, program_b: Program
) -> None:
    def detail(key: str) -> str:
        program_a.key = key
        return str(program_a.get(MESSAGES).json()["detail"])

    unknown = str(new_key(program_a.tenant.id))
    assert detail("nonsense") == detail(unknown) == detail(unknown.replace("_", "_0", 1))


def test_only_a_hash_of_the_key_is_stored(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        key = ApiKey.objects.get()
    stored = "".join(str(value) for value in vars(key).values())
    assert program_a.key.rsplit("_", 1)[1] not in stored


def admin(program: Program, *permissions: str, is_staff: bool = True, csrf: bool = False) -> Client:
    """Return a browser with a superuser of the tenant, or a user with these permissions only."""
    client = Client(enforce_csrf_checks=csrf, headers={"Host": f"{program.tenant.slug}.localhost"})
    with tenant_scope(program.tenant.id):
        user = get_user_model().objects.create_user(
            "eva", password=PASSWORD, is_staff=is_staff, is_superuser=is_staff and not permissions
        )
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client.force_login(user)
    return client


def test_writing_with_a_session_needs_the_csrf_token(program_a: Program) -> None:
    client = admin(program_a, csrf=True)
    body = {"agent": "ada", "user_id": "eva", "content": "Hello"}
    response = client.post(MESSAGES, body, content_type="application/json")
    assert response.status_code == 403
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "CSRF" in response.json()["detail"]
    with tenant_scope(program_a.tenant.id):
        assert not Message.objects.exists()
    token = "a" * 32
    client.cookies["csrftoken"] = token
    allowed = client.post(
        MESSAGES, body, content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert allowed.status_code == 202


def test_operators_are_not_authenticated_in_the_api(program_a: Program) -> None:
    with as_owner():
        user = get_user_model().objects.create_superuser("operator", password=PASSWORD)
        client = Client(headers={"Host": "localhost"})
        client.force_login(user)
        assert client.get(MESSAGES).status_code == 401
        client.logout()  # removes the committed session
        user.delete()


TENANT = UUID("0190a7e2-6c4b-7d5e-8f1a-2b3c4d5e6f70")


def test_a_key_names_its_tenant_and_its_exact_text_can_be_read_back() -> None:
    key = new_key(TENANT)
    text = str(key)
    assert text.startswith("ks_0190a7e26c4b7d5e8f1a2b3c4d5e6f70_")
    assert parse_key(text) == key
    assert key.secret not in repr(key) + key.digest
    others = ["", "ks_", "ks_x_y_z", f"ks_{TENANT.hex}_abc_def", f"KS_{TENANT.hex}"]
    others += [f"{text}\n", f" {text}", f"{text}0", text.upper()]
    assert [parse_key(other) for other in others] == [None] * len(others)


@pytest.mark.parametrize(
    ("header", "credentials"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", ""),
        ("Token abc", "abc"),
        ("Basic abc", None),
        ("", None),
        ("abc", None),
    ],
)
def test_credentials_follow_bearer_or_token(header: str, credentials: str | None) -> None:
    assert bearer_key(header) == credentials
