"""The window: what is in it, and in what order, whatever happens to the cache."""

import json
import logging
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django_redis import get_redis_connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.conversations import short_term
from memory.conversations.short_term import (
    aappend_message,
    aget_recent_messages,
    append_message,
    append_turns,
    clear_window,
    get_recent_messages,
)
from memory.conversations.transcript import Conversation
from memory.conversations.turns import Turn
from memory.exceptions import InvalidArgument, WindowNotCleared
from memory.models import Message, WindowClear
from tenants.context import tenant_scope
from tenants.exceptions import InvalidKeyPart, TenantPinned, UnknownTenant
from tenants.redis_keys import memory_short_key

AGENT = UUID("0a9e0000-0000-4000-8000-000000000001")
USER = "U024BE7LH"


def contents(tenant_id, user=USER, agent=AGENT, n=20):
    return [turn["content"] for turn in get_recent_messages(tenant_id, agent, user, n)]


def key_of(tenant_id, user=USER, agent=AGENT):
    return memory_short_key(tenant_id, agent, user)


# --- appending and reading ------------------------------------------------------------------------


def test_turns_come_back_oldest_first(tenant_a):
    append_message(tenant_a.id, AGENT, USER, "user", "Hello")
    append_message(tenant_a.id, AGENT, USER, "assistant", "Good morning")
    assert get_recent_messages(tenant_a.id, AGENT, USER) == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Good morning"},
    ]


def test_a_new_user_has_no_turns(tenant_a):
    assert get_recent_messages(tenant_a.id, AGENT, USER) == []


def test_the_window_keeps_the_last_turns(tenant_a):
    for number in range(25):
        append_message(tenant_a.id, AGENT, USER, "user", str(number))
    assert contents(tenant_a.id) == [str(number) for number in range(5, 25)]
    assert get_redis_connection("default").llen(key_of(tenant_a.id)) == 20


def test_a_narrower_window_cuts_what_is_there(tenant_a):
    for number in range(10):
        append_message(tenant_a.id, AGENT, USER, "user", str(number))
    append_message(tenant_a.id, AGENT, USER, "user", "10", window=3)
    assert contents(tenant_a.id) == ["8", "9", "10"]


@pytest.mark.parametrize(("n", "expected"), [(0, []), (1, ["3"]), (3, ["1", "2", "3"])])
def test_n_limits_what_is_read(tenant_a, n, expected):
    for number in range(4):
        append_message(tenant_a.id, AGENT, USER, "user", str(number))
    assert contents(tenant_a.id, n=n) == expected


def test_the_key_is_the_documented_one_and_never_expires(tenant_a):
    append_message(tenant_a.id, AGENT, USER, "user", "Hello")
    cache = get_redis_connection("default")
    key = f"{tenant_a.id}:memory:short:{AGENT}:{USER}"
    assert [json.loads(entry) for entry in cache.lrange(key, 0, -1)] == [
        {"role": "user", "content": "Hello"}
    ]
    assert cache.ttl(key) == -1


def test_ids_as_text_and_as_uuid_name_the_same_window(tenant_a):
    append_message(str(tenant_a.id).upper(), AGENT.hex, USER, "user", "Hello")
    assert contents(tenant_a.id) == ["Hello"]


@pytest.mark.parametrize("text", ["", "\x00", "naïve 😀", "\ud800", 'a"b\\c', "x" * 100_000])
def test_any_text_survives_the_cache(tenant_a, text):
    append_message(tenant_a.id, AGENT, USER, "user", text)
    assert contents(tenant_a.id) == [text]


@pytest.mark.parametrize("n", [-1, 1.5, "3", None, True])
def test_a_bad_n_is_named(tenant_a, n):
    with pytest.raises(InvalidArgument, match=f"^n={n!r} is not a whole number of at least 0$"):
        get_recent_messages(tenant_a.id, AGENT, USER, n)


