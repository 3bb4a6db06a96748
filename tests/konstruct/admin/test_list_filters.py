"""Filters of lists: only those that a list declares, and statements of pages end in time."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.models import User
from django.contrib.messages.storage.fallback import FallbackStorage
from django.db.models import QuerySet
from django.test import Client, RequestFactory
from django.urls import reverse

from konstruct.admin import pages
from konstruct.admin.pages import BoundedPaginator, model_page
from konstruct.admin.rows import MessageAdmin
from konstruct.channels.models import SlackInstallation
from memory.models import Message
from tenants.admin.sites import operator_site, tenant_site
from tenants.context import fetch_row, tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Program

LISTS = [
    (site, model)
    for site in (tenant_site, operator_site)
    for model in sorted(site._registry, key=lambda model: model._meta.label)
]
OF_FIELD_FILTERS = ("exact", "isnull", "isempty", "gte", "lt")
LOOKUPS = (*OF_FIELD_FILTERS, "startswith", "regex", "iexact", "in", "gt", "year")


@pytest.mark.parametrize(
    ("site", "model"),
    LISTS,
    ids=lambda part: getattr(part, "__name__", type(part).__name__),
)
def test_a_list_applies_no_lookup_that_it_does_not_declare(
    tenant_a: Tenant, site: Any, model: Any
) -> None:
    page = site._registry[model]

    def opened(query: dict[str, str]) -> Any:
        request: Any = RequestFactory().get("/", query)
        request.user, request.session = User(is_superuser=True, is_active=True), {}
        request._messages = FallbackStorage(request)
        return page.get_changelist_instance(request)

    with tenant_scope(tenant_a.id):
        items = page.get_list_filter(SimpleNamespace(user=User(is_superuser=True), GET={}))
        filtered = {item[0] if isinstance(item, tuple) else item for item in items}
        declared = {f"{column}__{lookup}" for column in filtered for lookup in OF_FIELD_FILTERS}
        columns = [field.name for field in model._meta.get_fields() if hasattr(field, "attname")]
        for lookup in [f"{column}__{lookup}" for column in columns for lookup in LOOKUPS]:
            if lookup not in declared:
                with pytest.raises((IncorrectLookupParameters, DisallowedModelAdminLookup)):
                    opened({lookup: "1"})


def test_a_filter_that_a_list_does_not_have_is_a_message(
    program_a: Program, admin: Client, operator: Client
) -> None:
    keys, messages = reverse("admin:api_apikey_changelist"), "/admin/memory/message/"
    for address in (
        f"{keys}?secret_digest__startswith=a",
        f"{reverse(model_page(SlackInstallation, 'changelist'))}?encrypted_token__startswith=g",
        f"{messages}?created_at__year=99999999",
        f"{messages}?content__regex=(a+)%2B$",
        f"{messages}?created_at__gte=99999999",
        f"{messages}?nothing=1",
    ):
        page = admin.get(address, follow=True)
        assert page.redirect_chain == [(f"{address.partition('?')[0]}?e=1", 302)], address
        assert "This list has no such filter, or no such value of it" in page.text
    exported = admin.post(f"{messages}export/?content__regex=a", follow=True)
    assert "This list has no such filter" in exported.text
    assert admin.get(f"{messages}?role__exact=user").status_code == 200
    page = operator.get("/admin/tenants/tenant/?schema_name__startswith=a", follow=True)
    assert "This list has no such filter" in page.text


@pytest.mark.django_db(transaction=True)
def test_a_page_ends_with_its_slow_statement(
    program_a: Program, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "(SELECT count(*) FROM generate_series(1, 1000000000)) > 0"
    monkeypatch.setattr(
        MessageAdmin,
        "get_queryset",
        lambda *_: Message.objects.extra(where=[slow]),  # noqa: S610
    )
    monkeypatch.setattr(pages, "PAGE_STATEMENT_SECONDS", 1)
    admin.raise_request_exception = False
    page = admin.get("/admin/memory/message/", headers={"Accept": "text/html"})
    assert page.status_code == 503
    assert "Reading this took too long, and was stopped" in page.text
    with tenant_scope(program_a.tenant.id):
        assert fetch_row("SHOW statement_timeout") != ("1s",)


def test_a_list_that_counts_does_not_block_another() -> None:
    begun, release = threading.Event(), threading.Event()

    class Slow(QuerySet[Any]):
        ordered = True

        def order_by(self, *_: Any) -> Any:
            begun.set()
            assert release.wait(30)
            return Message.objects.none()

    slow = threading.Thread(target=lambda: BoundedPaginator(Slow(Message), 10).count)
    slow.start()
    try:
        assert begun.wait(30)
        other = threading.Thread(target=lambda: BoundedPaginator([1, 2], 10).count)
        other.start()
        other.join(5)
        assert not other.is_alive()
    finally:
        release.set()
        slow.join()
