"""Every page of both sites opens in German with any parameters. None changes append-only tables."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import cycle, product
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from konstruct.orchestrator.identities.erasure_requests import (
    request_erasure,
    request_message_erasure,
)
from konstruct.orchestrator.models import Escalation
from konstruct.urls import public, tenant
from memory.models import ConversationEmbedding, Message, RecallEvent, Scope, WindowClear
from tenants.admin.sites import operator_site, tenant_site
from tenants.audit.access_log import Actor
from tenants.audit.models import AccessEvent, ActorKind, ErasureRequest, MessageErasure
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.admin.conftest import MARKUP
from tests.konstruct.conftest import Browser, Program

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture(scope="module")
def populated_a(module_populated: Program) -> Program:
    return module_populated


# Tables in which konstruct_app may only insert.
APPEND_ONLY = {
    *(Message, ConversationEmbedding, RecallEvent, Scope, WindowClear),
    *(AccessEvent, ErasureRequest, MessageErasure),
}
ODD_QUERIES = (
    "?q=lisbon", "?q=%00", "?q=%ED%A0%80", "?q=" + "x" * 5000, "?p=2", "?p=nonsense", "?all=",
    "?e=1", "?nosuch=parameter", "?o=1.-2", "?o=99", "?_popup=1",
)  # fmt: skip
TURNS = cycle(ODD_QUERIES)
# Keys without a row: a number, a UUID, another text, and one with a NUL.
ODD_KEYS = ("0", "999999999999999999999", "00000000-0000-4000-8000-000000000000", "x", "_00")


def page(model: type[Model], name: str, *arguments: Any) -> str:
    """Return the address of a model's page, which has the same name on both sites."""
    urlconf = tenant if tenant_site.is_registered(model) else public
    view = f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}"
    return reverse(view, urlconf=urlconf, args=arguments)


def statuses(client: Client, addresses: Iterator[str]) -> dict[str, int]:
    """Open each address once. Errors on the way raise. Each time has its zone."""
    zone = b"IST" if "time_zone" in client.cookies else b"UTC"
    # `1. Jul 2026, 14:30:15`, or `2026-07-01 14:30:15.123`; prompts have times without seconds.
    other_zone = re.compile(rb"[0-9]{2},? [0-9]{2}:[0-9]{2}:[0-9:.]*(?![0-9:.+]| %s)" % zone)
    seen = {}
    for address in dict.fromkeys(addresses):
        answer = client.get(address, headers={"Accept-Language": "de"})
        assert b" object at 0x" not in answer.content, address
        assert MARKUP.encode() not in answer.content, address
        assert not other_zone.findall(answer.content), address
        if answer["Content-Type"].startswith("text/html") and b"<html" in answer.content:
            assert b'<html lang="de"' in answer.content, address
        seen[address] = answer.status_code
    return seen


def list_addresses(
    model: type[Model], site_admin: Any, client: Client, *, is_full: bool
) -> Iterator[str]:
    """Yield the list of a model in every order, with every filter, and with odd parameters.

    Args:
        is_full: order by each column by itself, with every choice of a filter and every odd
            parameter; else by all columns at once, with a choice of each filter, and odd parameters
            by turns.
    """
    address = page(model, "changelist")
    yield address
    odd = ODD_QUERIES if is_full else [next(TURNS)]
    yield from (address + query for query in odd)
    columns = [str(column) for column in range(len(site_admin.list_display) + 1)]
    for orders in columns if is_full else [".".join(columns)]:
        yield f"{address}?o={orders}"
        yield f"{address}?o=-{orders.replace('.', '.-')}"
    change_list = client.get(address).context["cl"]
    for spec in change_list.filter_specs:
        choices = [choice for choice in spec.choices(change_list) if "query_string" in choice]
        yield from (address + choice["query_string"] for choice in choices[0 if is_full else -1 :])
        for parameter in list(spec.expected_parameters())[: None if is_full else 1]:
            yield f"{address}?{urlencode({parameter: 'nonsense'})}"


