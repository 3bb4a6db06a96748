"""Conversations in the admin as a chat, with the state and the sources of each message."""

import pytest
from django.test import Client

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import PendingReply
from memory.browse import lists
from memory.conversations.transcript import copy_for_agent, record_message
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage, users_shown

LIST = "/admin/conversations/"


def message_of(program: Program, **fields: str) -> Message:
    with tenant_scope(program.tenant.id):
        return Message.objects.get(**fields)


def conversation(client: Client, message: Message, **query: str) -> str:
    answer = client.get(f"{LIST}{message.pk}/", query)
    assert answer.status_code == 200
    text: str = answer.text
    return text


@pytest.fixture
def program_a(db: None, module_populated: Program) -> Program:
    return module_populated


def test_threads_are_listed_by_their_latest_message(
    program_a: Program, populated_b: Program, admin: Client
) -> None:
    page = admin.get(LIST)
    # Her second thread has the text that was stored directly.
    assert [row.user_id for row in page.context["cl"].result_list] == ["bob", "maria", "maria"]
    assert "I wait in tenant-a." in page.text
    assert "tenant-b" not in page.text


@pytest.mark.parametrize("walked", [1, 1000])
def test_threads_are_narrowed_to_an_agent_and_a_person(
    program_a: Program, admin: Client, monkeypatch: pytest.MonkeyPatch, walked: int
) -> None:
    monkeypatch.setattr(lists, "MAX_WALKED_THREADS", walked)
    for query, users in (
        ({"user": "bob"}, ["bob"]),
        ({"q": "bob"}, ["bob"]),
        ({"agent": str(program_a.agent.pk), "user": "maria"}, ["maria", "maria"]),
        ({"agent": str(program_a.agent.pk)}, ["bob", "maria", "maria"]),
        ({"user": "nobody"}, []),
        ({"q": "nobody"}, []),
    ):
        rows = admin.get(LIST, query).context["cl"].result_list
        assert [row.user_id for row in rows] == users


def test_conversation_is_shown_in_order_with_the_state_of_each_message(
    program_a: Program, admin: Client
) -> None:
    message = message_of(program_a, content="Answer me!")
    answer = admin.get(f"{LIST}{message.pk}/")
    turns = [(turn.role, turn.status) for turn in answer.context["turns"]]
    assert turns == [*(("user", "answered"), ("assistant", "")) * 3, ("user", "failed")]
    assert "No such model: gpt-0." in answer.text
    assert "(1 attempt)" in answer.text
    assert "not embedded yet" in answer.text
    assert "Try again to answer" in answer.text


def test_reply_shows_its_sources(program_a: Program, admin: Client) -> None:
    question = message_of(program_a, content="Where does my sister live?")
    reply = message_of(program_a, in_reply_to_id=question.pk)
    answer = admin.get(f"{LIST}{question.pk}/", {"why": str(reply.pk)})
    sources = answer.context["why"]
    assert sources["query"] == "Where does my sister live?"
    assert [section["name"] for section in sources["sections"]] == [
        "system",
        "memory",
        "session",
        "task",
    ]
    assert sources["tokens"] == sum(section["tokens"] for section in sources["sections"])
    assert "The prompt, as it was sent" in answer.text
    assert f"{sources['tokens']} of {sources['budget']} tokens" in answer.text
    # The window contained the earlier messages: they were found, and excluded for that reason.
    assert {cut["reason"] for cut in sources["cut"]} >= {"excluded"}
    assert any("Lisbon" in cut["content"] for cut in sources["cut"])


def test_a_failed_message_is_retried_once_and_that_is_written_down(
    program_a: Program, browser: Browser, admin: Client
) -> None:
    message = message_of(program_a, content="Answer me!")
    replies = "/admin/orchestrator/pendingreply/"
    form = {"action": "retry", "_selected_action": str(message.pk)}
    page = admin.get(f"{LIST}{message.pk}/").text
    assert f'action="{replies}"' in page
    assert f'name="_selected_action" value="{message.pk}"' in page
    assert browser(program_a.tenant, "view_message").post(replies, form).status_code == 403
    assert "1 retried." in admin.post(replies, form, follow=True).text
    assert "1 had not failed." in admin.post(replies, form, follow=True).text
    with tenant_scope(program_a.tenant.id):
        assert not PendingReply.objects.failed().exists()
        event = AccessEvent.objects.filter(action="retry").latest("id")
        assert (event.subject, event.subject_id) == ("reply", str(message.pk))


