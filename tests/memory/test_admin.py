"""The admin: all of a tenant's memory, nothing of another's, and nothing append-only changed."""

from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from memory.long_term import store_embedding
from memory.models import (
    ConversationEmbedding,
    IndexedMessage,
    MemoryAttribute,
    Message,
    PendingEmbedding,
    Posting,
    RecallEvent,
    WindowClear,
)
from memory.outbox import drain, take_due
from memory.short_term import clear_window, get_recent_messages
from tenants.context import tenant_scope
from tenants.sites import operator_site, tenant_site

AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")
USER = "U024BE7LH"
# Parts of an index, of no use to a person.
NOT_SHOWN = {Posting, IndexedMessage, MemoryAttribute}
SHOWN = [model for model in apps.get_app_config("memory").get_models() if model not in NOT_SHOWN]
TRACE = {
    "query": "Where does my sister live?",
    "hits": [
        {
            "content": "My sister lives in <b>Lisbon</b>.",
            "score": 0.91234,
            "channels": {"cosine": 0.61234},
        }
    ],
    "cut": [{"content": "The train was late.", "reason": "top_k"}],
    "injected": ["My sister lives in <b>Lisbon</b>."],
    "abstained": False,
    "embedding_model": "all-MiniLM-L6-v2@6fceb34132ad",
    "milliseconds": 3.25,
}


def url(model, page, *args):
    return reverse(f"admin:memory_{model._meta.model_name}_{page}", args=args)


@pytest.fixture
def browser(tenant_a):
    """A person of tenant A: ``browser()`` the superuser, or ``browser("view_message", …)``."""

    def log_in(*permissions):
        client = Client(HTTP_HOST="tenant-a.localhost")
        with tenant_scope(tenant_a.id):
            user = User.objects.create_user(f"u{uuid4()}", is_staff=True)
            user.is_superuser = not permissions
            user.save()
            user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
            client.force_login(user)
        return client

    return log_in


@pytest.fixture
def remembered(tenant_a, tenant_b, answered):
    """The same conversation in both tenants, with all that comes of it."""
    from konstruct.orchestrator.models import Agent

    for tenant in (tenant_a, tenant_b):
        with tenant_scope(tenant.id):
            Agent.objects.create(id=AGENT, name=f"Helper of {tenant.slug}")
        answered(
            tenant.id, "Where does my sister live?", f"I know it from {tenant.slug}.", name="Ann"
        )
        answered(
            tenant.id, "And my brother?", f"Ask {tenant.slug}.", recall_trace=TRACE, user_id="b"
        )
        with tenant_scope(tenant.id):
            # Only replies have one; a message of the user's carries none.
            PendingEmbedding.objects.filter(message__role="user").update(recall_trace=None)
        drain(tenant.id)
        clear_window(tenant.id, AGENT, USER)
        store_embedding(tenant.id, AGENT, USER, f"Direct in {tenant.slug}", "user", [1.0] * 384)
        answered(tenant.id, "Still waiting?", f"Yes, in {tenant.slug}.")


def test_every_model_is_shown_to_tenants_and_none_to_operators():
    assert [model for model in SHOWN if not tenant_site.is_registered(model)] == []
    assert [model for model in SHOWN if operator_site.is_registered(model)] == []


def keys_of(tenant, model):
    with tenant_scope(tenant.id):
        return list(model.objects.values_list("pk", flat=True))


def test_lists_and_pages_show_this_tenant_and_no_other(browser, remembered, tenant_a):
    client = browser()
    for model in SHOWN:
        page = client.get(url(model, "changelist"))
        assert (model, page.status_code) == (model, 200)
        assert "tenant-b" not in page.text
        for key in keys_of(tenant_a, model)[:2]:
            detail = client.get(url(model, "change", key))
            assert (model, detail.status_code) == (model, 200)
            assert "tenant-b" not in detail.text


def test_nothing_can_be_added_changed_or_deleted(browser, remembered, tenant_a):
    client = browser()
    for model in SHOWN:
        with tenant_scope(tenant_a.id):
            before = list(model.objects.values())
        keys = keys_of(tenant_a, model)
        assert client.get(url(model, "add")).status_code == 403
        for key in keys[:1]:
            change = client.post(url(model, "change", key), {"content": "forged"})
            delete = client.post(url(model, "delete", key), {"post": "yes"})
            assert (model, change.status_code, delete.status_code) == (model, 403, 403)
        client.post(
            url(model, "changelist"),
            {"action": "delete_selected", "_selected_action": keys, "post": "yes"},
        )
        with tenant_scope(tenant_a.id):
            assert list(model.objects.values()) == before


