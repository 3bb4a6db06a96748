"""A person answers, resolves, and takes over a conversation. Identities are linked."""

import pytest
from django.test import Client

from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.timeline import timeline
from konstruct.orchestrator.models import ChannelIdentity, Escalation, PendingReply
from memory.models import Message
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Browser, Program, SendMessage, user_of, users_shown


@pytest.mark.slow
def test_a_person_answers_and_hands_back(
    pending_a: Program,
    pending_b: Program,
    browser: Browser,
    admin: Client,
    send_message: SendMessage,
) -> None:
    with tenant_scope(pending_a.tenant.id):
        escalation = Escalation.objects.get()
    page = f"/admin/escalations/{escalation.pk}/"
    text = admin.get(page).text
    assert "1 message waits, for a person" in text or "1 message waits for a person" in text
    assert "Is anybody there?" in text
    assert "is blank" not in text
    assert "This field is required" in admin.post(f"{page}answer/", {"content": " "}).text
    assert "Null characters" in admin.post(f"{page}answer/", {"content": "a\0"}).text
    done = admin.post(f"{page}answer/", {"content": "Here I am."}, follow=True)
    assert "The answer is on its way" in done.text
    with tenant_scope(pending_a.tenant.id):
        turn = Message.objects.get(content="Here I am.")
        assert turn.in_reply_to is not None
        assert turn.in_reply_to.content == "Is anybody there?"
        assert turn.name.startswith("u")
    send_message(pending_a, "Great.", user_id="zoe", thread_id="help")
    resolution = {"outcome": "person", "note": "Solved."}
    assert "Resolved" in admin.post(f"{page}resolve/", resolution, follow=True).text
    again = admin.post(f"{page}resolve/", resolution, follow=True).text
    assert "This escalation was resolved by" in again
    row = f"/admin/orchestrator/escalation/{escalation.pk}/change/"
    assert (admin.get(row).text.count(">Thread<"), "Read and answer" in again) == (1, False)
    assert "Read and answer" not in admin.get(row).text
    with tenant_scope(pending_a.tenant.id):
        closed = PendingReply.objects.get(message__content="Great.")
        assert closed.last_error.startswith("Taken care of by a person: u")
        events = AccessEvent.objects.filter(action__in=["answer", "resolve"]).order_by("id")
        done_by = [(event.action, user_of(event)) for event in events]
    assert done_by == [("answer", "zoe"), ("resolve", "zoe")]
    # Nobody has to look after a message that a person took care of.
    replies = "/admin/orchestrator/pendingreply/?state="
    assert "Great." in admin.get(f"{replies}closed").text
    assert "Great." not in admin.get(f"{replies}failed").text
    assert "Taken care of by a person" not in admin.get("/admin/").text
    conversation = admin.get(f"/admin/conversations/{closed.pk}/").text
    assert ("closed" in conversation, "Taken care of by a person" in conversation) == (True, True)
    assert browser(pending_b.tenant).get(page).status_code == 404


@pytest.mark.slow
def test_person_takes_over_a_conversation(pending_a: Program, admin: Client) -> None:
    with tenant_scope(pending_a.tenant.id):
        waiting = Message.objects.get(user_id="bob")
    conversation = f"/admin/conversations/{waiting.pk}/"
    assert "Let a person answer" in admin.get(conversation).text
    opened = admin.post(f"{conversation}escalate/", follow=True)
    assert "wants to answer" in opened.text
    text = admin.get(conversation).text
    assert "held for a person" in text
    assert "<bdi>A person</bdi> answers here" in text
    assert "held" in admin.get("/admin/orchestrator/pendingreply/?state=held").text
    assert admin.get(f"{conversation}escalate/").status_code == 403


@pytest.mark.slow
def test_an_identity_is_linked_and_unlinked_on_its_page(
    pending_a: Program, pending_b: Program, browser: Browser, admin: Client
) -> None:
    with tenant_scope(pending_a.tenant.id):
        identity = ChannelIdentity.objects.get()
    page = f"/admin/orchestrator/channelidentity/{identity.pk}/change/"
    assert page in admin.get("/admin/people/person/?user=maria").text
    again = admin.post(page, {"user_id": "maria"}, follow=True).text
    assert "speaks as &#x27;maria&#x27; already" in again
    assert "U+000A" in admin.post(page, {"user_id": "a\nb"}).text
    for typed in ("Ravi Niar", "Mari"):
        assert f"There is no user “{typed}”." in admin.post(page, {"user_id": typed}).text
    admin.post(page, {"user_id": ""})
    assert admin.post(page, {"user_id": "bob"}, follow=True).status_code == 200
    with tenant_scope(pending_a.tenant.id):
        assert channel_identities.user_of("slack", "T1", "U1") == "bob"
        events = AccessEvent.objects.filter(action__in=["link", "unlink"]).order_by("id")
        logged = [(event.action, user_of(event), users_shown(event)) for event in events]
        assert logged == [("unlink", "U1", ["U1", "maria"]), ("link", "bob", ["U1", "bob"])]
        assert "unlink" in {entry.action for entry in timeline(["maria"])}
    assert browser(pending_b.tenant).post(page, {"user_id": "bob"}).status_code == 404
    with tenant_scope(pending_b.tenant.id):
        assert channel_identities.user_of("slack", "T1", "U1") == "maria"


def test_an_answer_of_a_person_is_sent_once(pending_a: Program, admin: Client) -> None:
    with tenant_scope(pending_a.tenant.id):
        escalation = Escalation.objects.open().to_people().get()
    page = f"/admin/escalations/{escalation.pk}/"
    answer_id = str(admin.get(page).context["answering"]["answer_id"].value())
    for content, count in (("On my way.", 1), ("On my way.", 1), ("It was late.", 2)):
        sent = admin.post(f"{page}answer/", {"content": content, "answer_id": answer_id})
        assert sent.status_code == 302
        with tenant_scope(pending_a.tenant.id):
            answers = Message.objects.filter(content__in=["On my way.", "It was late."])
            assert answers.count() == count
