"""The team: invitations by link, resets of passwords, one role, and the last admin."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache
from django.test import Client

from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.limits import rate_limit
from tenants.models import Tenant
from tenants.tasks import send_password_links
from tests.konstruct.conftest import Browser
from tests.servers.mail import MailServer

TEAM = "/admin/auth/user/"
RESET = "/admin/password-reset/"
PASSWORD = "correct horse battery"
NEW = {"new_password1": PASSWORD, "new_password2": PASSWORD}
LINK = re.compile(r"http://\S+/admin/password/[^\s<]+")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """Tasks for the worker, which run at once."""
    tasks: list[list[Any]] = []

    def send(name: str, arguments: list[Any]) -> None:
        tasks.append(arguments)
        send_password_links.run(*arguments)

    monkeypatch.setattr("tenants.admin.sites.current_app.send_task", send)
    return tasks


@pytest.fixture
def with_role(tenant_a: Tenant, db: None) -> Callable[..., User]:
    def make(username: str, *roles: str, tenant: Tenant = tenant_a, **fields: Any) -> User:
        with tenant_scope(tenant.id):
            user = User.objects.create_user(username, password=PASSWORD, is_staff=True, **fields)
            user.groups.set(Group.objects.filter(name__in=roles))
        return user

    return make


def logged_in(tenant: Tenant, user: User) -> Client:
    client = Client(headers={"Host": f"{tenant.slug}.localhost"})
    with tenant_scope(tenant.id):
        client.force_login(user)
    return client


def follow(client: Client, link: str, **form: str) -> Any:
    """Open a link of a mail, and send its form."""
    path = link.split("localhost", 1)[1]
    page = client.get(path, follow=True)
    return client.post(page.request["PATH_INFO"], form or NEW, follow=True)


def add(client: Client, username: str, role: str, email: str = "") -> Any:
    form = {"username": username, "email": email, "role": role}
    return client.post(f"{TEAM}add/", form, follow=True)


def test_a_colleague_is_invited_by_a_link_that_works_once(
    tenant_a: Tenant, tenant_b: Tenant, browser: Browser
) -> None:
    page = add(browser(tenant_a), "eve", "curator")
    invite = page.request["PATH_INFO"]
    answer = browser(tenant_a).post(invite, {"by": "link"})
    found = LINK.search(answer.text)
    assert found is not None
    stranger = Client(headers={"Host": "tenant-a.localhost"})
    elsewhere = Client(headers={"Host": "tenant-b.localhost"})
    with tenant_scope(tenant_b.id):
        User.objects.create_user("bob", id=User.objects.count() + 1000)
    assert "used already" in elsewhere.get(found[0].split("localhost", 1)[1]).text
    assert "log in with it" in follow(stranger, found[0]).text
    assert "used already" in stranger.get(found[0].split("localhost", 1)[1]).text
    assert stranger.login(username="eve", password=PASSWORD) is False  # no tenant is entered here
    form = {"username": "eve", "password": PASSWORD}
    assert stranger.post("/admin/login/", form).status_code == 302
    with tenant_scope(tenant_a.id):
        eve = User.objects.get(username="eve")
        assert [group.name for group in eve.groups.all()] == ["curator"]
        assert (eve.is_staff, eve.is_superuser) == (True, False)
        events = AccessEvent.objects.filter(subject="user", action="edit").order_by("id")
        assert [event.detail for event in events] == [
            {"invited": "link"},
            {"withheld": ["password"]},
        ]


def test_invitation_to_a_role_with_more_permissions_is_refused(
    tenant_a: Tenant, tenant_b: Tenant, with_role: Callable[..., User], browser: Any
) -> None:
    client = logged_in(tenant_a, with_role("ada", "admin"))
    with tenant_scope(tenant_a.id):
        boss = User.objects.create_superuser("boss", password=PASSWORD)
        strong = Group.objects.create(name="strong")
        strong.permissions.set(Permission.objects.all())
    other = with_role("other", "strong")
    for user in (boss, other):
        assert client.post(f"/admin/team/{user.pk}/invite/", {"by": "link"}).status_code == 403
        assert client.post(f"{TEAM}{user.pk}/password/", {}).status_code == 403
    assert "Select a valid choice" in add(client, "eve", "strong").text
    assert "Select a valid choice" in add(client, "eve", "superuser").text
    auditor = browser(tenant_a, "view_user")
    assert auditor.post(f"/admin/team/{other.pk}/invite/", {"by": "link"}).status_code == 403
    with tenant_scope(tenant_b.id):
        far = User.objects.create_user("far", id=990_000)
    assert client.post(f"/admin/team/{far.pk}/invite/", {"by": "link"}).status_code == 404


def test_last_admin_cannot_be_removed(tenant_a: Tenant, with_role: Callable[..., User]) -> None:
    ada = with_role("ada", "admin")
    client = logged_in(tenant_a, ada)
    page = f"{TEAM}{ada.pk}/change/"
    for change in ({"role": "auditor", "is_active": "on"}, {"role": "admin"}):
        assert "This is the last admin" in client.post(page, {"username": "ada", **change}).text
    with tenant_scope(tenant_a.id):
        User.objects.create(username="invited").groups.set(Group.objects.filter(name="admin"))
    form = {"username": "ada", "role": "auditor", "is_active": "on"}
    assert "This is the last admin" in client.post(page, form).text
    with_role("eva", "admin")
    assert client.post(page, form).status_code == 302
    with tenant_scope(tenant_a.id):
        assert [group.name for group in ada.groups.all()] == ["auditor"]


def test_password_reset_does_not_reveal_accounts(
    tenant_a: Tenant, tenant_b: Tenant, with_role: Callable[..., User], mail: MailServer,
    sent: list[list[Any]],
) -> None:  # fmt: skip
    with_role("ada", "admin", email="ada@example.com")
    with_role("bob", "admin", email="bob@example.com", tenant=tenant_b)
    stranger = Client(headers={"Host": "tenant-a.localhost:1234"})
    assert RESET in stranger.get("/admin/login/").text
    pages = [
        stranger.post(RESET, {"email": email}).text
        for email in ("ada@example.com", "bob@example.com", "x'\"<b>@example.com")
    ]
    without_tokens = [re.sub(r'value="[^"]*"|[\w.\'"<>&;#]+@example.com', "", p) for p in pages[:2]]
    assert without_tokens[0] == without_tokens[1]
    assert len(sent) == 2
    (message,) = mail.mails
    assert mail.recipients == [["ada@example.com"]]
    found = LINK.search(message.get_content())
    assert found is not None
    assert ":1234" not in message.get_content()
    assert "log in with it" in follow(stranger, found[0], new_password1="other horse 77",
                                      new_password2="other horse 77").text  # fmt: skip
    form = {"username": "ada", "password": "other horse 77"}
    assert stranger.post("/admin/login/", form).status_code == 302
    with tenant_scope(tenant_a.id):
        event = AccessEvent.objects.filter(action="edit").get()
        assert (event.actor, event.detail) == ("ada", {"withheld": ["password"]})


def test_a_weak_password_is_refused_and_resets_are_throttled(
    tenant_a: Tenant, with_role: Callable[..., User], mail: MailServer, sent: list[list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(rate_limit, "ATTEMPTS", 3)
    with_role("ada", "admin", email="ada@example.com")
    stranger = Client(headers={"Host": "tenant-a.localhost"})
    codes = [stranger.post(RESET, {"email": "ada@example.com"}).status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]
    assert len(mail.mails) == len(sent) == 3
    found = LINK.search(mail.mails[0].get_content())
    assert found is not None
    page = follow(stranger, found[0], new_password1="123", new_password2="123")
    assert "too short" in page.text
