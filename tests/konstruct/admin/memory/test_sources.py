"""The sources of a reply: each once, later changes of them, and asking again."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from konstruct.privacy import jobs
from memory.facts import Author, LongTermMemory, exclude_from_recall, retract
from memory.indexing import drain
from memory.models import Message, RecallExclusion
from memory.models.facts import AuthorKind, MemoryEntry
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.conftest import Browser, Program, SendMessage, user_of
from tests.konstruct.extracted import propose

EVA = Author(AuthorKind.PERSON, "7", "Eva")
LISBON = "My sister lives in Lisbon and visits in May."


@pytest.fixture
def reply_to(send_message: SendMessage) -> Callable[..., Message]:
    """Send a message. Return the reply."""

    def answered(program: Program, content: str, **fields: Any) -> Message:
        message = send_message(program, content, **fields)
        drain(program.tenant.id)
        with tenant_scope(program.tenant.id):
            return Message.objects.get(in_reply_to=message)

    return answered


def why(client: Client, reply: Message) -> Any:
    page = client.get(f"/admin/conversations/{reply.pk}/", {"why": str(reply.pk)})
    assert page.status_code == 200
    return page


def test_each_source_is_listed_once_with_its_place(
    populated_a: Program, admin: Client, reply_to: Callable[..., Message]
) -> None:
    # The window was cleared: earlier messages are recalled.
    reply = reply_to(populated_a, "Where does my sister live, and do I like green tea?")
    shown_sources = why(admin, reply)
    sources = shown_sources.context["why"]
    assert [fact["content"] for fact in sources["facts_given"]] == ["Of tenant-a: likes green tea."]
    assert any(LISBON in hit["content"] for hit in sources["hits"])
    assert sources["sections"][0]["title"] == "Agent instructions"
    for hit in sources["hits"]:
        assert hit["changes"] == []
        assert "meaning" in dict(hit["signals"])
        assert f"/admin/messages/{hit['message_id']}/exclude/" in shown_sources.text
        assert f"/admin/messages/{hit['message_id']}/erase/" in shown_sources.text
    recalled = {hit["message_id"] for hit in sources["hits"]}
    assert recalled.isdisjoint(turn["message_id"] for turn in sources["turns"])


def test_recent_turns_are_sources_without_recall(
    program_a: Program, admin: Client, reply_to: Callable[..., Message]
) -> None:
    first = reply_to(program_a, "I live in Bergen, near the harbour.")
    reply = reply_to(program_a, "Where do I live?")
    shown_sources = why(admin, reply)
    assert shown_sources.context["why"]["hits"] == []
    turns = {turn["message_id"] for turn in shown_sources.context["why"]["turns"]}
    assert turns == {str(first.pk), str(first.in_reply_to_id)}
    assert "No memory:" not in shown_sources.text
    assert "Recalled (0)" not in shown_sources.text
    assert f"/admin/conversations/{first.in_reply_to_id}/#m" in shown_sources.text


def test_changes_since_the_reply_are_marked(
    populated_a: Program, admin: Client, reply_to: Callable[..., Message]
) -> None:
    tenant_id = populated_a.tenant.id
    reply = reply_to(populated_a, "Where does my sister live, and do I like green tea?")
    with tenant_scope(tenant_id):
        fact = MemoryEntry.objects.as_of().get(user_id="maria")
        LongTermMemory().update(fact.pk, tenant_id, content="Likes black coffee.")
        message = Message.objects.filter(content=LISBON).earliest("number")
        exclude_from_recall(message, author=EVA, reason="A joke.")
    sources = why(admin, reply).context["why"]
    assert sources["facts_given"][0]["changes"] == ["now: Likes black coffee."]
    (hit,) = (hit for hit in sources["hits"] if hit["message_id"] == str(message.pk))
    assert hit["changes"] == ["excluded from recall"]
    with tenant_scope(tenant_id):
        retract(fact.pk, author=EVA)
    sources = why(admin, reply).context["why"]
    assert sources["facts_given"][0]["changes"] == ["retracted since"]
    with tenant_scope(tenant_id):
        LongTermMemory().delete(fact.pk, tenant_id)
    sources = why(admin, reply).context["why"]
    assert sources["facts_given"][0]["changes"] == ["deleted or erased since"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_erased_prompt_is_shown_as_erased(
    populated_a: Program, admin: Client, reply_to: Callable[..., Message]
) -> None:
    reply = reply_to(populated_a, "Where does my sister live?", thread_id="new")
    with tenant_scope(populated_a.tenant.id):
        message = Message.objects.filter(content=LISBON).earliest("number")
    assert any(
        hit["message_id"] == str(message.pk) for hit in why(admin, reply).context["why"]["hits"]
    )
    admin.post(f"/admin/messages/{message.pk}/erase/", {"what": "message"})
    with database.as_owner():
        assert jobs.ERASE_MESSAGES.run_due() == 1
    shown_sources = why(admin, reply)
    assert (
        "Where the prompt has [erased], a message or a fact was erased or deleted since."
        in shown_sources.text
    )
    assert "No memory:" not in shown_sources.text
    sources = shown_sources.context["why"]
    assert LISBON not in str([sources["hits"], sources["turns"], sources["sections"]])


def test_repeated_question_shows_both_replies_and_stores_nothing(
    populated_a: Program,
    populated_b: Program,
    browser: Browser,
    admin: Client,
    reply_to: Callable[..., Message],
) -> None:
    reply = reply_to(populated_a, "Do I like green tea?", thread_id="new")
    address = f"/admin/messages/{reply.pk}/ask-again/"
    with tenant_scope(populated_a.tenant.id):
        fact = MemoryEntry.objects.as_of().get(user_id="maria")
        LongTermMemory().update(fact.pk, populated_a.tenant.id, content="Likes black tea.")
        count = Message.objects.count()
    page = admin.post(address)
    assert page.status_code == 200
    (_, before, _), (_, _, after) = page.context["sides"]
    assert before.reply == reply.content
    assert reply.content in page.text
    assert [fact["content"] for fact in after["facts_given"]] == ["Likes black tea."]
    ids = {str(reply.pk), str(reply.in_reply_to_id)}
    assert ids.isdisjoint(source["message_id"] for source in (*after["hits"], *after["turns"]))
    with tenant_scope(populated_a.tenant.id):
        assert Message.objects.count() == count
        assert user_of(AccessEvent.objects.get(action="try")) == "maria"
    assert admin.get(address).status_code == 403
    assert browser(populated_b.tenant).post(address).status_code == 404
    assert browser(populated_a.tenant, "view_message").post(address).status_code == 403
    blind = browser(populated_a.tenant, "try_agent")
    assert "Do I like green tea?" not in blind.post(address, follow=True).text


def test_message_and_sentence_are_excluded_and_included_manually(
    populated_a: Program, populated_b: Program, browser: Browser
) -> None:
    client = browser(
        populated_a.tenant, "add_recallexclusion", "delete_recallexclusion", "view_message"
    )
    with tenant_scope(populated_a.tenant.id):
        message = Message.objects.filter(content__startswith="I am allergic").earliest("number")
    address = f"/admin/messages/{message.pk}/exclude/"
    assert "The whole message" in client.get(address).text
    client.post(address, {"words": "whole", "reason": "A joke."})
    with tenant_scope(populated_a.tenant.id):
        exclusion = RecallExclusion.objects.get()
        event = AccessEvent.objects.filter(action="create", subject="recall exclusions").get()
    assert (exclusion.message_id, exclusion.start, exclusion.reason) == (
        message.pk,
        None,
        "A joke.",
    )
    assert (user_of(event), event.subject_id) == ("maria", str(message.pk))
    assert "A joke." in client.get(address).text
    for words in ("0-3", "0-99999", "x", "", "-1-2", "5-2"):
        refused = client.post(address, {"words": words})
        assert "errors" not in refused.text
        assert refused.status_code == 200, words
    include = f"/admin/messages/{message.pk}/include/{exclusion.pk}/"
    other = browser(populated_b.tenant)
    assert other.get(address).status_code == 404
    assert other.post(include).status_code == 404
    looker = browser(populated_a.tenant, "view_message")
    assert looker.get(address).status_code == 403
    assert looker.post(include).status_code == 403
    client.post(include)
    with tenant_scope(populated_a.tenant.id):
        assert not RecallExclusion.objects.exists()
        assert AccessEvent.objects.filter(action="delete", subject="recall exclusions").exists()


def test_a_quoted_fact_is_linked_to_its_message(
    populated_a: Program, admin: Client, reply_to: Callable[..., Message]
) -> None:
    with tenant_scope(populated_a.tenant.id):
        message = Message.objects.filter(content=LISBON).earliest("number")
    propose(message, "Lisbon", "Maria's sister lives in Lisbon.", slot="sister_city", review="")
    reply = reply_to(populated_a, "Where does my sister live?", thread_id="new")
    shown_sources = why(admin, reply)
    facts = [fact["content"] for fact in shown_sources.context["why"]["facts_given"]]
    assert facts.count("Maria's sister lives in Lisbon.") == 1
    # It appears once, as the fact, and not also as its message.
    hits = {hit["message_id"] for hit in shown_sources.context["why"]["hits"]}
    assert str(message.pk) not in hits
    assert f"/admin/conversations/{message.pk}/#m{message.pk}" in shown_sources.text
