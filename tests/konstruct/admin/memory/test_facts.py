"""Facts in the admin: edited by the service with a history, ended, merged. Old versions stay."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from konstruct.admin.pages import mark_difference
from memory.facts import LongTermMemory
from memory.models import AuthorKind, MemoryEntry
from memory.models.facts import Author
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program

FACTS = "/admin/memory/memoryentry/"


@pytest.fixture
def know(program_a: Program) -> Callable[..., UUID]:
    """Store a fact about maria."""

    def store(content: str, **fields: Any) -> UUID:
        values = {"agent_id": program_a.agent.pk, "user_id": "maria", **fields}
        entry = MemoryEntry(tenant_id=program_a.tenant.id, content=content, **values)
        return LongTermMemory().store(entry)

    return store


def form_of(client: Client, fact: UUID, **changes: str) -> dict[str, str]:
    """Return the form data of the change form with some changed fields."""
    form = client.get(f"{FACTS}{fact}/change/").context["adminform"].form
    sent: dict[str, str] = {}
    for name, field in form.fields.items():
        value = form[name].value()
        if hasattr(field.widget, "widgets"):
            parts = field.widget.decompress(
                field.to_python(value) if isinstance(value, str) else value
            )
            sent |= {f"{name}_{i}": str(part or "") for i, part in enumerate(parts)}
        else:
            sent[name] = str(value)
    return {**sent, **changes}


def history(program: Program, fact: UUID) -> list[str]:
    return [version.content for version in LongTermMemory().history(fact, program.tenant.id)]


def test_a_fact_is_added_by_the_service(program_a: Program, admin: Client) -> None:
    form = {
        "content": "Likes tea.",
        "metadata": '{"topic": "drinks"}',
        "agent_id": str(program_a.agent.pk),
        "user_id": "maria",
        "valid_from_0": "",
        "valid_from_1": "",
    }
    answer = admin.post(f"{FACTS}add/", form)
    assert answer.status_code == 302, answer.context["errors"]
    found = LongTermMemory().search(
        program_a.tenant.id, "tea", filters={"topic": "drinks"}, user_id="maria"
    )
    assert [fact.content for fact in found] == ["Likes tea."]
    again = admin.post(f"{FACTS}add/", form)
    assert "Another fact of the same agent and user has the same text." in again.text


def test_edit_keeps_the_former_version_and_shows_the_difference(
    program_a: Program, admin: Client, know: Callable[..., UUID]
) -> None:
    fact = know("Lives in Porto.")
    answer = admin.post(f"{FACTS}{fact}/change/", form_of(admin, fact, content="Lives in Lisbon."))
    assert answer.status_code == 302, answer.context["errors"]
    assert history(program_a, fact) == ["Lives in Lisbon.", "Lives in Porto."]
    page = admin.get(f"{FACTS}{fact}/history/").text
    assert "Lives in <del>Porto</del><ins>Lisbon</ins>." in page
    with tenant_scope(program_a.tenant.id):
        assert AccessEvent.objects.get(action="edit").subject_id == str(fact)
    form = form_of(admin, fact, expires_at_0="2999-01-01", expires_at_1="00:00:00")
    admin.post(f"{FACTS}{fact}/change/", form)
    page = admin.get(f"{FACTS}{fact}/history/").text
    assert re.search(r'Expires at</span><span dir="auto"><ins>1\sJan\s2999', page)
    # The version before the change of its expiry was never valid by itself.
    assert (page.count(">written "), page.count(">valid from ")) == (3, 2)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"content": "Likes tea."}, "Another fact of the same agent and user"),
        ({"content": "   "}, "This field is required."),
        ({"metadata": "[1"}, "Enter a valid JSON."),
        ({"valid_from_0": "2999-01-01", "valid_from_1": "00:00:00"}, "This is in the future."),
        ({"valid_from_0": "1999-01-01", "valid_from_1": "00:00:00"}, "is not after the start"),
        ({"valid_to_0": "1999-01-01", "valid_to_1": "00:00:00"}, "This is before Valid from."),
        ({"expires_at_0": "1999-01-01", "expires_at_1": "00:00:00"}, "UTC is not after Valid"),
    ],
)
def test_invalid_fact_is_refused_on_the_page(
    program_a: Program,
    admin: Client,
    know: Callable[..., UUID],
    changes: dict[str, str],
    complaint: str,
) -> None:
    know("Likes tea.")
    fact = know("Lives in Porto.")
    answer = admin.post(f"{FACTS}{fact}/change/", form_of(admin, fact, **changes))
    assert answer.status_code == 200
    assert complaint in answer.text
    assert history(program_a, fact) == ["Lives in Porto."]


def test_facts_are_ended_and_can_be_found_as_such(
    program_a: Program, browser: Browser, admin: Client, know: Callable[..., UUID]
) -> None:
    fact = know("Lives in Porto.")
    decide, end = f"/admin/facts/{fact}/decide/", {"decision": "end"}
    browser(program_a.tenant, "view_memoryentry").post(decide, end)
    assert LongTermMemory().get(fact, program_a.tenant.id) is not None
    assert "Ended: Lives in Porto." in admin.post(decide, end, follow=True).text
    assert LongTermMemory().get(fact, program_a.tenant.id) is None
    assert "Lives in Porto." in admin.get(FACTS, {"state": "ended"}).text
    assert "Lives in Porto." not in admin.get(FACTS, {"state": "now"}).text
    page = admin.get(f"{FACTS}{fact}/change/").text
    assert ("<h2>Ended" in page, 'value="end"' in page) == (True, False)


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_fact_is_deleted_with_its_versions_and_that_is_written_down(
    language: str, program_a: Program, browser: Browser, know: Callable[..., UUID]
) -> None:
    fact = know("Lives in Porto.")
    LongTermMemory().update(fact, program_a.tenant.id, content="Lives in Lisbon.")
    # The events of a fact are deleted with it, without a separate permission.
    client = browser(program_a.tenant, "view_memoryentry", "delete_memoryentry")
    page = client.get(f"{FACTS}{fact}/delete/", headers={"Accept-Language": language})
    assert (page.status_code, page.context["perms_lacking"]) == (200, set())
    client.post(f"{FACTS}{fact}/delete/", {"post": "yes"}, headers={"Accept-Language": language})
    assert history(program_a, fact) == []
    with tenant_scope(program_a.tenant.id):
        event = AccessEvent.objects.get(action="delete")
    # The log is in English on pages in any language.
    assert (event.subject, event.subject_id) == ("fact", str(fact))


def test_differences_are_marked_word_by_word_and_escaped() -> None:
    assert mark_difference("a <b> c", "a <i> c") == "a &lt;<del>b</del><ins>i</ins>&gt; c"
    assert mark_difference("x " * 3000, "y") == f"<del>{'x ' * 3000}</del><ins>y</ins>"


def test_the_page_names_authors_of_the_api_reasons_sources_and_replies(
    program_a: Program, browser: Browser, admin: Client, know: Callable[..., UUID]
) -> None:
    fact = know("Lives in Porto.")
    author = Author(AuthorKind.PROGRAM, "k1", "crm key")
    LongTermMemory().update(
        fact, program_a.tenant.id, content="Lives in Lisbon.", author=author, reason="She moved."
    )
    page = admin.get(f"{FACTS}{fact}/change/").text
    for text in ("crm key", "program with an API key", "She moved.", "Replies that used it"):
        assert text in page
    assert f'action="/admin/facts/{fact}/decide/"' in page
    _, new, old = admin.get(f"{FACTS}{fact}/history/").text.split("<article")
    assert ("crm key" in new, "She moved." in new, "crm key" in old) == (True, True, False)
    admin.post(f"/admin/facts/{fact}/decide/", {"decision": "end", "reason": "She left."})
    assert "She left." in admin.get(f"{FACTS}{fact}/change/").text
    looker = browser(program_a.tenant, "view_memoryentry")
    assert "/decide/" not in looker.get(f"{FACTS}{fact}/change/").text