@pytest.mark.parametrize("window", [0, -20, 2.0, "20", None, False])
def test_a_bad_window_is_named_and_nothing_is_appended(tenant_a, window):
    append_message(tenant_a.id, AGENT, USER, "user", "stays")
    with pytest.raises(
        InvalidArgument, match=f"^window={window!r} is not a whole number of at least 1$"
    ):
        append_message(tenant_a.id, AGENT, USER, "user", "Hello", window=window)
    assert contents(tenant_a.id) == ["stays"]


def test_a_bad_role_is_named(tenant_a):
    with pytest.raises(InvalidArgument, match=r"^role='robot' is none of user, assistant$"):
        append_message(tenant_a.id, AGENT, USER, "robot", "Hello")


def test_content_must_be_text(tenant_a):
    with pytest.raises(InvalidArgument, match=r"^content=None is not text$"):
        append_message(tenant_a.id, AGENT, USER, "user", None)


@pytest.mark.parametrize("user", ["", None, 7])
def test_a_user_must_have_an_id(tenant_a, user):
    with pytest.raises(InvalidArgument, match=r"^user_id="):
        append_message(tenant_a.id, AGENT, user, "user", "Hello")


@pytest.mark.parametrize("tenant", ["", None, "a:b"])
def test_no_window_without_a_tenant(tenant):
    with pytest.raises(InvalidKeyPart):
        append_message(tenant, AGENT, USER, "user", "Hello")


def test_users_whose_ids_hold_colons_stay_apart(tenant_a):
    users = ["U:1", "U%3A1", "U%253A1", "1", ":", "%"]
    for user in users:
        append_message(tenant_a.id, AGENT, user, "user", f"of {user}")
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
        append_message(*place, "user", "Hello")
        append_message(*place, "user", " ".join(map(str, place)))
    for place in places:
        assert contents(place[0], place[2], place[1]) == ["Hello", " ".join(map(str, place))]


def test_code_that_serves_a_tenant_cannot_reach_anothers_window(tenant_a, tenant_b):
    append_message(tenant_b.id, AGENT, USER, "user", "secret")
    with tenant_scope(tenant_a.id, pinned=True):
        with pytest.raises(TenantPinned):
            get_recent_messages(tenant_b.id, AGENT, USER)
        with pytest.raises(TenantPinned):
            append_message(tenant_b.id, AGENT, USER, "user", "forged")
        with pytest.raises(TenantPinned):
            clear_window(tenant_b.id, AGENT, USER)
    assert contents(tenant_b.id) == ["secret"]


# --- ids that no transcript knows -----------------------------------------------------------------


def test_ids_that_are_no_uuids_live_in_the_cache_alone():
    append_message("acme", "helper", "ann", "user", "Hello")
    assert get_recent_messages("acme", "helper", "ann") == [{"role": "user", "content": "Hello"}]
    clear_window("acme", "helper", "ann")
    assert get_recent_messages("acme", "helper", "ann") == []


def test_a_tenant_that_does_not_exist_has_no_turns(db):
    unknown = uuid4()
    assert get_recent_messages(unknown, AGENT, USER) == []
    append_message(unknown, AGENT, USER, "user", "Hello")
    assert contents(unknown) == ["Hello"]


def test_an_unknown_tenant_breaks_no_transaction(tenant_a, say):
    with tenant_scope(tenant_a.id), transaction.atomic():
        say(tenant_a.id, "before")
        assert get_recent_messages(uuid4(), AGENT, USER) == []
        assert Message.objects.count() == 1


def test_a_window_of_an_unknown_tenant_cannot_be_cleared(db):
    with pytest.raises(UnknownTenant, match="no tenant with migrated tables has the id"):
        clear_window(uuid4(), AGENT, USER)


# --- what else lies in the cache ------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        b"not json",
        b"\xff\xfe",
        b"7",
        b"[]",
        b"null",
        b'{"role": "user"}',
        b'{"role":1}',
        b'{"role": "robot", "content": "x"}',
    ],
)
def test_entries_that_are_no_turns_are_passed_over(tenant_a, entry):
    cache = get_redis_connection("default")
    for number in range(3):
        append_message(tenant_a.id, AGENT, USER, "user", str(number))
        cache.rpush(key_of(tenant_a.id), entry)
    append_message(tenant_a.id, AGENT, USER, "user", "3")
    assert contents(tenant_a.id) == ["0", "1", "2", "3"]
    assert contents(tenant_a.id, n=3) == ["1", "2", "3"]