def test_a_long_text_is_shown_from_its_beginning(program_a: Program, admin: Client) -> None:
    message, _ = record_message(
        tenant_id=program_a.tenant.id,
        agent_id=program_a.agent.pk,
        user_id="maria",
        thread_id="t",
        channel="rest",
        role="user",
        content="x" * 1_000_000,
    )
    page = conversation(admin, message)
    assert "all 1000000 characters" in page
    assert len(page) < 200_000


def test_a_long_conversation_is_read_page_by_page(
    program_a: Program, admin: Client, send_message: SendMessage
) -> None:
    messages = [send_message(program_a, f"q{number}", answered=False) for number in range(70)]
    answer = admin.get(f"{LIST}{messages[-1].pk}/")
    assert len(answer.context["turns"]) == 30
    earlier = admin.get(f"{LIST}{answer.context['earlier'].pk}/")
    keys = [turn.pk for turn in earlier.context["turns"]]
    assert keys == [message.pk for message in messages[10:60]]
    assert earlier.context["later"].pk == messages[60].pk
    assert admin.get(f"{LIST}{messages[0].pk}/").context["earlier"] is None


def test_thread_is_shown_with_all_people_and_logged_with_them(
    program_a: Program, browser: Browser, admin: Client, send_message: SendMessage
) -> None:
    first = send_message(program_a, "Who comes?", user_id="ann", thread_id="party", name="Ann")
    send_message(program_a, "I do.", user_id="ben", thread_id="party", answered=False)
    address = f"{LIST}{first.pk}/thread/"
    assert address in conversation(admin, first)
    page = admin.get(address)
    speakers = [(turn.user_id, turn.role) for turn in page.context["turns"]]
    assert speakers == [("ann", "user"), ("ann", "assistant"), ("ben", "user")]
    with tenant_scope(program_a.tenant.id):
        event = AccessEvent.objects.filter(subject="conversation", action="view").latest("id")
    assert users_shown(event) == ["ann", "ben"]
    assert browser(program_a.tenant, "view_agent").get(address).status_code == 403


def test_copy_for_another_agent_is_linked_and_has_the_channel_of_its_thread(
    program_a: Program, admin: Client, send_message: SendMessage
) -> None:
    original = send_message(program_a, "Refund me.", user_id="cleo", thread_id="handed")
    bert = create_agent(tenant_id=program_a.tenant.id, name="bert")
    with tenant_scope(program_a.tenant.id):
        (copy,) = copy_for_agent([original.pk], bert.pk)
    rows = admin.get(LIST, {"user": "cleo"}).context["cl"].result_list
    assert [row.origin for row in rows] == ["rest", "rest"]
    for one, other in ((original, copy), (copy, original)):
        page = admin.get(f"{LIST}{one.pk}/")
        assert page.context["channel"] == "rest"
        assert [agent for _, agent in page.context["copies"]] == [
            "bert" if other is copy else program_a.agent.name
        ]
    assert len(admin.get(f"{LIST}{copy.pk}/thread/").context["turns"]) == 2


def test_person_has_the_displayed_name_at_turns_without_one(
    program_a: Program, admin: Client, send_message: SendMessage
) -> None:
    first = send_message(program_a, "Hello", user_id="U7", thread_id="named")
    send_message(program_a, "Me", user_id="U7", thread_id="named", name="Dora")
    assert conversation(admin, first).count('<bdi class="k-strong">Dora</bdi>') == 2
    window = admin.get(f"/admin/window/?agent={program_a.agent.pk}&user=U7").text
    assert window.count('<bdi class="k-strong">Dora</bdi>') == 2
    assert admin.get(LIST, {"user": "U7"}).context["cl"].result_list[0].person_name == "Dora"
