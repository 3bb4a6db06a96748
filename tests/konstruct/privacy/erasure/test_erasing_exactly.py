"""An erasure removes all rows of the named person, under all ids, and no other rows."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from konstruct.api.models import IdempotencyRecord
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.erasure_requests import ThreadOfOthers, request_erasure
from konstruct.orchestrator.models import Agent, ChannelIdentity
from konstruct.privacy import jobs
from konstruct.privacy.erasure.erasing import carry_out
from memory.context import SessionStore
from memory.models import Message
from tenants.audit.access_log import Actor, record_access
from tenants.audit.models import AccessEvent, Action, ActorKind, ErasureRequest
from tenants.audit.people import pseudonym
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.conftest import SendMessage
from tests.konstruct.privacy.conftest import save_session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("files_left_alone"),
]

EVA = Actor(ActorKind.PERSON, "1", "eva")


def test_user_ids_differ_by_spaces_and_case(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage, owner: None
) -> None:
    ids = ["zoe", "zoe ", " zoe", "Zoe", "zoe%", "zo_"]
    for user_id in ids:
        send_message(f"I am {user_id!r}.", user_id, f"of {user_id!r}")
    for number, user_id in enumerate(ids[1:], 1):
        carry_out(request_erasure(user_id, by=EVA))
        left = set(Message.objects.values_list("user_id", flat=True))
        assert left == {"zoe", *ids[number + 1 :]}


def test_records_of_others_stay(
    tenant_a: Tenant, agent: Agent, send_message: SendMessage, owner: None
) -> None:
    send_message("I like cheese.", "bob", "his")
    record_access(Action.VIEW, "conversation", by=EVA, user_id="bob", found=1)
    IdempotencyRecord.objects.create(operation="POST /f", key="k", digest="d", made=agent.pk)
    before = list(AccessEvent.objects.order_by("pk").values())
    carry_out(request_erasure("bob", by=EVA))
    events = AccessEvent.objects.exclude(action=Action.ERASE).order_by("pk")
    assert list(events.values()) == before
    assert IdempotencyRecord.objects.exists()
    # A user with the id finds the receipt.
    assert ErasureRequest.objects.about("bob").get().user_id == pseudonym("bob")
    assert not ErasureRequest.objects.about("bo").exists()


@pytest.fixture
def linked(tenant_a: Tenant, send_message: SendMessage) -> ChannelIdentity:
    """U024 of Slack, who is linked to maria, and was known by that id before."""
    send_message("From Slack.", "U024", "dm")
    send_message("From the web.", "maria", "web")
    send_message("I am bob.", "bob", "his")
    with tenant_scope(tenant_a.id):
        identity = channel_identities.identity_of("slack", "T1", "U024")
        return channel_identities.link(identity, "maria", by="eva")


@pytest.mark.parametrize("named", ["U024", "maria"])
@pytest.mark.parametrize("is_moved", [False, True])
def test_linked_ids_are_erased_with_the_person(
    tenant_a: Tenant, linked: ChannelIdentity, owner: None, named: str, is_moved: bool
) -> None:
    if is_moved:
        jobs.MERGE.run_due()
    request = carry_out(request_erasure(named, by=EVA))
    assert set(Message.objects.values_list("user_id", flat=True)) == {"bob"}
    assert not channel_identities.is_known(["U024", "maria"])
    assert request.user_ids[0] == pseudonym(named)
    assert set(request.user_ids) == {pseudonym("U024"), pseudonym("maria")}
    for user_id in ("U024", "maria"):
        assert ErasureRequest.objects.about(user_id).get() == request


def test_linked_chain_is_one_person_and_an_unlinked_id_is_not(
    tenant_a: Tenant, linked: ChannelIdentity, send_message: SendMessage, owner: None
) -> None:
    second = channel_identities.link(
        channel_identities.identity_of("mail", "", "m@x"), "U024", by="eva"
    )
    channel_identities.link(channel_identities.identity_of("sms", "", "+1"), "m@x", by="eva")
    assert channel_identities.linked_ids("+1") == ["+1", "U024", "m@x", "maria"]
    jobs.MERGE.run_due()
    channel_identities.unlink(second)
    assert channel_identities.linked_ids("m@x") == ["m@x"]
    send_message("I am somebody else.", "m@x", "mail")
    carry_out(request_erasure("m@x", by=EVA))
    assert set(Message.objects.values_list("user_id", flat=True)) == {"bob", "maria"}
    carry_out(request_erasure("+1", by=EVA))
    assert set(Message.objects.values_list("user_id", flat=True)) == {"bob"}


def sessions(tenant: Tenant) -> set[str]:
    return {session.thread_id for session in SessionStore(tenant.id).list_sessions()}


def test_sessions_of_others_stay(tenant_a: Tenant, send_message: SendMessage, owner: None) -> None:
    send_message("Mine.", "maria", "hers")
    save_session(tenant_a, "hers", "Hi.")
    save_session(tenant_a, "by name", "Hi.", user_id="maria")
    save_session(tenant_a, "both", "Hi.", user_id="maria")
    save_session(tenant_a, "both", "Hi.", user_id="bob")
    save_session(tenant_a, "bobs", "Hi.", user_id="bob")
    save_session(tenant_a, "nobodys", "Hi.")
    # She is the only user of the thread with that name, and the session names bob.
    send_message("Mine?", "maria", "bobs")
    for thread in ("bobs", "both"):
        with pytest.raises(ThreadOfOthers, match=f"Not of 'maria' alone: '{thread}'"):
            request_erasure("maria", by=EVA, threads=["hers", thread])
    assert not ErasureRequest.objects.exists()
    receipt = carry_out(request_erasure("maria", by=EVA)).receipt
    assert receipt is not None
    assert sessions(tenant_a) == {"both", "bobs", "nobodys"}
    assert receipt["sessions_left"] == 2
    carry_out(request_erasure("maria", by=EVA, threads=["nobodys"]))
    assert sessions(tenant_a) == {"both", "bobs"}


def test_bound_key_cannot_erase_a_session_without_messages_of_its_user(
    tenant_a: Tenant, send_message: SendMessage, owner: None
) -> None:
    save_session(tenant_a, "began before", "Hi.")
    send_message("Mine now?", "maria", "began before")
    send_message("Mine.", "maria", "hers")
    save_session(tenant_a, "hers", "Hi.")
    for thread in ("began before", "unheard of"):
        with pytest.raises(ThreadOfOthers):
            request_erasure("maria", by=EVA, threads=[thread], by_bound_key=True)
    carry_out(request_erasure("maria", by=EVA, threads=["hers"], by_bound_key=True))
    assert sessions(tenant_a) == {"began before"}


def test_command_lists_linked_ids_and_matches_the_id_exactly(
    tenant_a: Tenant, linked: ChannelIdentity, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    erase = ("erase_user", "--tenant", "tenant-a", "--user")
    monkeypatch.setattr("builtins.input", lambda _: "U024 ")
    with database.as_owner(), pytest.raises(CommandError, match="not erased"):
        call_command(*erase, "U024")
    assert "'maria' is linked to 'U024', and erased with them." in capsys.readouterr().err
    with database.as_owner():
        call_command(*erase, "U024 ", "--yes")
        assert "nothing was kept of 'U024 ' in tenant-a" in capsys.readouterr().out
        with tenant_scope(tenant_a.id):
            assert Message.objects.filter(user_id="maria").exists()
        call_command(*erase, "U024", "--yes")
        output = capsys.readouterr()
    assert "erased 'U024' of tenant-a" in output.out
    assert "4 of 4 messages removed" in output.err
    with tenant_scope(tenant_a.id):
        assert set(Message.objects.values_list("user_id", flat=True)) == {"bob"}
