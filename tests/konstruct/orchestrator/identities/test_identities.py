"""Identities of users: separate until they are linked, and without collisions."""

import threading

import pytest
from django.db import connections

from konstruct.orchestrator.exceptions import NothingToLink
from konstruct.orchestrator.identities import channel_identities
from konstruct.orchestrator.identities.channel_identities import identity_of, link, unlink, user_of
from konstruct.orchestrator.models import ChannelIdentity, HistoryMerge
from memory.exceptions import InvalidArgument
from tenants.context import tenant_scope
from tenants.models import Tenant

pytestmark = pytest.mark.usefixtures("inside")


def test_an_id_is_its_own_user_and_no_other_identity_is_the_same(tenant_b: Tenant) -> None:
    assert user_of("slack", "T1", "U1", "Maria") == "U1"
    assert user_of("slack", "T1", "U1") == "U1"
    assert user_of("slack", "T2", "U1") == "slack:T2:U1"
    assert user_of("mail", "", "U1") == "mail::U1"
    # A user whose id equals another one's qualified id gets a separate id.
    assert user_of("slack", "T3", "slack:T2:U1").startswith("slack:T3:slack:T2:U1")
    assert ChannelIdentity.objects.get(own_id="U1").name == "Maria"
    long = user_of("slack", "T1", "x" * 300)
    assert long.startswith("slack:")
    assert len(long) < 255
    with tenant_scope(tenant_b.id):
        assert user_of("slack", "T2", "U1") == "U1"
    with pytest.raises(InvalidArgument, match="native_id='' is empty"):
        user_of("slack", "T1", "")


def test_linked_user_is_not_the_first_id_of_an_identity() -> None:
    link(identity_of("slack", "T1", "U1"), "U2", by="eva")
    assert user_of("slack", "T2", "U2") == "slack:T2:U2"


def test_a_linked_identity_speaks_as_the_user_and_unlinked_for_itself() -> None:
    identity = identity_of("slack", "T1", "U1")
    linked = link(identity, "maria", by="eva")
    assert (linked.linked_by, linked.linked_at is not None) == ("eva", True)
    assert user_of("slack", "T1", "U1") == "maria"
    move = HistoryMerge.objects.open().get()
    assert (move.from_user, move.user_id) == ("U1", "maria")
    with pytest.raises(NothingToLink, match="speaks as 'maria' already"):
        link(identity, "maria", by="eva")
    unlink(identity)
    assert user_of("slack", "T1", "U1") == "U1"
    assert not HistoryMerge.objects.open().exists()
    with pytest.raises(NothingToLink, match="is not linked"):
        unlink(identity)


def test_linking_an_identity_moves_its_linked_ids_and_creates_no_cycle() -> None:
    first, second = identity_of("slack", "T1", "U1"), identity_of("slack", "T2", "U2")
    link(second, "U1", by="eva")
    link(first, "maria", by="eva")
    assert (user_of("slack", "T1", "U1"), user_of("slack", "T2", "U2")) == ("maria", "maria")
    assert set(HistoryMerge.objects.open().values_list("from_user", "user_id")) == {
        ("U1", "maria"),
        ("U2", "maria"),
    }
    # A linked user has the id of the link's target.
    third = identity_of("slack", "T3", "U3")
    assert link(third, "U2", by="eva").user_id == "maria"
    unlink(first)
    link(identity_of("slack", "T4", "U4"), "U1", by="eva")
    with pytest.raises(NothingToLink, match="speaks as 'U1' already"):
        link(first, "U4", by="eva")


@pytest.mark.django_db(transaction=True)
def test_concurrent_first_messages_create_one_identity(tenant_a: Tenant) -> None:
    found: list[str] = []

    def hear(workspace: str) -> None:
        with tenant_scope(tenant_a.id):
            found.append(channel_identities.user_of("slack", workspace, "U1"))
        connections.close_all()

    threads = [threading.Thread(target=hear, args=(f"T{n % 2}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len(set(found)) == 2
    assert ChannelIdentity.objects.count() == 2