def row_addresses(model: type[Model], keys: list[Any], *, is_full: bool) -> Iterator[str]:
    """Yield the pages of some rows, of missing rows, and of a new one.

    Args:
        is_full: ask every page for every key that no row has; else for one of them.
    """
    yield page(model, "add")
    for name in ("change", "history", "delete"):
        odd = ODD_KEYS if is_full else ODD_KEYS[-1:]
        for key in (*keys[: 2 if is_full else 1], *odd):
            yield page(model, name, key)


def site_addresses(site: Any) -> Iterator[str]:
    """Yield the pages that belong to no model."""
    yield "/admin/"
    yield from ("/admin/palette/", "/admin/palette/?s=a", "/admin/palette/?s=a&extended=1")
    yield from ("/admin/password_change/", "/admin/password_change/done/", "/admin/jsi18n/")
    yield from {f"/admin/{model._meta.app_label}/" for model in site._registry}
    yield from ("/admin/nosuchpage/", "/admin/r/1/1/", "/admin/r/1/%00/")


def open_everything(
    site: Any, client: Client, tenant: Tenant | None, *, is_full: bool
) -> dict[str, int]:
    """Open every page of a site. Return each address with its status."""
    seen = statuses(client, site_addresses(site))
    for model, site_admin in site._registry.items():
        with tenant_scope(tenant.id) if tenant else nullcontext():
            keys = list(model._default_manager.values_list("pk", flat=True))
        seen |= statuses(client, list_addresses(model, site_admin, client, is_full=is_full))
        seen |= statuses(client, row_addresses(model, keys, is_full=is_full))
        for key in keys[:1]:
            assert seen[page(model, "change", key)] == 200
            assert seen[page(model, "history", key)] in (200, 302)
    return seen


