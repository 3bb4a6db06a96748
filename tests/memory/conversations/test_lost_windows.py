"""After any loss of the cache, the window equals the transcript."""

import logging
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from django_redis import get_redis_connection
from hypothesis import HealthCheck, given, settings, strategies as st

from memory import arguments
from memory.conversations import short_term, window_store
from memory.models import WindowClear
from tenants import transaction
from tenants.context import tenant_scope
from tests.memory.conversations.window import AGENT, USER, contents, key_of


@pytest.mark.parametrize(
    "entry", [b"\xff\xfe", b"null", b'{"role": "user"}', b'{"role": "robot", "content": "x"}']
)
def test_entries_that_are_no_turns_are_passed_over(tenant_a, entry):
    cache = get_redis_connection("default")
    for number in range(3):
        short_term.append_message(tenant_a.id, AGENT, USER, "user", str(number))
        cache.rpush(key_of(tenant_a.id), entry)
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "3")
    assert contents(tenant_a.id) == ["0", "1", "2", "3"]
    assert contents(tenant_a.id, n=3) == ["1", "2", "3"]


def test_a_lost_window_is_rebuilt_when_it_is_appended_to(tenant_a, add_exchange):
    add_exchange(tenant_a.id, "q1", "a1")
    get_redis_connection("default").flushdb()
    add_exchange(tenant_a.id, "q2", "a2")
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2"]
    get_redis_connection("default").flushdb()
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "direct")
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2", "direct"]


def test_turns_stay_in_order_after_the_clock_was_set_back(
    tenant_a, add_exchange, add_message, monkeypatch
):
    hour = timedelta(hours=1)
    monkeypatch.setattr(arguments, "MAX_TIME_AHEAD", 2 * hour)
    add_exchange(tenant_a.id, "q1", "a1", created_at=timezone.now() + hour)
    add_exchange(tenant_a.id, "q2", "a2")
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2"]
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2"]
    with tenant_scope(tenant_a.id):
        WindowClear.objects.create(
            agent_id=AGENT, user_id=USER, last_number=0, created_at=timezone.now() + 2 * hour
        )
    add_exchange(tenant_a.id, "q3", "a3")
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == ["q3", "a3"]
    other = add_message(tenant_a.id, "q4", user_id="another user", thread_id="C9")
    assert other.created_at < timezone.now() + timedelta(minutes=1)


def test_a_rebuild_takes_pairs_in_the_order_of_their_replies(tenant_a, add_message):
    first, second = (
        add_message(tenant_a.id, "q1"),
        add_message(tenant_a.id, "q2", thread_id="C2", channel="slack"),
    )
    add_message(tenant_a.id, "a2", role="assistant", in_reply_to=second.id)
    add_message(tenant_a.id, "not answered yet")
    add_message(tenant_a.id, "a1", role="assistant", in_reply_to=first.id)
    assert contents(tenant_a.id) == ["q2", "a2", "q1", "a1"]


def test_a_rebuild_takes_imported_turns_in_their_order(tenant_a, add_message, add_exchange):
    add_exchange(tenant_a.id, "q", "a")
    for minute, (role, text) in enumerate([("user", "old q"), ("assistant", "old a")]):
        add_message(
            tenant_a.id,
            text,
            role=role,
            channel="import",
            external_id=f"x{minute}",
            created_at=datetime(2024, 3, 4, 9, minute, tzinfo=UTC),
        )
    get_redis_connection("default").flushdb()
    assert contents(tenant_a.id) == ["old q", "old a", "q", "a"]


@pytest.mark.parametrize("reader", ["get", "append_turns"])
def test_reader_from_before_a_clear_cannot_undo_it(
    tenant_a, add_exchange, record_exchange, monkeypatch, reader
):
    add_exchange(tenant_a.id, "q1", "a1")
    late = record_exchange(tenant_a.id, "q2", "a2")
    get_redis_connection("default").flushdb()
    read = window_store.Conversation.recent_turns
    cleared = []

    def read_and_be_overtaken(self, *args, **kwargs):
        turns = read(self, *args, **kwargs)
        if not cleared:
            cleared.append(True)
            short_term.clear_window(tenant_a.id, AGENT, USER)
        return turns

    monkeypatch.setattr(window_store.Conversation, "recent_turns", read_and_be_overtaken)
    if reader == "get":
        short_term.get_recent_messages(tenant_a.id, AGENT, USER)
    else:
        short_term.append_turns(tenant_a.id, AGENT, USER, late)
    assert cleared == [True]
    assert contents(tenant_a.id) == []