@pytest.mark.parametrize("message_id", ["nonsense", 7, None, ["x"]])
def test_whoever_reads_a_message_id_can_rely_on_it(tenant_a, message_id):
    append_message(tenant_a.id, AGENT, USER, "user", "Hello")
    get_redis_connection("default").rpush(
        key_of(tenant_a.id),
        json.dumps({"message_id": message_id, "role": "user", "content": "?", "more": 1}),
    )
    assert get_recent_messages(tenant_a.id, AGENT, USER)[1] == {
        "role": "user",
        "content": "?",
        "more": 1,
    }


def test_something_else_under_the_key_is_replaced_by_the_transcript(tenant_a, talk):
    talk(tenant_a.id, "q", "a")
    cache = get_redis_connection("default")
    for kind in ({"set": "x"}, {"hset": {"f": "v"}}):
        cache.delete(key_of(tenant_a.id))
        for command, value in kind.items():
            if command == "set":
                cache.set(key_of(tenant_a.id), value)
            else:
                cache.hset(key_of(tenant_a.id), mapping=value)
        assert contents(tenant_a.id) == ["q", "a"]
    cache.delete(key_of(tenant_a.id))
    cache.set(key_of(tenant_a.id), "x")
    append_message(tenant_a.id, AGENT, USER, "user", "more")
    assert contents(tenant_a.id) == ["q", "a", "more"]


# --- the transcript's turns -----------------------------------------------------------------------


def test_turns_of_the_transcript_say_which_message_they_are(tenant_a, answered):
    question, answer = answered(tenant_a.id, "q", "a", name="Ann")
    append_turns(tenant_a.id, AGENT, USER, [question, answer])
    live = get_recent_messages(tenant_a.id, AGENT, USER)
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
    assert get_recent_messages(tenant_a.id, AGENT, USER) == live


def test_appending_the_same_turns_again_changes_nothing(tenant_a, talk):
    first = talk(tenant_a.id, "q1", "a1")
    talk(tenant_a.id, "q2", "a2")
    for _ in range(3):
        append_turns(tenant_a.id, AGENT, USER, first)
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2"]


def test_turns_that_have_left_the_window_do_not_come_back(tenant_a, talk):
    first = talk(tenant_a.id, "q0", "a0")
    for number in range(1, 11):
        talk(tenant_a.id, f"q{number}", f"a{number}")
    append_turns(tenant_a.id, AGENT, USER, first)
    assert contents(tenant_a.id) == [f"{who}{n}" for n in range(1, 11) for who in "qa"]


def test_turns_go_along_with_what_was_appended_directly(tenant_a, talk):
    append_message(tenant_a.id, AGENT, USER, "user", "direct 1")
    talk(tenant_a.id, "q1", "a1")
    append_message(tenant_a.id, AGENT, USER, "user", "direct 2")
    talk(tenant_a.id, "q2", "a2")
    assert contents(tenant_a.id) == ["direct 1", "q1", "a1", "direct 2", "q2", "a2"]


def test_turns_must_be_of_messages(tenant_a):
    with pytest.raises(InvalidArgument, match="has no message_id: see append_message"):
        append_turns(tenant_a.id, AGENT, USER, [Turn(role="user", content="q")])
    assert contents(tenant_a.id) == []


def test_turns_of_messages_that_no_transcript_has_are_appended_all_the_same(tenant_a):
    turns = [Turn(role="user", content=str(n), message_id=str(uuid4())) for n in range(2)]
    append_turns(tenant_a.id, AGENT, USER, turns)
    append_turns(tenant_a.id, AGENT, USER, turns)
    append_turns("acme", "helper", "ann", turns)
    append_turns(uuid4(), AGENT, USER, turns)
    assert contents(tenant_a.id) == ["0", "1"]
    assert contents("acme", "ann", "helper") == ["0", "1"]


