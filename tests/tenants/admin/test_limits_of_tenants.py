"""Limits in the operators' form for a tenant."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tenants.context import public_scope
from tenants.models import OperatorEvent, Tenant

FORM = {"name": "Tenant A", "domains-TOTAL_FORMS": "0", "domains-INITIAL_FORMS": "0"}


def address(tenant: Tenant) -> str:
    return f"/admin/tenants/tenant/{tenant.id}/change/"


def test_an_operator_sets_and_removes_limits(operator: Client, tenant_a: Tenant) -> None:
    limits = {"quota_messages_soft": "8", "quota_messages_hard": "10", "quota_cost_hard": "2.5"}
    answer = operator.post(address(tenant_a), {**FORM, **limits})
    assert answer.status_code == 302, answer.context["errors"]
    tenant_a.refresh_from_db()
    assert tenant_a.quotas == {"messages": {"soft": "8", "hard": "10"}, "cost": {"hard": "2.5"}}
    assert 'value="10"' in operator.get(address(tenant_a)).text
    event = OperatorEvent.objects.filter(action="edit").latest("pk")
    assert event.detail["after"]["quotas"]["cost"] == {"hard": "2.5"}
    initial = {f"initial-{name}": value for name, value in limits.items()}
    operator.post(address(tenant_a), {**FORM, **initial})
    tenant_a.refresh_from_db()
    assert tenant_a.quotas == {}


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"quota_messages_soft": "11", "quota_messages_hard": "10"}, "is above the hard one"),
        ({"quota_messages_hard": "-1"}, "greater than or equal to 0"),
        ({"quota_messages_hard": "ten"}, "Enter a number"),
        ({"quota_messages_hard": "1.5"}, "no more than 0 decimal places"),
        ({"quota_messages_hard": "9" * 40}, "less than or equal to 1000000000000000"),
        ({"quota_messages_hard": "1e999999"}, ""),
        ({"quota_cost_hard": "0.0000001"}, "no more than 6 decimal places"),
        ({"quota_requests_per_second_hard": "0"}, "greater than or equal to 1"),
    ],
)
def test_invalid_limit_is_shown_as_an_error(
    operator: Client, tenant_a: Tenant, wrong: dict[str, str], error: str
) -> None:
    page = operator.post(address(tenant_a), {**FORM, **wrong})
    assert page.status_code == 200
    assert page.context["errors"]
    assert error in page.text
    tenant_a.refresh_from_db()
    assert tenant_a.quotas == {}


def test_an_operator_without_the_permission_reads_limits(tenant_a: Tenant) -> None:
    with public_scope():
        Tenant.objects.filter(pk=tenant_a.pk).update(
            quotas={"messages": {"hard": "10"}},
            usage={"reached": {"messages": {"level": "hard", "since": "2026-11-01T00:00:00Z"}}},
        )
        user = User.objects.create_user("vera", is_staff=True)
        user.user_permissions.add(Permission.objects.get(codename="view_tenant"))
    client = Client(headers={"Host": "localhost"})
    client.force_login(user)
    page = client.get(address(tenant_a))
    assert page.status_code == 200
    assert "Messages in a month: hard limit" in page.text
    assert client.post(address(tenant_a), FORM).status_code == 403
    listed = client.get("/admin/tenants/tenant/?quota=reached").context["cl"].result_list
    assert [tenant.slug for tenant in listed] == ["tenant-a"]
