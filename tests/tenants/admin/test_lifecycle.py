"""Operators suspend, delete, restore and invite. Deleting asks for the name."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.core import signing
from django.db import ProgrammingError
from django.test import Client
from django.utils import timezone

from tenants.admin.sites import SALT
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tenants.models import Domain, OperatorEvent, Tenant
from tenants.schemas import provisioning
from tests import database

TENANTS = "/admin/tenants/tenant/"
PASSWORD = "correct horse battery"
LINK = re.compile(r"http://[^\s<]+/admin/first-admin/[^\s<]+")


def log_in(*permissions: str) -> Client:
    client = Client(headers={"Host": "localhost"})
    user = User.objects.create_user(f"u{uuid4()}", is_staff=True)
    user.is_superuser = not permissions
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return client


@pytest.fixture
def operator(db: None) -> Client:
    return log_in()


def page_of(tenant: Tenant, name: str) -> str:
    return f"/admin/tenants/{tenant.id}/{name}/"


def test_a_tenant_is_suspended(operator: Client, tenant_a: Tenant) -> None:
    chosen = {"action": "suspend", "_selected_action": [str(tenant_a.id)]}
    log_in("view_tenant").post(TENANTS, chosen)
    assert Tenant.objects.get(pk=tenant_a.pk).state == "active"
    page = operator.post(TENANTS, chosen, follow=True)
    assert "tenant-a is suspended." in page.text
    assert Tenant.objects.get(pk=tenant_a.pk).state == "suspended"
    client = Client(headers={"Host": "tenant-a.localhost"})
    assert client.get("/admin/login/").status_code == 403


@pytest.mark.parametrize("name", ["remove", "invite"])
def test_tenant_cannot_be_changed_with_view_permission(
    tenant_a: Tenant, name: str, db: None
) -> None:
    looking = log_in("view_tenant")
    assert looking.get(TENANTS).status_code == 200
    page = page_of(tenant_a, name)
    assert looking.get(page).status_code == 403
    assert looking.post(page, {"typed": "tenant-a", "by": "link"}).status_code == 403
    assert Tenant.objects.get(pk=tenant_a.pk).state == "active"
    client = Client(headers={"Host": "tenant-a.localhost"})
    assert client.post(page, {"typed": "tenant-a"}).status_code in (302, 404)


def test_a_deleted_tenant_is_refused_and_restored_as_it_was(
    operator: Client, tenant_a: Tenant
) -> None:
    asked = operator.get(page_of(tenant_a, "remove")).text
    assert "tenant-a.localhost" in asked
    for typed in ("", "tenant-b", "TENANT-A"):
        page = operator.post(page_of(tenant_a, "remove"), {"typed": typed})
        assert "Type tenant-a to confirm." in page.text
    page = operator.post(page_of(tenant_a, "remove"), {"typed": "tenant-a"}, follow=True)
    assert "is deleted after 7 days" in page.text
    assert "Restore" in page.text
    assert "to be deleted" in operator.get(TENANTS).text
    assert "To be deleted" in operator.get("/admin/").text
    client = Client(headers={"Host": "tenant-a.localhost"})
    refused = client.get("/admin/login/", headers={"Accept": "text/html"})
    assert refused.status_code == 403
    assert "It is to be deleted with its data." in refused.text
    assert "data is kept" not in refused.text
    again = operator.post(page_of(tenant_a, "remove"), {"typed": "tenant-a"}, follow=True)
    assert "is to be deleted already" in again.text
    chosen = {"_selected_action": [str(tenant_a.id)]}
    resumed = operator.post(TENANTS, {"action": "resume", **chosen}, follow=True)
    assert "restore it first" in resumed.text
    log_in("view_tenant", "change_tenant").post(TENANTS, {"action": "restore", **chosen})
    assert Tenant.objects.get(pk=tenant_a.pk).deletion_asked_at
    restored = operator.post(TENANTS, {"action": "restore", **chosen}, follow=True)
    assert "is restored" in restored.text
    tenant = Tenant.objects.get(pk=tenant_a.pk)
    assert (tenant.state, tenant.deletion_asked_at, tenant.state_before) == ("active", None, "")
    assert client.get("/admin/login/").status_code == 200
    done = OperatorEvent.objects.exclude(action__in=["view", "list", "login"]).order_by("-id")[:2]
    assert [event.get_action_display() for event in done] == ["restored", "asked to delete"]


@pytest.mark.django_db(transaction=True)
def test_only_the_owner_sets_the_time_of_a_deletion(tenant_a: Tenant) -> None:
    provisioning.request_deletion(tenant_a)
    Tenant.objects.update(deletion_asked_at=timezone.now() - timedelta(days=99))
    with pytest.raises(ProgrammingError, match="permission denied"):
        Tenant.objects.update(delete_at=timezone.now())
    with database.as_owner():
        assert provisioning.delete_due() == 0
    tenant = Tenant.objects.get(pk=tenant_a.pk)
    assert tenant.delete_at is not None
    assert tenant.delete_at > timezone.now() + timedelta(days=6)
    provisioning.restore_tenant(tenant_a)
    with database.as_owner():
        assert provisioning.delete_due() == 0
    assert Tenant.objects.get(pk=tenant_a.pk).delete_at is None


def test_the_home_of_operators_costs_the_same_with_many_tenants(
    operator: Client, tenant_a: Tenant, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    Tenant.objects.bulk_create(
        Tenant(slug=f"many-{n}", name="Many", id=(pk := uuid4()), schema_name=f"t_{pk.hex}",
               server="default")
        for n in range(1000)
    )  # fmt: skip
    with django_assert_max_num_queries(14):
        page = operator.get("/admin/")
    assert "of 1002 tenants active" in page.text
    with django_assert_max_num_queries(9):
        assert operator.get(TENANTS, {"p": "20"}).status_code == 200


def test_home_page_hides_tenants_without_permission(tenant_a: Tenant, db: None) -> None:
    page = log_in("view_user").get("/admin/")
    assert "tenant-a" not in page.text
    assert not page.context["attention"]


@pytest.fixture
def added(operator: Client) -> Tenant:
    form = {"slug": "fresh", "name": "Fresh", "domain": "", "email": "ada@example.com"}
    page = operator.post(f"{TENANTS}add/", form, follow=True)
    assert 'value="ada@example.com"' in page.text
    tenant = Tenant.objects.get(slug="fresh")
    assert Domain.objects.get(tenant=tenant).domain == "fresh.localhost"
    return tenant


def test_a_tenant_is_added_by_one_form_and_its_first_admin_invited(
    operator: Client, added: Tenant
) -> None:
    page = operator.post(page_of(added, "invite"), {"email": "ada@example.com"})
    found = LINK.search(page.text)
    assert found is not None
    assert found[0].startswith("http://fresh.localhost/admin/first-admin/")


def test_the_first_admin_is_made_once(
    operator: Client, tenant_a: Tenant, tenant_b: Tenant, settings: Any
) -> None:
    invite = page_of(tenant_a, "invite")
    assert "Enter a valid email address." in operator.post(invite, {"email": "a@@x"}).text
    assert invite in operator.get(f"{TENANTS}{tenant_a.pk}/change/").text
    page = operator.post(invite, {"by": "link", "email": "a@example.com"})
    found = LINK.search(page.text)
    assert found is not None
    path = found[0].split("tenant-a.localhost", 1)[1]
    stranger = Client(headers={"Host": "tenant-a.localhost"})
    for other, address in (
        (Client(headers={"Host": "tenant-b.localhost"}), path),
        (stranger, path.replace("first-admin/", "first-admin/x")),
        (stranger, f"/admin/first-admin/{signing.dumps([str(tenant_a.id), ''], salt='x')}/"),
        (stranger, f"/admin/first-admin/{signing.dumps(7, salt=SALT)}/"),
    ):
        assert "used already, or is too old" in other.get(address).text
    assert operator.get(path).status_code == 404
    form = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD}
    weak = {**form, "password1": "123", "password2": "123"}
    assert "too short" in stranger.post(path, weak).text
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert "is too old" in stranger.post(path, form).text
    settings.PASSWORD_RESET_TIMEOUT = 3600
    assert "You are the first admin" in stranger.post(path, form, follow=True).text
    assert "used already" in stranger.post(path, {**form, "username": "eve"}).text
    invited = operator.post(invite, {"email": "b@example.com"}, follow=True)
    assert "tenant-a has an admin, who invites others." in invited.text
    assert invite not in invited.text
    with tenant_scope(tenant_a.id):
        ada = User.objects.get()
        assert (ada.username, ada.email, ada.is_superuser) == ("ada", "a@example.com", True)
        event = AccessEvent.objects.get(action="create")
        assert (event.actor, event.detail) == ("ada", {"first_admin": True})
    passwords = {"username": "ada", "password": PASSWORD}
    assert stranger.post("/admin/login/", passwords).status_code == 302
    assert OperatorEvent.objects.filter(name="tenant-a", detail={"invited": "link"}).exists()
