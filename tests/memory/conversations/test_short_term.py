"""The window: its content, order, and isolation."""

import json
from uuid import uuid4

import pytest
from django_redis import get_redis_connection

from memory.conversations import short_term
from memory.conversations.window_store import Turn
from memory.exceptions import InvalidArgument
from memory.models import Message
from tenants import transaction
from tenants.context import tenant_scope
from tenants.exceptions import InvalidKeyPart, InvalidTenantId, TenantPinned, UnknownTenant
from tests.memory.conversations.window import AGENT, USER, contents, key_of


def test_turns_are_returned_oldest_first(tenant_a):
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "Hello")
    short_term.append_message(tenant_a.id, AGENT, USER, "assistant", "Good morning")
    assert short_term.get_recent_messages(tenant_a.id, AGENT, USER) == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Good morning"},
    ]


def test_the_window_keeps_the_last_turns(tenant_a):
    for number in range(25):
        short_term.append_message(tenant_a.id, AGENT, USER, "user", str(number))
    assert contents(tenant_a.id) == [str(number) for number in range(5, 25)]
    assert get_redis_connection("default").llen(key_of(tenant_a.id)) == 20


def test_the_key_is_the_documented_one_and_never_expires(tenant_a):
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "Hello")
    cache = get_redis_connection("default")
    key = f"{tenant_a.id}:memory:short:{AGENT}:{USER}"
    assert [json.loads(entry) for entry in cache.lrange(key, 0, -1)] == [
        {"role": "user", "content": "Hello"}
    ]
    assert cache.ttl(key) == -1


def test_ids_as_text_and_as_uuid_name_the_same_window(tenant_a):
    short_term.append_message(str(tenant_a.id).upper(), AGENT.hex, USER, "user", "Hello")
    assert contents(tenant_a.id) == ["Hello"]


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "x" * 100_000])
def test_any_text_survives_the_cache(tenant_a, text):
    short_term.append_message(tenant_a.id, AGENT, USER, "user", text)
    assert contents(tenant_a.id) == [text]


@pytest.mark.parametrize("n", [-1, 1.5, True])
def test_invalid_n_is_refused(tenant_a, n):
    with pytest.raises(InvalidArgument, match=f"^n={n!r} is not a whole number of at least 0$"):
        short_term.get_recent_messages(tenant_a.id, AGENT, USER, n)


@pytest.mark.parametrize("window", [0, 2.0, False])
def test_invalid_window_is_named_and_nothing_is_appended(tenant_a, window):
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "stays")
    with pytest.raises(
        InvalidArgument, match=f"^window={window!r} is not a whole number of at least 1$"
    ):
        short_term.append_message(tenant_a.id, AGENT, USER, "user", "Hello", window=window)
    assert contents(tenant_a.id) == ["stays"]


@pytest.mark.parametrize(
    ("user", "role", "content", "message"),
    [
        (USER, "robot", "Hello", r"^role='robot' is not one of user, assistant$"),
        (USER, "user", None, r"^content=None is not text$"),
        *((user, "user", "Hello", r"^user_id=") for user in ("", None, 7)),
    ],
)
def test_invalid_turn_is_refused_by_argument(tenant_a, user, role, content, message):
    with pytest.raises(InvalidArgument, match=message):
        short_term.append_message(tenant_a.id, AGENT, user, role, content)


@pytest.mark.parametrize("tenant", ["", None, "a:b"])
def test_no_window_without_a_tenant(tenant):
    with pytest.raises(InvalidKeyPart):
        short_term.append_message(tenant, AGENT, USER, "user", "Hello")


def test_user_ids_with_colons_are_separate(tenant_a):
    users = ["U:1", "U%3A1", "U%253A1", "1", ":", "%"]
    for user in users:
        short_term.append_message(tenant_a.id, AGENT, user, "user", f"of {user}")
    assert [contents(tenant_a.id, user) for user in users] == [[f"of {user}"] for user in users]