def test_without_the_cache_the_transcript_is_read(tenant_a, add_exchange, cache_away, caplog):
    add_exchange(tenant_a.id, "q1", "a1")
    live = short_term.get_recent_messages(tenant_a.id, AGENT, USER)
    with cache_away(), caplog.at_level(logging.WARNING, logger="memory"):
        assert short_term.get_recent_messages(tenant_a.id, AGENT, USER) == live
    assert "is read from the transcript" in caplog.text


def test_turns_appended_without_the_cache_are_logged_and_added_later(
    tenant_a, add_exchange, cache_away, caplog
):
    add_exchange(tenant_a.id, "q1", "a1")
    with cache_away(), caplog.at_level(logging.WARNING, logger="memory"):
        add_exchange(tenant_a.id, "q2", "a2")
        short_term.append_message(tenant_a.id, AGENT, USER, "user", "direct")
    assert caplog.text.count("was not appended to") == 2
    add_exchange(tenant_a.id, "q3", "a3")
    assert contents(tenant_a.id) == ["q1", "a1", "q2", "a2", "q3", "a3"]


@pytest.mark.django_db(transaction=True)
def test_clear_applies_although_the_cache_kept_its_copy(tenant_a, add_exchange, cache_away, caplog):
    add_exchange(tenant_a.id, "q1", "a1")
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "alone")
    with cache_away(), caplog.at_level(logging.WARNING, logger="memory"):
        short_term.clear_window(tenant_a.id, AGENT, USER)
    assert "the cache still has its copy" in caplog.text
    assert get_redis_connection("default").llen(key_of(tenant_a.id)) == 3
    short_term.append_message(tenant_a.id, AGENT, USER, "user", "new")
    assert contents(tenant_a.id) == ["new"]
    assert get_redis_connection("default").llen(key_of(tenant_a.id)) == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_turns_are_in_the_window_once_each(tenant_a, record_exchange, run_concurrently):
    pairs = [record_exchange(tenant_a.id, f"q{n}", f"a{n}") for n in range(8)]
    run_concurrently(
        lambda pair: short_term.append_turns(tenant_a.id, AGENT, USER, pair), pairs * 2
    )
    found = contents(tenant_a.id)
    assert sorted(found) == sorted(f"{speaker}{n}" for n in range(8) for speaker in "qa")
    assert [found[i : i + 2] for i in range(0, 16, 2)] == [
        [f"q{text[1:]}", f"a{text[1:]}"] for text in found[::2]
    ]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    steps=st.lists(
        st.sampled_from(["talk", "repeat", "lose append", "flush", "read", "clear"]), max_size=14
    )
)
def test_window_equals_the_transcript_after_any_sequence(
    tenant_a, add_exchange, record_exchange, steps
):
    """After each exchange the window is the last twenty answered pairs since the last clear."""
    user, expected, pairs = str(uuid4()), [], []
    for number, step in enumerate(steps):
        if step == "talk":
            pairs.append(add_exchange(tenant_a.id, f"q{number}", f"a{number}", user_id=user))
            expected = [*expected, f"q{number}", f"a{number}"][-20:]
            assert contents(tenant_a.id, user) == expected
        elif step == "lose append":
            pairs.append(record_exchange(tenant_a.id, f"q{number}", f"a{number}", user_id=user))
            expected = [*expected, f"q{number}", f"a{number}"][-20:]
        elif step == "repeat" and pairs:
            short_term.append_turns(tenant_a.id, AGENT, user, pairs[-1])
            assert contents(tenant_a.id, user) == expected
        elif step == "flush":
            get_redis_connection("default").flushdb()
            assert contents(tenant_a.id, user) == expected
        elif step == "read":
            assert set(contents(tenant_a.id, user)) <= set(expected)
        elif step == "clear":
            short_term.clear_window(tenant_a.id, AGENT, user)
            expected, pairs = [], []
            assert contents(tenant_a.id, user) == []


def test_the_way_of_a_reply_is_one_query_and_one_round_trip_to_the_cache(
    tenant_a, add_exchange, record_exchange, monkeypatch, django_assert_num_queries
):
    add_exchange(tenant_a.id, "q1", "a1")
    turns = record_exchange(tenant_a.id, "q2", "a2")
    calls = []
    append = window_store.append
    monkeypatch.setattr(
        window_store, "append", lambda *args, **named: calls.append(args) or append(*args, **named)
    )
    with tenant_scope(tenant_a.id), transaction.atomic(), django_assert_num_queries(1):
        short_term.append_turns(tenant_a.id, AGENT, USER, turns)
    assert len(calls) == 1
