"""Logins of both admins: limits of failures, and records."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django_redis import get_redis_connection

from tenants.context import tenant_scope
from tenants.limits import rate_limit
from tenants.models import OperatorEvent, Tenant
from tests.konstruct.conftest import access_events

LOGIN = "/admin/login/"
RIGHT = "correct horse battery"


@pytest.fixture(autouse=True)
def _fresh(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(rate_limit, "ATTEMPTS_PER_ADDRESS", 20)
    monkeypatch.setattr(rate_limit, "ATTEMPTS_PER_USER", 30)
    # The default hasher takes half a second for each attempt.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def eva(tenant_a: Tenant) -> User:
    with tenant_scope(tenant_a.id):
        return User.objects.create_superuser("eva", password=RIGHT)


def log_in(
    password: str,
    *,
    username: str = "eva",
    address: str = "198.51.100.7",
    host: str = "tenant-a.localhost",
    **headers: str,
) -> Any:
    client = Client(headers={"Host": host})
    form = {"username": username, "password": password}
    return client.post(LOGIN, form, REMOTE_ADDR=address, headers=headers)


def count_hashes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    hashed: list[int] = []
    hasher = MD5PasswordHasher.encode

    def encode(self: Any, password: str, salt: str) -> str:
        hashed.append(1)
        return str(hasher(self, password, salt))

    monkeypatch.setattr(MD5PasswordHasher, "encode", encode)
    return hashed


def test_after_five_failures_the_right_password_is_not_even_looked_at(
    tenant_a: Tenant, eva: User
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        hashed = count_hashes(patch)
        for _ in range(5):
            assert log_in("wrong").status_code == 200
        looked_at = len(hashed)
        locked = [log_in(RIGHT) for _ in range(20)]
    assert {answer.status_code for answer in locked} == {429}
    assert looked_at >= 5
    assert len(hashed) == looked_at
    assert 0 < int(locked[0].headers["Retry-After"]) <= 180
    assert "Too many attempts" in locked[0].text
    recorded = access_events(tenant_a)
    assert [event.action for event in recorded] == ["login_failed"] * 6
    assert [event.detail.get("locked", False) for event in recorded] == [False] * 5 + [True]
    for event in recorded:
        assert (event.actor_kind, event.actor) == ("unknown", "eva")
        assert event.address == "198.51.100.7"
        assert "wrong" not in str(event.detail)
        assert RIGHT not in str(event.detail)


def test_many_names_from_one_address_are_limited(tenant_a: Tenant, eva: User) -> None:
    statuses = [log_in("wrong", username=f"u{number}").status_code for number in range(22)]
    assert statuses == [200] * 20 + [429] * 2
    assert log_in(RIGHT).status_code == 429
    assert log_in(RIGHT, address="198.51.100.8").status_code == 302


@pytest.mark.slow
def test_attempts_from_many_addresses_do_not_lock_out_known_addresses(
    tenant_a: Tenant, eva: User
) -> None:
    assert log_in(RIGHT, address="192.0.2.1").status_code == 302
    statuses = [
        log_in("wrong", address=f"203.0.113.{number // 4}").status_code for number in range(34)
    ]
    assert statuses == [200] * 30 + [429] * 4
    assert log_in(RIGHT, address="192.0.2.99").status_code == 429
    assert log_in(RIGHT, address="192.0.2.1").status_code == 302


def test_an_address_cannot_be_forged(tenant_a: Tenant, eva: User, settings: Any) -> None:
    for number in range(6):
        log_in("wrong", **{"X-Forwarded-For": f"10.0.0.{number}"})
    assert log_in(RIGHT, **{"X-Forwarded-For": "10.9.9.9"}).status_code == 429
    settings.TRUSTED_PROXIES = 1
    cache.clear()
    for number in range(6):
        log_in("wrong", **{"X-Forwarded-For": f"10.0.0.{number}, 203.0.113.5"})
    assert log_in(RIGHT, **{"X-Forwarded-For": "10.9.9.9, 203.0.113.5"}).status_code == 429
    assert log_in(RIGHT, **{"X-Forwarded-For": "203.0.113.5, 203.0.113.6"}).status_code == 302
    assert access_events(tenant_a)[-1].address == "203.0.113.6"


def test_unknown_and_known_usernames_get_the_same_answer(tenant_a: Tenant, eva: User) -> None:
    with tenant_scope(tenant_a.id):
        User.objects.create_user("guest", password=RIGHT)
    answers = {}
    for username, password in (("eva", "wrong"), ("nobody", "wrong"), ("guest", RIGHT)):
        tried = [log_in(password, username=username) for _ in range(7)]
        answers[username] = (
            [answer.status_code for answer in tried],
            tried[0].text.replace(username, "…").count("correct username and password"),
        )
    assert answers["eva"] == answers["nobody"] == answers["guest"]


def test_failed_logins_of_one_tenant_do_not_lock_accounts_of_another(
    tenant_a: Tenant, tenant_b: Tenant, eva: User
) -> None:
    with tenant_scope(tenant_b.id):
        User.objects.create_superuser("eva", password=RIGHT)
    for _ in range(6):
        log_in("wrong")
    assert log_in(RIGHT).status_code == 429
    assert log_in(RIGHT, host="tenant-b.localhost").status_code == 302
    assert {event.action for event in access_events(tenant_b)} == {"login"}
    for key in get_redis_connection("default").keys("*login*"):
        assert key.decode().split(":")[0] in (str(tenant_a.id), str(tenant_b.id), "public")


def test_a_login_a_logout_and_a_new_password_are_recorded(tenant_a: Tenant, eva: User) -> None:
    client = Client(headers={"Host": "tenant-a.localhost"})
    client.post(LOGIN, {"username": "eva", "password": RIGHT}, REMOTE_ADDR="198.51.100.7")
    new = "another horse battery"
    changed = client.post(
        "/admin/password_change/",
        {"old_password": RIGHT, "new_password1": new, "new_password2": new},
    )
    assert changed.status_code == 302
    client.post("/admin/logout/")
    client.post("/admin/logout/")
    login, edited, logout = access_events(tenant_a)
    assert (login.action, edited.action, logout.action) == ("login", "edit", "logout")
    for event in (login, edited, logout):
        assert (event.actor_kind, event.actor, event.actor_id) == ("person", "eva", str(eva.pk))
    assert login.address == "198.51.100.7"
    assert (edited.subject, edited.detail) == ("user", {"withheld": ["password"]})


def test_operators_are_throttled_and_recorded_on_their_own_site(tenant_a: Tenant) -> None:
    User.objects.create_superuser("olga", password=RIGHT)
    for _ in range(6):
        last = log_in("wrong", username="olga", host="localhost")
    assert last.status_code == 429
    assert log_in(RIGHT, username="olga", host="localhost", address="192.0.2.7").status_code == 302
    recorded = OperatorEvent.objects.order_by("id")
    assert [(event.action, event.actor) for event in recorded] == [
        *[("login_failed", "olga")] * 6,
        ("login", "olga"),
    ]
    assert access_events(tenant_a) == []


def test_without_a_cache_people_can_log_in(
    tenant_a: Tenant, eva: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django_redis.exceptions import ConnectionInterrupted

    def is_down(*_: Any) -> None:
        raise ConnectionInterrupted(None)

    monkeypatch.setattr("tenants.limits.rate_limit.get_redis_connection", is_down)
    assert log_in(RIGHT).status_code == 302


def test_the_old_password_cannot_be_guessed_by_a_session(
    tenant_a: Tenant, eva: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(headers={"Host": "tenant-a.localhost"})
    client.post(LOGIN, {"username": "eva", "password": RIGHT}, REMOTE_ADDR="198.51.100.7")
    new = "another horse battery"

    def change(old: str, again: str = new) -> int:
        form = {"old_password": old, "new_password1": new, "new_password2": again}
        return client.post("/admin/password_change/", form, REMOTE_ADDR="198.51.100.7").status_code

    # An invalid new password is no guess.
    assert [change(RIGHT, "other") for _ in range(7)] == [200] * 7
    assert [change("wrong") for _ in range(5)] == [200] * 5
    hashed = count_hashes(monkeypatch)
    assert (change("wrong"), change(RIGHT), hashed) == (429, 429, [])
    assert log_in(RIGHT).status_code == 429
    with tenant_scope(tenant_a.id):
        assert User.objects.get().check_password(RIGHT)
    failed = [event.actor for event in access_events(tenant_a) if event.action == "login_failed"]
    assert failed == ["eva"] * 6


def test_many_attempts_at_once_are_no_more_than_one_after_the_other(tenant_a: Tenant) -> None:
    at_once = Barrier(20)

    def attempt(_: int) -> bool:
        with tenant_scope(tenant_a.id):
            at_once.wait()
            return rate_limit.LoginAttempt("eva", "198.51.100.7").begin().allowed

    with ThreadPoolExecutor(20) as threads:
        assert sum(threads.map(attempt, range(20))) == 5


def test_operators_see_the_processes(operator: Client) -> None:
    page = operator.get("/admin/processes/")
    assert {"database", "cache", "replies", "owner"} <= dict(page.context["checks"]).keys()