def test_tenants_agents_and_users_see_their_own_window_only(tenant_a, tenant_b):
    other = uuid4()
    places = [
        (tenant.id, agent, user)
        for tenant in (tenant_a, tenant_b)
        for agent in (AGENT, other)
        for user in (USER, "bob")
    ]
    for place in places:
        short_term.append_message(*place, "user", "Hello")
        short_term.append_message(*place, "user", " ".join(map(str, place)))
    for place in places:
        assert contents(place[0], place[2], place[1]) == ["Hello", " ".join(map(str, place))]


def test_a_window_of_an_agent_without_a_uuid_is_in_the_cache_only(tenant_a):
    short_term.append_message(tenant_a.id, "helper", "ann", "user", "Hello")
    window = [{"role": "user", "content": "Hello"}]
    assert short_term.get_recent_messages(tenant_a.id, "helper", "ann") == window
    short_term.clear_window(tenant_a.id, "helper", "ann")
    assert short_term.get_recent_messages(tenant_a.id, "helper", "ann") == []


@pytest.mark.parametrize("agent", [AGENT, "helper"])
def test_a_tenant_that_does_not_exist_has_no_turns_and_takes_none(db, agent):
    unknown = uuid4()
    assert short_term.get_recent_messages(unknown, agent, USER) == []
    for tenant, error in ((unknown, UnknownTenant), ("acme", InvalidTenantId)):
        with pytest.raises(error):
            short_term.append_message(tenant, agent, USER, "user", "Hello")
        assert short_term.get_recent_messages(tenant, agent, USER) == []


def test_an_unknown_tenant_breaks_no_transaction(tenant_a, add_message):
    with tenant_scope(tenant_a.id), transaction.atomic():
        add_message(tenant_a.id, "before")
        with pytest.raises(TenantPinned, match="cannot enter tenant"):
            short_term.get_recent_messages(uuid4(), AGENT, USER)
        assert Message.objects.count() == 1


def test_a_window_of_an_unknown_tenant_cannot_be_cleared(db):
    with pytest.raises(UnknownTenant, match="no tenant with migrated tables has the id"):
        short_term.clear_window(uuid4(), AGENT, USER)


def test_turns_of_the_transcript_have_message_ids(tenant_a, record_exchange):
    question, answer = record_exchange(tenant_a.id, "q", "a", name="Ann")
    short_term.append_turns(tenant_a.id, AGENT, USER, [question, answer])
    live = short_term.get_recent_messages(tenant_a.id, AGENT, USER)
    assert live == [
        {
            "role": "user",
            "content": "q",
            "message_id": question.message_id,
            "name": "Ann",
            "at": question.at,
        },
        {
            "role": "assistant",
            "content": "a",
            "message_id": answer.message_id,
            "name": "Ann",
            "at": answer.at,
        },
    ]
    get_redis_connection("default").flushdb()
    assert short_term.get_recent_messages(tenant_a.id, AGENT, USER) == live


def test_turns_outside_of_the_window_do_not_return(tenant_a, add_exchange):
    first = add_exchange(tenant_a.id, "q0", "a0")
    for number in range(1, 11):
        add_exchange(tenant_a.id, f"q{number}", f"a{number}")
    short_term.append_turns(tenant_a.id, AGENT, USER, first)
    assert contents(tenant_a.id) == [f"{speaker}{n}" for n in range(1, 11) for speaker in "qa"]


def test_turns_include_directly_appended_ones(tenant_a, add_exchange):
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "direct 1")
    add_exchange(tenant_a.id, "q1", "a1")
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "direct 2")
    add_exchange(tenant_a.id, "q2", "a2")
    assert contents(tenant_a.id) == ["direct 1", "q1", "a1", "direct 2", "q2", "a2"]


def test_turns_must_be_of_messages(tenant_a):
    with pytest.raises(InvalidArgument, match="has no message_id: see append_message"):
        short_term.append_turns(tenant_a.id, AGENT, USER, [Turn(role="user", content="q")])
    assert contents(tenant_a.id) == []


def test_empty_list_of_turns_sends_no_command(tenant_a):
    short_term.append_turns(tenant_a.id, AGENT, USER, [])
    assert not get_redis_connection("default").exists(key_of(tenant_a.id))
