"""Auditor, curator, admin: allowed pages and actions of each role."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from konstruct.admin.pages import model_page
from konstruct.orchestrator.models import ChannelIdentity, Escalation, PendingReply
from konstruct.urls import tenant as urlconf
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message
from tenants.admin.sites import tenant_site
from tenants.audit.roles import create_roles, role_permissions
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Browser, Program

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def populated_a(module_populated: Program) -> Program:
    return module_populated


Person = Callable[[str], Client]
# A value for each kind of argument in an address.
VALUES = {"UUIDConverter": uuid4(), "IntConverter": 1, "StringConverter": "csv"}


@pytest.fixture
def person(populated_a: Program) -> Person:
    """Log in a user with one role."""

    def log_in(role: str) -> Client:
        client = Client(headers={"Host": "tenant-a.localhost"})
        with tenant_scope(populated_a.tenant.id):
            user = User.objects.create_user(f"{role}{uuid4()}", is_staff=True)
            user.groups.set(Group.objects.filter(name=role))
            client.force_login(user)
        return client

    return log_in


def test_every_tenant_has_the_roles(tenant_a: Tenant, tenant_b: Tenant) -> None:
    for tenant in (tenant_a, tenant_b):
        with tenant_scope(tenant.id):
            for role, permissions in role_permissions().items():
                held = Group.objects.get(name=role).permissions.select_related("content_type")
                assert {f"{p.content_type.app_label}.{p.codename}" for p in held} == permissions
    assert not Group.objects.filter(name__in=role_permissions()).exists()


def test_migration_restores_the_permissions_of_a_role(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        auditor = Group.objects.get(name="auditor")
        auditor.permissions.set(Permission.objects.filter(codename="add_apikey"))
        create_roles()
        assert not auditor.permissions.filter(codename="add_apikey").exists()
        assert auditor.permissions.count() == len(role_permissions()["auditor"])


EVERY_ROLE = "auditor curator admin"
# Pages, and the roles that may open them by GET, beside the lists, which every role opens. POST
# requests are tested below.
PAGES = {
    "/admin/": EVERY_ROLE,
    "/admin/conversations/": EVERY_ROLE,
    "/admin/memories/": EVERY_ROLE,
    "/admin/people/": EVERY_ROLE,
    "/admin/sessions/": EVERY_ROLE,
    "/admin/people/person/?user=maria": EVERY_ROLE,
    "/admin/windows/": EVERY_ROLE,
    "/admin/window/?agent={agent}&user=maria": EVERY_ROLE,
    "/admin/people/person/erase/?user=maria": "admin",
    "/admin/agents/{agent}/try/": "admin",
    "/admin/activity/": EVERY_ROLE,
    "/admin/memory/memoryentry/add/": "curator admin",
    "/admin/orchestrator/agent/add/": "admin",
    "/admin/escalations/{escalation}/": EVERY_ROLE,
    "/admin/messages/{message}/erase/": "admin",
    "/admin/channels/slackmember/add/": "admin",
    "/admin/outbox/subscription/add/": "admin",
    "/admin/slack/connect/": "admin",
    "/admin/api/apikey/add/": "admin",
    "/admin/auth/user/{member}/change/": EVERY_ROLE,
    "/admin/auth/user/add/": "admin",
    "/admin/auth/group/add/": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("role", ["auditor", "curator", "admin"])
def test_a_role_opens_its_pages_and_no_others(
    pending_a: Program, person: Person, role: str
) -> None:
    client = person(role)
    with tenant_scope(pending_a.tenant.id):
        named = {
            "agent": pending_a.agent.pk,
            "escalation": Escalation.objects.get().pk,
            "message": Message.objects.get(content="Answer me!").pk,
            "member": User.objects.earliest("pk").pk,
        }
    lists = [reverse(model_page(model, "changelist"), urlconf) for model in tenant_site._registry]
    for address, roles in (dict.fromkeys(lists, EVERY_ROLE) | PAGES).items():
        # The auditor has the fewest permissions of the allowed roles.
        if roles == EVERY_ROLE and role != "auditor":
            continue
        opened = client.get(address.format(**named)).status_code
        assert (address, opened) == (address, 200 if role in roles.split() else 403)


@pytest.mark.parametrize("role", ["auditor", "curator", "admin"])
def test_role_has_exactly_its_permissions(pending_a: Program, person: Person, role: str) -> None:
    client, agent = person(role), pending_a.agent.pk
    with tenant_scope(pending_a.tenant.id):
        fact = MemoryEntry.objects.as_of().get().pk
        failed = Message.objects.get(content="Answer me!").pk
        escalation, identity = Escalation.objects.get().pk, ChannelIdentity.objects.get().pk
    retry = {"action": "retry", "_selected_action": str(failed)}
    client.post("/admin/orchestrator/pendingreply/", retry)
    with tenant_scope(pending_a.tenant.id):
        assert PendingReply.objects.failed().exists() == (role != "admin")
    done = {
        "clear": client.post(f"/admin/window/clear/?agent={agent}&user=maria"),
        "export": client.post("/admin/people/person/export/?user=maria"),
        "erase": client.post("/admin/people/person/erase/?user=maria", {"typed": "maria"}),
        "escalate": client.post(f"/admin/conversations/{failed}/escalate/"),
        "answer": client.post(f"/admin/escalations/{escalation}/answer/", {"content": "Hi"}),
        "resolve": client.post(f"/admin/escalations/{escalation}/resolve/", {"outcome": "agent"}),
        "link": client.post(
            f"/admin/orchestrator/channelidentity/{identity}/change/", {"user_id": "bob"}
        ),
        "delete": client.post(f"/admin/memory/memoryentry/{fact}/delete/", {"post": "yes"}),
    }
    allowed = {name for name, answer in done.items() if answer.status_code != 403}
    assert (
        allowed
        == {
            "auditor": {"export"},
            "curator": {"export", "clear", "delete", "escalate", "answer", "resolve"},
            "admin": done.keys(),
        }[role]
    )
    standing = LongTermMemory().get(fact, pending_a.tenant.id)
    assert (standing is None) == (role != "auditor")


@pytest.mark.slow
def test_sidebar_shows_only_permitted_pages(person: Person) -> None:
    for role in ("auditor", "admin"):
        client = person(role)
        page = client.get("/admin/conversations/")
        links = {
            item["link"] for group in page.context["sidebar_navigation"] for item in group["items"]
        }
        assert links >= {"/admin/api/apikey/", "/admin/auth/user/"}
        for link in links:
            assert client.get(link).status_code == 200


@pytest.mark.slow
def test_user_without_a_role_can_open_no_page(populated_a: Program, browser: Browser) -> None:
    client = browser(populated_a.tenant, "no such permission")
    for name, permission in tenant_site.pages.items():
        assert permission or name == "records"
        (url,) = [url for url in tenant_site.extra_urls() if url.name == name]
        arguments = {
            argument: VALUES[type(converter).__name__]
            for argument, converter in url.pattern.converters.items()
        }
        address = reverse(f"admin:{name}", urlconf=urlconf, kwargs=arguments)
        assert (name, client.get(address).status_code) == (name, 403)
        assert (name, client.post(address).status_code) == (name, 403)


def test_an_admin_makes_no_superuser_and_changes_none(populated_a: Program, person: Person) -> None:
    client = person("admin")
    with tenant_scope(populated_a.tenant.id):
        boss = User.objects.create_superuser("boss", password="pw")
        auditor = User.objects.create_user("auditor", is_staff=True)
    form = {
        "username": "auditor",
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
        "user_permissions": "1",
        "role": "auditor",
    }
    page = f"/admin/auth/user/{auditor.pk}/"
    assert client.post(f"{page}change/", form).status_code == 302
    bosses = f"/admin/auth/user/{boss.pk}/"
    assert client.post(f"{bosses}change/", {**form, "username": "boss"}).status_code == 403
    assert client.post(f"{bosses}password/", {}).status_code == 403
    with tenant_scope(populated_a.tenant.id):
        auditor.refresh_from_db()
        assert not auditor.is_superuser
        assert not auditor.user_permissions.exists()
