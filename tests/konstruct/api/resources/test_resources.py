"""Read-only resources: conversations, windows, users, recall events, usage."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from konstruct.orchestrator.identities import channel_identities
from memory.models import WindowClear
from tenants.context import tenant_scope
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.conftest import MESSAGES, Program
from tests.memory.recall_traces import fact_of, prompt_of, store_trace

pytestmark = pytest.mark.django_db

CONVERSATIONS = "/api/v1/conversations/"
TRANSCRIPT = "/api/v1/conversations/transcript/"
EVENTS = "/api/v1/recall-events/"
USERS = "/api/v1/users/"
WINDOWS = "/api/v1/windows/"


def results(program: Program, address: str) -> list[dict[str, Any]]:
    response = program.get(address)
    assert response.status_code == 200, response.content
    rows: list[dict[str, Any]] = response.json()["results"]
    return rows


def moment(value: Any) -> str:
    return str(value.isoformat()).replace("+00:00", "Z")


def test_conversations_are_ordered_by_their_last_message(seed: SeedData) -> None:
    rows = results(seed.program, CONVERSATIONS)
    assert [(row["agent"], row["user_id"], row["thread_id"]) for row in rows] == [
        ("bo", "maria", "t2"),
        ("ada", "maria", "t1"),
        ("ada", "theo", "old/thread?"),
    ]
    assert rows[1] == {
        "url": f"http://localhost{TRANSCRIPT}?agent={seed.program.agent.id}&user_id=maria"
        "&thread_id=t1",
        "agent": "ada",
        "agent_id": str(seed.program.agent.id),
        "user_id": "maria",
        "thread_id": "t1",
        "title": "",
        "metadata": {},
        "messages": 2,
        "first_at": seed.sent["created_at"],
        "last_at": moment(seed.reply.created_at),
        "last_role": "assistant",
        "last_content": "Tea.",
    }
    assert (rows[2]["messages"], rows[2]["first_at"], rows[2]["last_at"]) == (
        4,
        "2025-03-14T09:00:00Z",
        "2025-03-14T09:01:00Z",
    )


@pytest.mark.parametrize(
    ("query", "threads"),
    [
        ("agent=ada", ["t1", "old/thread?"]),
        ("user_id=maria", ["t2", "t1"]),
        ("agent=ada&user_id=maria", ["t1"]),
        ("thread_id=t2", ["t2"]),
        ("since=2026-01-01T00:00:00Z", ["t2", "t1"]),
        ("until=2026-01-01T00:00:00Z", ["old/thread?"]),
        ("ordering=created_at", ["old/thread?", "t1", "t2"]),
        ("user_id=nobody", []),
    ],
)
def test_conversations_are_filtered(seed: SeedData, query: str, threads: list[str]) -> None:
    rows = results(seed.program, f"{CONVERSATIONS}?{query}")
    assert [row["thread_id"] for row in rows] == threads


def test_transcript_is_verbatim_and_links_replies_to_messages(seed: SeedData) -> None:
    turns = results(seed.program, f"{TRANSCRIPT}?agent=ada&user_id=maria")
    assert turns == [
        {
            "id": seed.sent["id"],
            "role": "user",
            "name": "Maria",
            "content": "What do I drink?",
            "channel": "rest",
            "thread_id": "t1",
            "created_at": seed.sent["created_at"],
            "in_reply_to": None,
            "external_id": None,
            "metadata": {},
            "indexed": True,
        },
        {
            "id": str(seed.reply.id),
            "role": "assistant",
            "name": "",
            "content": "Tea.",
            "channel": "rest",
            "thread_id": "t1",
            "created_at": moment(seed.reply.created_at),
            "in_reply_to": seed.sent["id"],
            "external_id": None,
            "metadata": {},
            "indexed": True,
        },
    ]


def test_messages_are_filtered_by_status_and_time(seed: SeedData) -> None:
    def contents(query: str) -> list[str]:
        return [row["content"] for row in results(seed.program, f"{MESSAGES}?{query}")]

    assert contents("status=answered") == ["What do I drink?"]
    assert contents("status=queued") == ["Good morning"]
    assert contents("status=failed") == []
    assert contents("ordering=created_at") == ["What do I drink?", "Good morning"]
    assert contents("until=2026-01-01T00:00:00Z") == []


def test_users_are_those_with_messages_or_facts(seed: SeedData) -> None:
    rows = {row["user_id"]: row for row in results(seed.program, USERS)}
    assert list(rows) == ["maria", "theo", "vera"]
    assert rows["maria"]["messages"] == 3
    assert rows["maria"]["first_at"] == seed.sent["created_at"]
    assert [(agent["name"], agent["messages"]) for agent in rows["maria"]["agents"]] == [
        ("ada", 2),
        ("bo", 1),
    ]
    assert rows["vera"] == {
        "user_id": "vera",
        "name": "",
        "names": [],
        "messages": 0,
        "facts": 1,
        "first_at": None,
        "last_at": None,
        "agents": [],
    }


def test_users_are_found_by_names_ids_and_accounts(seed: SeedData) -> None:
    seed.program.send("Hello", user_id="u-17", name="Łucja Nowak")
    with tenant_scope(seed.program.tenant.id):
        identity = channel_identities.identity_of("slack", "T1", "U024", "lu")
        channel_identities.link(identity, "u-17", by="eva")
    for q in ("lucja", "NOWAK łuc", "u-17", "U024", "lu"):
        (row,) = results(seed.program, f"{USERS}?{urlencode({'q': q})}")
        assert (row["user_id"], row["name"], row["names"]) == (
            "u-17",
            "Łucja Nowak",
            ["Łucja Nowak"],
        )
    assert results(seed.program, f"{USERS}?q=lucja&agent=bo") == []
    assert results(seed.program, f"{USERS}?q=nobody") == []


def test_recall_event_contains_its_reasons(seed: SeedData) -> None:
    (row,) = results(seed.program, f"{EVENTS}?message_id={seed.sent['id']}")
    assert results(seed.program, f"{EVENTS}?message_id={seed.reply.id}") == [row]
    assert (row["agent"], row["user_id"], row["message_id"], row["reply_id"]) == (
        "ada",
        "maria",
        seed.sent["id"],
        str(seed.reply.id),
    )
    assert (row["query"], row["hit_count"], row["cut_count"], row["injected_count"]) == (
        seed.sent["content"],
        1,
        0,
        1,
    )
    full = seed.program.get(row["url"]).json()
    (hit,) = full["hits"]
    content = seed.sent["content"]
    assert (hit["content"], hit["score"], hit["probability"]) == (content, 2.5, 0.5)
    assert full["injected"] == [f"- user: {content}"]
    assert (full["cut"], full["facts"], full["prompt"]) == ([], [], None)


def test_instructions_of_an_agent_are_hidden_from_user_keys(seed: SeedData) -> None:
    readers = (
        (seed.program.with_key(user_id="maria"), 403),
        (seed.program.with_key(agent_id=seed.program.agent.id), 200),
    )
    for reader, status in readers:
        (row,) = [row for row in results(reader, EVENTS) if row["user_id"] == "maria"]
        assert reader.get(row["url"]).status_code == status


def test_recall_events_are_filtered(seed: SeedData) -> None:
    def count(query: str) -> int:
        return len(results(seed.program, f"{EVENTS}?{query}"))

    assert [count("agent=ada"), count("agent=bo"), count("user_id=maria"), count("user_id=x")] == [
        3,
        0,
        1,
        0,
    ]
    assert [count("abstained=false"), count("abstained=true")] == [3, 0]
    assert [count("since=2026-01-01T00:00:00Z"), count("until=2026-01-01T00:00:00Z")] == [3, 0]
    assert seed.program.get(f"{EVENTS}{seed.sent['id']}/").status_code == 404


def test_a_message_of_a_program_is_shown_when_a_fact_that_it_repeats_is_deleted(
    seed: SeedData,
) -> None:
    program, content = seed.program, '{"role": "tool", "name": "weather", "content": "rain"}'
    fact = program.post("/api/v1/facts/", {"agent": "ada", "user_id": "maria", "content": content})
    fact_id, message = fact.json()["memory_id"], json.loads(content) | {"content": "sun"}
    with tenant_scope(program.tenant.id):
        event = store_trace(
            program.agent.id, "maria", facts=[fact_of(fact_id, content)], prompt=prompt_of(message)
        )

    def message_of_prompt() -> Any:
        return program.get(f"{EVENTS}{event.pk}/").json()["prompt"]["sections"][0]["messages"][0]

    assert message_of_prompt() == message
    program.request("DELETE", f"/api/v1/facts/{fact_id}/")
    assert message_of_prompt() == {"role": "", "content": '[erased]sun"}'}


def test_window_contains_the_turns_of_the_prompt(seed: SeedData) -> None:
    window = seed.program.get(f"{WINDOWS}?agent=ada&user_id=maria").json()
    assert (window["agent"], window["agent_id"], window["user_id"]) == (
        "ada",
        str(seed.program.agent.id),
        "maria",
    )
    assert [(turn["role"], turn["content"], turn["name"]) for turn in window["turns"]] == [
        ("user", "What do I drink?", "Maria"),
        ("assistant", "Tea.", ""),
    ]
    assert window["turns"][0]["message_id"] == seed.sent["id"]
    assert window["turns"][0]["at"] == seed.sent["created_at"]
    one = seed.program.get(f"{WINDOWS}?agent=ada&user_id=maria&limit=1").json()
    assert [turn["content"] for turn in one["turns"]] == ["Tea."]


def test_window_is_cleared_and_the_transcript_kept(seed: SeedData) -> None:
    query = "agent=ada&user_id=maria"
    response = seed.program.request("DELETE", f"{WINDOWS}?{query}")
    assert (response.status_code, response.content) == (204, b"")
    assert seed.program.get(f"{WINDOWS}?{query}").json()["turns"] == []
    assert len(results(seed.program, f"{TRANSCRIPT}?{query}")) == 2
    with tenant_scope(seed.program.tenant.id):
        assert WindowClear.objects.count() == 1


def test_invalid_name_of_a_window_is_refused(program_b: Program) -> None:
    for query in ("", "?agent=ada", "?user_id=maria"):
        assert program_b.request("DELETE", WINDOWS + query).status_code == 400
    assert program_b.get(f"{WINDOWS}?agent=nobody&user_id=maria").status_code == 422


@pytest.mark.parametrize(
    ("bound", "threads", "users", "events"),
    [
        ({"user_id": "theo"}, ["old/thread?"], ["theo"], 0),
        ({"user_id": "vera"}, [], ["vera"], 2),
        ({"agent": "ada"}, ["t1", "old/thread?"], ["maria", "theo", "vera"], 3),
        ({"agent": "bo"}, ["t2"], ["maria"], 0),
    ],
)
def test_a_bound_key_reads_its_part(
    seed: SeedData, bound: dict[str, str], threads: list[str], users: list[str], events: int
) -> None:
    agents = {"ada": seed.program.agent, "bo": seed.other}
    options: dict[str, Any] = {"agent_id": agents[bound["agent"]].id} if "agent" in bound else bound
    narrow = seed.program.with_key(**options)
    assert [row["thread_id"] for row in results(narrow, CONVERSATIONS)] == threads
    assert [row["user_id"] for row in results(narrow, USERS)] == users
    assert len(results(narrow, EVENTS)) == events
    event = next(row for row in results(seed.program, EVENTS) if row["user_id"] == "maria")
    assert narrow.get(event["url"]).status_code == (200 if bound == {"agent": "ada"} else 404)