def test_lists_cost_the_same_however_long_they_are(
    browser, remembered, answered, tenant_a, django_assert_max_num_queries
):
    for number in range(30):
        answered(tenant_a.id, f"Question {number}?", f"Answer {number}.", user_id=f"u{number}")
        clear_window(tenant_a.id, AGENT, f"u{number}")
        store_embedding(tenant_a.id, AGENT, f"u{number}", str(number), "user", [1.0] * 384)
    client = browser()
    for model in SHOWN:
        with django_assert_max_num_queries(12):
            assert client.get(url(model, "changelist")).status_code == 200


def test_who_may_not_look_sees_nothing(browser, tenant_a):
    for model in SHOWN:
        other = "view_windowclear" if model is not WindowClear else "view_message"
        assert browser(other).get(url(model, "changelist")).status_code == 403
        name = f"view_{model._meta.model_name}"
        assert browser(name).get(url(model, "changelist")).status_code == 200


def test_agents_have_names_where_they_are_known(browser, remembered, tenant_a, say):
    unknown = uuid4()
    say(tenant_a.id, "Hello", agent_id=unknown)
    page = browser().get(url(Message, "changelist")).text
    assert "Helper of tenant-a" in page
    assert str(unknown) in page


def test_messages_can_be_searched_and_narrowed_to_an_agent(browser, remembered, tenant_a, say):
    say(tenant_a.id, "Said to nobody.", agent_id=uuid4())
    client = browser()
    found = client.get(url(Message, "changelist"), {"q": "brother"}).text
    assert "And my brother?" in found
    assert "Where does my sister live?" not in found
    narrowed = client.get(url(Message, "changelist"), {"agent": str(AGENT)}).text
    assert "And my brother?" in narrowed
    assert "Said to nobody." not in narrowed
    assert client.get(url(Message, "changelist"), {"agent": "nonsense"}).status_code == 200


def test_a_message_shows_its_pieces(browser, remembered, tenant_a):
    with tenant_scope(tenant_a.id):
        message = Message.objects.get(content="And my brother?")
    page = browser().get(url(Message, "change", message.pk)).text
    assert "embedded pieces" in page.lower()
    assert "all-MiniLM-L6-v2@6fceb34132ad" in page


def test_a_recall_event_explains_itself_and_escapes_what_users_said(browser, remembered, tenant_a):
    with tenant_scope(tenant_a.id):
        event = RecallEvent.objects.get()
    page = browser().get(url(RecallEvent, "change", event.pk)).text
    assert "My sister lives in &lt;b&gt;Lisbon&lt;/b&gt;." in page
    assert "<b>Lisbon</b>" not in page
    assert "cosine 0.612" in page
    assert "top_k" in page
    assert "3.2 ms" in page


def test_a_window_is_emptied_for_good(browser, tenant_a, talk):
    talk(tenant_a.id, "q1", "a1")
    talk(tenant_a.id, "q2", "a2", user_id="bob")
    with tenant_scope(tenant_a.id):
        key = Message.objects.get(content="q1").pk
    act = {"action": "clear_windows", "_selected_action": [key]}
    browser("view_message").post(url(Message, "changelist"), act)
    assert len(get_recent_messages(tenant_a.id, AGENT, USER)) == 2
    answer = browser().post(url(Message, "changelist"), act, follow=True)
    assert "1 emptied." in answer.text
    assert get_recent_messages(tenant_a.id, AGENT, USER) == []
    assert len(get_recent_messages(tenant_a.id, AGENT, "bob")) == 2


def test_what_failed_is_tried_again(browser, tenant_a, say):
    message = say(tenant_a.id, "This is poison.")
    with tenant_scope(tenant_a.id):
        PendingEmbedding.objects.update(attempts=3, last_error="ValueError: cannot index poison")
    client = browser()
    page = client.get(url(PendingEmbedding, "changelist"), {"state": "failed"}).text
    assert "ValueError: cannot index poison" in page
    assert (
        "This is poison."
        not in client.get(url(PendingEmbedding, "changelist"), {"state": "waiting"}).text
    )
    act = {"action": "retry", "_selected_action": [message.pk]}
    browser("view_pendingembedding").post(url(PendingEmbedding, "changelist"), act)
    with tenant_scope(tenant_a.id):
        assert take_due() == []
    answer = client.post(url(PendingEmbedding, "changelist"), act, follow=True)
    assert "1 will be tried within a few seconds." in answer.text
    with tenant_scope(tenant_a.id):
        assert take_due() == [message.pk]


def test_a_cookie_of_one_tenant_opens_nothing_of_another(browser, remembered, tenant_b):
    client = browser()
    page = client.get(
        url(ConversationEmbedding, "changelist"), headers={"host": "tenant-b.localhost"}
    )
    assert page.status_code == 302
    assert "login" in page.url
