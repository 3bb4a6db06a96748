"""Host name -> tenant: which host serves which tenant, and the reset afterwards."""

import pytest
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import Client, RequestFactory
from structlog.contextvars import clear_contextvars

from tenants.context import connection, current_tenant_id, tenant_scope
from tenants.exceptions import TenantPinned
from tenants.http import TenantMiddleware, host_name
from tenants.models import Domain, Tenant

REQUESTS = RequestFactory()


def get(host: str) -> HttpRequest:
    return REQUESTS.get("/admin/", headers={"host": host})


def serve(request: HttpRequest, view: object) -> HttpResponseBase:
    response = TenantMiddleware(view)(request)  # type: ignore[arg-type]
    assert connection.pinned_tenant is None
    clear_contextvars()  # without the middleware of the request's id, which does
    return response


def where_am_i(request: HttpRequest) -> HttpResponse:
    tenant = request.tenant  # type: ignore[attr-defined]
    return HttpResponse(f"{tenant} {current_tenant_id()} {request.urlconf}")


@pytest.mark.parametrize(
    "host", ["tenant-a.localhost", "tenant-a.localhost:8000", "TENANT-A.localhost"]
)
def test_a_tenants_host_is_served_inside_the_tenant(tenant_a: Tenant, host: str) -> None:
    response = serve(get(host), where_am_i)
    assert response.content.decode() == f"tenant-a {tenant_a.id} konstruct.urls.tenant"  # type: ignore[attr-defined]
    assert current_tenant_id() is None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000"])
def test_a_public_host_is_served_in_no_tenant(db: None, host: str) -> None:
    response = serve(get(host), where_am_i)
    assert response.content.decode() == "None None konstruct.urls.public"  # type: ignore[attr-defined]


def test_request_does_not_see_an_earlier_tenant(tenant_a: Tenant) -> None:
    connection.set_tenant(tenant_a)
    response = serve(get("localhost"), where_am_i)
    assert response.content.decode() == "None None konstruct.urls.public"  # type: ignore[attr-defined]


def test_a_host_that_is_not_allowed_reaches_no_tenant(tenant_a: Tenant) -> None:
    Domain.objects.create(domain="evil.example", tenant=tenant_a)
    with pytest.raises(DisallowedHost):
        serve(get("evil.example"), where_am_i)


@pytest.mark.parametrize(
    ("state", "status", "sentence"),
    [
        ("suspended", 403, b"This service is suspended.\n"),
        ("provisioning", 503, b"This service is being set up; try again later.\n"),
        ("restoring", 503, b"This service is being restored from a backup; try again later.\n"),
    ],
)
def test_a_tenant_that_does_not_serve(
    tenant_a: Tenant, state: str, status: int, sentence: bytes
) -> None:
    Tenant.objects.filter(id=tenant_a.id).update(state=state)
    response = serve(get("tenant-a.localhost"), where_am_i)
    assert (response.status_code, response.content) == (status, sentence)  # type: ignore[attr-defined]


def test_code_that_serves_a_request_cannot_enter_another_tenant(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    def reach_over(request: HttpRequest) -> HttpResponse:
        with tenant_scope(tenant_b.id):
            return HttpResponse("entered")

    with pytest.raises(TenantPinned):
        serve(get("tenant-a.localhost"), reach_over)
    assert connection.pinned_tenant is None
    assert current_tenant_id() is None


def test_one_query_finds_the_tenant(tenant_a: Tenant, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(1):  # type: ignore[operator]
        serve(get("tenant-a.localhost"), where_am_i)


@pytest.mark.parametrize(
    ("path", "content_type"),
    [("/admin/", "text/plain; charset=utf-8"), ("/api/v1/messages/", "application/problem+json")],
)
def test_unknown_host_is_refused_by_the_complete_stack(
    tenant_a: Tenant, client: Client, path: str, content_type: str
) -> None:
    response = client.get(path, headers={"host": "nobody.localhost"})
    assert (response.status_code, response["Content-Type"]) == (404, content_type)
    assert "tenant" not in response.content.decode()


@pytest.mark.parametrize(
    ("header", "name"),
    [("A.example:80", "a.example"), ("a.example.", "a.example"), ("[::1]:8", "[::1]"), ("", "")],
)
def test_the_name_of_a_host(header: str, name: str) -> None:
    assert host_name(header) == name


@pytest.mark.django_db(transaction=True)
def test_a_cookie_that_no_session_can_have_is_none(tenant_a: Tenant) -> None:
    cookie = r'sessionid="0123456789\000"'
    client = Client(headers={"host": "tenant-a.localhost", "cookie": cookie})
    assert client.get("/admin/login/").status_code == 200
