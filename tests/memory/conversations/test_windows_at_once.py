"""Concurrent writers and readers of one window, and random sequences of steps."""

from uuid import uuid4

import pytest
from django_redis import get_redis_connection
from hypothesis import HealthCheck, given, settings, strategies as st

from memory.conversations import short_term, window_store
from memory.conversations.short_term import (
    append_message,
    append_turns,
    clear_window,
)
from tenants import transaction
from tenants.context import tenant_scope
from tests.memory.conversations.window import AGENT, USER, contents


def test_turn_added_during_a_rebuild_is_kept(tenant_a, monkeypatch):
    append, is_first = window_store.append, iter([True])

    def append_beside_another_writer(key, turns, **options):
        appended = append(key, turns, **options)
        if next(is_first, False):
            append_message(tenant_a.id, AGENT, USER, "user", "of the other writer")
        return appended

    monkeypatch.setattr(window_store, "append", append_beside_another_writer)
    append_message(tenant_a.id, AGENT, USER, "user", "of this writer")
    assert contents(tenant_a.id) == ["of the other writer", "of this writer"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_turns_are_in_the_window_once_each(tenant_a, record_exchange, run_concurrently):
    pairs = [record_exchange(tenant_a.id, f"q{n}", f"a{n}") for n in range(8)]
    run_concurrently(lambda pair: append_turns(tenant_a.id, AGENT, USER, pair), pairs * 2)
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


def test_the_way_of_a_reply_is_one_query_and_one_round_trip_to_the_cache(
    tenant_a, add_exchange, record_exchange, monkeypatch, django_assert_num_queries
):
    add_exchange(tenant_a.id, "q1", "a1")
    turns = record_exchange(tenant_a.id, "q2", "a2")
    calls = []
    run = short_term.window_store._run
    monkeypatch.setattr(
        short_term.window_store, "_run", lambda *args: calls.append(args) or run(*args)
    )
    with tenant_scope(tenant_a.id), transaction.atomic(), django_assert_num_queries(1):
        append_turns(tenant_a.id, AGENT, USER, turns)
    assert len(calls) == 1