def test_no_turns_are_no_work(tenant_a):
    append_turns(tenant_a.id, AGENT, USER, [])
    assert not get_redis_connection("default").exists(key_of(tenant_a.id))


# --- a lost window --------------------------------------------------------------------------------


def test_a_lost_window_is_rebuilt_when_it_is_read(tenant_a, talk):
    for number in range(15):
        talk(tenant_a.id, f"q{number}", f"a{number}")
    live = get_recent_messages(tenant_a.id, AGENT, USER)
    assert len(live) == 20
    get_redis_connection("default").flushdb()
    assert get_recent_messages(tenant_a.id, AGENT, USER) == live
    assert get_redis_connection("default").llen(key_of(tenant_a.id)) == 20


def test_a_lost_window_is_rebuilt_when_it_is_appended_to(tenant_a, talk):
    talk(tenant_a.id, "q1", "a1")
    get_redis_connection("default").flushdb()
    talk(tenant_a.id, "q2", "a2")
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2"]
    get_redis_connection("default").flushdb()
    append_message(tenant_a.id, AGENT, USER, "user", "direct")
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2", "direct"]


def test_a_window_that_lost_its_newest_turns_is_rebuilt_at_the_next(tenant_a, talk, answered):
    talk(tenant_a.id, "q1", "a1")
    answered(tenant_a.id, "q2", "a2")  # appended while the cache was away, or to a later snapshot
    talk(tenant_a.id, "q3", "a3")
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2", "q3", "a3"]


def test_a_rebuild_takes_pairs_in_the_order_of_their_replies(tenant_a, say):
    first, second = say(tenant_a.id, "q1"), say(tenant_a.id, "q2", thread_id="C2", channel="slack")
    say(tenant_a.id, "a2", role="assistant", in_reply_to=second.id)
    say(tenant_a.id, "not answered yet")
    say(tenant_a.id, "a1", role="assistant", in_reply_to=first.id)
    assert contents(tenant_a.id) == ["q2", "a2", "q1", "a1"]


def test_a_rebuild_takes_imported_turns_in_their_order(tenant_a, say, talk):
    talk(tenant_a.id, "q", "a")
    for minute, (role, text) in enumerate([("user", "old q"), ("assistant", "old a")]):
        say(
            tenant_a.id,
            text,
            role=role,
            channel="import",
            external_id=f"x{minute}",
            created_at=datetime(2024, 3, 4, 9, minute, tzinfo=UTC),
        )
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == ["old q", "old a", "q", "a"]


def test_a_rebuild_takes_no_other_users_agents_or_tenants_turns(tenant_a, tenant_b, talk):
    for tenant in (tenant_a, tenant_b):
        talk(tenant.id, "q", f"of {tenant.slug}")
        talk(tenant.id, "q", f"bob's of {tenant.slug}", user_id="bob")
        talk(tenant.id, "q", f"other agent's of {tenant.slug}", agent_id=uuid4())
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == ["q", "of tenant-a"]
    assert contents(tenant_b.id) == ["q", "of tenant-b"]
    assert contents(tenant_b.id, "bob") == ["q", "bob's of tenant-b"]


def test_more_than_a_window_can_be_asked_of_a_lost_one(tenant_a, talk):
    for number in range(15):
        talk(tenant_a.id, f"q{number}", f"a{number}")
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id, n=26) == [f"{who}{n}" for n in range(2, 15) for who in "qa"]


# --- a cleared window -----------------------------------------------------------------------------


def test_a_cleared_window_stays_empty(tenant_a, talk):
    talk(tenant_a.id, "q1", "a1")
    clear_window(tenant_a.id, AGENT, USER)
    assert contents(tenant_a.id) == []
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == []
    with tenant_scope(tenant_a.id):
        assert WindowClear.objects.count() == 1
        assert Message.objects.count() == 2


def test_after_a_clear_only_new_turns_are_in_the_window(tenant_a, talk):
    old = talk(tenant_a.id, "q1", "a1")
    clear_window(tenant_a.id, AGENT, USER)
    talk(tenant_a.id, "q2", "a2")
    append_turns(tenant_a.id, AGENT, USER, old)
    assert contents(tenant_a.id) == ["q2", "a2"]
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == ["q2", "a2"]
    clear_window(tenant_a.id, AGENT, USER)
    talk(tenant_a.id, "q3", "a3")
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == ["q3", "a3"]