def own_addresses(program: Program) -> Iterator[str]:
    """Yield pages without a model, with valid, unknown and invalid values in their addresses."""
    with tenant_scope(program.tenant.id):
        messages = list(Message.objects.values_list("pk", flat=True))
        escalations = list(Escalation.objects.values_list("pk", flat=True))
    for key in (*messages, *ODD_KEYS[2:3]):
        yield from (
            f"/admin/conversations/{key}/{query}" for query in ("", "?why=x", f"?why={key}")
        )
    for key, way in product((*escalations, *ODD_KEYS[2:3]), ("", "answer/", "resolve/")):
        yield f"/admin/escalations/{key}/{way}"
    yield f"/admin/conversations/{ODD_KEYS[2]}/escalate/"
    for key in (program.agent.pk, *ODD_KEYS[2:3]):
        yield f"/admin/agents/{key}/try/"
    odd = ("", "?user=maria", "?user=%00", "?agent=x&user=y", "?user=" + "x" * 5000)
    odd += ("?user=%ED%A0%80", "?user=%FF", "?why=%E2%80%AE", "?p=%FF", "?%ED%A0%80=1")
    prefix = f"?agent={program.agent.pk}&user="
    pages = ("conversations/", "memories/", "people/", "people/person/", "window/")
    pages += ("people/person/erase/", "people/person/export/")
    for name, query in product(pages, (*odd, f"{prefix}maria", f"{prefix}eve", f"{prefix}%00")):
        yield f"/admin/{name}{query}"
    for q in ("sister", "%00", "%ED%A0%80", "%FF", "%25_", "x" * 9000, "<script>", "?" * 50):
        yield f"/admin/memories/{prefix}maria&q={q}"
        yield f"/admin/people/?q={q}"
        yield f"/admin/search/?q={q}&agent={q}&user={q}&channel={q}&since={q}&until=9999-12-31"
        yield f"/admin/palette/?extended=1&s={q}"
    for before in ("0", "-1", "x", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z+" + "9" * 30):
        yield f"/admin/conversations/?before={before}"


SOME_OR_EACH = pytest.mark.parametrize(
    "is_full", [False, pytest.param(True, marks=pytest.mark.long)], ids=["some", "all"]
)


@pytest.mark.slow
@SOME_OR_EACH
def test_every_page_of_a_tenants_site_opens(
    pending_a: Program, browser: Browser, is_full: bool
) -> None:
    tenant, client = pending_a.tenant, browser(pending_a.tenant)
    client.cookies["time_zone"] = "Asia%2FKolkata"
    seen = open_everything(tenant_site, client, tenant, is_full=is_full)
    seen |= statuses(client, own_addresses(pending_a))
    assert {address: status for address, status in seen.items() if status >= 500} == {}
    assert set(seen.values()) <= {200, 302, 403, 404}
    assert seen["/admin/orchestrator/pendingreply/"] == 200
    # A row has no public page.
    assert seen["/admin/r/1/1/"] == 404


@pytest.mark.slow
@SOME_OR_EACH
def test_every_page_of_the_operators_site_opens(
    operator: Client, tenant_a: Tenant, is_full: bool
) -> None:
    seen = open_everything(operator_site, operator, None, is_full=is_full)
    assert set(seen.values()) <= {200, 302, 403, 404}


def test_pages_require_login(populated_a: Program, db: None) -> None:
    for host, site in (("tenant-a.localhost", tenant_site), ("localhost", operator_site)):
        stranger = Client(headers={"Host": host})
        models = [page(model, "changelist") for model in site._registry]
        for address in ["/admin/", "/admin/palette/?s=a", *models]:
            answer = stranger.get(address)
            assert (answer.status_code, answer["Location"].partition("?")[0]) == (
                302,
                "/admin/login/",
            )


@pytest.mark.parametrize("model", sorted(APPEND_ONLY, key=lambda model: model.__name__))
def test_an_append_only_row_is_changed_by_no_address_form_action_or_inline(
    populated_a: Program, browser: Browser, model: type[Model]
) -> None:
    client = browser(populated_a.tenant)
    with tenant_scope(populated_a.tenant.id):
        by = Actor(ActorKind.PERSON, "1", "eva")
        request_erasure("bob", by=by)
        request_message_erasure(agent_id=populated_a.agent.pk, user_id="bob", thread_id="t", by=by)
        before = list(model._default_manager.order_by("pk").values())
    assert before
    keys = [str(row[model._meta.pk.attname]) for row in before]
    form = {
        **{field.name: "forged" for field in model._meta.fields},
        "_save": "Save",
        "post": "yes",
        "embeddings-TOTAL_FORMS": "1",
        "embeddings-INITIAL_FORMS": "1",
        "embeddings-0-content": "forged",
        "embeddings-0-DELETE": "on",
    }
    assert client.post(page(model, "add"), form).status_code == 403
    for key in keys:
        assert client.post(page(model, "change", key), form).status_code == 403
        assert client.post(page(model, "delete", key), form).status_code == 403
    # Every action of any list, including those of other lists, and an editable list's form.
    actions = {
        name for model_admin in tenant_site._registry.values() for name in model_admin.actions or ()
    }
    for action in {"delete_selected", *(name for name in actions if isinstance(name, str))}:
        chosen = {"action": action, "_selected_action": keys, "post": "yes", "select_across": "1"}
        answer = client.post(page(model, "changelist"), chosen)
        assert answer.status_code in (200, 302, 403)
    editable = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-content": "forged"}
    client.post(page(model, "changelist"), {**editable, "form-0-id": keys[0], "_save": "Save"})
    with tenant_scope(populated_a.tenant.id):
        rows = {row[model._meta.pk.attname]: row for row in model._default_manager.values()}
    # An action may add rows, as clearing a window does. Existing rows stay unchanged.
    assert [rows[row[model._meta.pk.attname]] for row in before] == before


def test_no_model_can_be_edited_inline_that_is_append_only() -> None:
    for site_admin in tenant_site._registry.values():
        for inline in site_admin.inlines:
            made = inline(site_admin.model, tenant_site)
            if inline.model in APPEND_ONLY:
                refused = (
                    made.has_add_permission(None, None),
                    made.has_change_permission(None),
                    made.can_delete,
                )
                assert (inline, refused) == (inline, (False, False, False))