def test_a_clear_is_of_one_user_with_one_agent_in_one_tenant(tenant_a, tenant_b, talk):
    other = uuid4()
    for tenant in (tenant_a, tenant_b):
        for agent in (AGENT, other):
            for user in (USER, "bob"):
                talk(tenant.id, "q", "a", agent_id=agent, user_id=user)
    clear_window(tenant_a.id, AGENT, USER)
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == []
    assert contents(tenant_a.id, "bob") == ["q", "a"]
    assert contents(tenant_a.id, agent=other) == ["q", "a"]
    assert contents(tenant_b.id) == ["q", "a"]


@pytest.mark.parametrize("reader", ["get", "append_message", "append_turns"])
def test_who_read_the_transcript_before_a_clear_cannot_undo_it(
    tenant_a, talk, answered, monkeypatch, reader
):
    talk(tenant_a.id, "q1", "a1")
    late = answered(tenant_a.id, "q2", "a2")
    get_redis_connection("default").flushdb()
    read = Conversation.recent_turns
    cleared = []

    def read_and_be_overtaken(self, *args, **kwargs):
        turns = read(self, *args, **kwargs)
        if not cleared:
            cleared.append(True)
            clear_window(tenant_a.id, AGENT, USER)
        return turns

    monkeypatch.setattr(Conversation, "recent_turns", read_and_be_overtaken)
    if reader == "get":
        get_recent_messages(tenant_a.id, AGENT, USER)
        expected = []
    elif reader == "append_message":
        append_message(tenant_a.id, AGENT, USER, "user", "new")
        expected = ["new"]
    else:
        append_turns(tenant_a.id, AGENT, USER, late)
        expected = []
    assert cleared == [True]
    assert [t for t in contents(tenant_a.id) if t in ("q1", "a1")] == []
    assert [t for t in contents(tenant_a.id) if t == "new"] == [t for t in expected if t == "new"]


# --- a cache that is away -------------------------------------------------------------------------


def test_without_the_cache_the_transcript_is_read(tenant_a, talk, cache_away, caplog):
    talk(tenant_a.id, "q1", "a1")
    live = get_recent_messages(tenant_a.id, AGENT, USER)
    with cache_away(), caplog.at_level(logging.WARNING, logger="memory"):
        assert get_recent_messages(tenant_a.id, AGENT, USER) == live
    assert "is read from the transcript" in caplog.text


def test_without_the_cache_appending_is_logged_and_made_up_for(tenant_a, talk, cache_away, caplog):
    talk(tenant_a.id, "q1", "a1")
    with cache_away(), caplog.at_level(logging.WARNING, logger="memory"):
        talk(tenant_a.id, "q2", "a2")
        append_message(tenant_a.id, AGENT, USER, "user", "direct")
    assert caplog.text.count("was not appended to") == 2
    talk(tenant_a.id, "q3", "a3")
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2", "q3", "a3"]


def test_without_the_cache_a_clear_says_that_it_must_be_done_again(tenant_a, talk, cache_away):
    talk(tenant_a.id, "q1", "a1")
    with cache_away(), pytest.raises(WindowNotCleared, match="clear it again"):
        clear_window(tenant_a.id, AGENT, USER)
    clear_window(tenant_a.id, AGENT, USER)
    assert contents(tenant_a.id) == []


# --- many at once ---------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_concurrent_appends_lose_nothing(tenant_a, at_once):
    def append_many(writer):
        for number in range(25):
            append_message(tenant_a.id, AGENT, USER, "user", f"{writer}-{number}", window=500)

    at_once(append_many, list(range(8)))
    found = contents(tenant_a.id, n=500)
    assert sorted(found) == sorted(f"{w}-{n}" for w in range(8) for n in range(25))
    for writer in range(8):
        own = [text for text in found if text.startswith(f"{writer}-")]
        assert own == [f"{writer}-{n}" for n in range(25)]


@pytest.mark.django_db(transaction=True)
def test_concurrent_turns_are_in_the_window_once_each(tenant_a, answered, at_once):
    pairs = [answered(tenant_a.id, f"q{n}", f"a{n}") for n in range(8)]
    at_once(lambda pair: append_turns(tenant_a.id, AGENT, USER, pair), pairs * 2)
    found = contents(tenant_a.id)
    assert sorted(found) == sorted(f"{who}{n}" for n in range(8) for who in "qa")
    assert [found[i : i + 2] for i in range(0, 16, 2)] == [
        [f"q{text[1:]}", f"a{text[1:]}"] for text in found[::2]
    ]


@pytest.mark.django_db(transaction=True)
def test_concurrent_readers_of_a_lost_window_write_it_once(tenant_a, talk, at_once):
    for number in range(3):
        talk(tenant_a.id, f"q{number}", f"a{number}")
    live = contents(tenant_a.id)
    get_redis_connection("default").flushdb()
    assert at_once(lambda _: contents(tenant_a.id), list(range(8))) == [live] * 8
    assert get_redis_connection("default").llen(key_of(tenant_a.id)) == 6


async def _use_twins(tenant_id):
    await aappend_message(tenant_id, AGENT, USER, "user", "Hello")
    return await aget_recent_messages(tenant_id, AGENT, USER)


@pytest.mark.django_db(transaction=True)
def test_the_asynchronous_twins_do_the_same(tenant_a):
    assert async_to_sync(_use_twins)(tenant_a.id) == [{"role": "user", "content": "Hello"}]


# --- properties -----------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    steps=st.lists(st.tuples(st.text(max_size=5), st.integers(1, 6)), max_size=15),
    n=st.integers(0, 8),
)
def test_the_window_is_a_bounded_list(steps, n):
    model: list[str] = []
    user = str(uuid4())
    for text, window in steps:
        append_message("acme", "helper", user, "user", text, window=window)
        model = [*model, text][-window:]
    assert contents("acme", user, "helper", n) == (model[-n:] if n else [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    steps=st.lists(
        st.sampled_from(["talk", "repeat", "lose append", "flush", "read", "clear"]), max_size=14
    )
)
def test_whatever_happens_the_window_is_what_the_transcript_says(tenant_a, talk, answered, steps):
    """After each talk the window is the answered pairs since the last clear, the last twenty."""
    user, expected, pairs = str(uuid4()), [], []
    for number, step in enumerate(steps):
        if step == "talk":
            pairs.append(talk(tenant_a.id, f"q{number}", f"a{number}", user_id=user))
            expected = [*expected, f"q{number}", f"a{number}"][-20:]
            assert contents(tenant_a.id, user) == expected
        elif step == "lose append":
            pairs.append(answered(tenant_a.id, f"q{number}", f"a{number}", user_id=user))
            expected = [*expected, f"q{number}", f"a{number}"][-20:]
        elif step == "repeat" and pairs:
            append_turns(tenant_a.id, AGENT, user, pairs[-1])
            assert contents(tenant_a.id, user) == expected
        elif step == "flush":
            get_redis_connection("default").flushdb()
            assert contents(tenant_a.id, user) == expected
        elif step == "read":
            assert set(contents(tenant_a.id, user)) <= set(expected)
        elif step == "clear":
            clear_window(tenant_a.id, AGENT, user)
            expected, pairs = [], []
            assert contents(tenant_a.id, user) == []


def test_the_way_of_a_reply_is_one_query_and_one_round_trip(
    tenant_a, talk, answered, monkeypatch, django_assert_num_queries
):
    talk(tenant_a.id, "q1", "a1")
    turns = answered(tenant_a.id, "q2", "a2")
    calls = []
    run = short_term.window_store._run
    monkeypatch.setattr(
        short_term.window_store, "_run", lambda *args: calls.append(args) or run(*args)
    )
    connection.set_schema(tenant_a.schema_name)
    with transaction.atomic(), django_assert_num_queries(1):
        append_turns(tenant_a.id, AGENT, USER, turns)
    assert len(calls) == 1
