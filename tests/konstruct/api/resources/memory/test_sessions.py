"""Sessions of graphs by REST: listed, read and cleared by their tenant only."""

from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote, urlencode

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph

from memory.context import SessionStore
from tenants.audit import access_log
from tests import database
from tests.konstruct.api.seed_data import talk
from tests.konstruct.conftest import Program
from tests.memory.context.checkpoints.attacks import msgpack_attacks
from tests.memory.context.checkpoints.stored import tenant_transaction

# LangGraph has its own connections, which do not see uncommitted rows of a test.
pytestmark = pytest.mark.django_db(transaction=True)

SESSIONS = "/api/v1/sessions/"


@pytest.fixture(autouse=True)
def without_earlier_sessions(transactional_db: None) -> None:
    """Remove rows that LangGraph's connections committed in earlier tests."""
    database.remove_committed_rows()


class Odd(TypedDict):
    """The state of a graph whose messages are not messages."""

    messages: str


def path_of(thread_id: str, **query: Any) -> str:
    return f"{SESSIONS}{quote(thread_id)}/" + (f"?{urlencode(query)}" if query else "")


def listed(program: Program, **query: Any) -> list[str]:
    response = program.get(f"{SESSIONS}?{urlencode(query)}")
    assert response.status_code == 200
    return [session["thread_id"] for session in response.json()["results"]]


def test_sessions_are_listed_by_their_last_use(program_a: Program) -> None:
    assert listed(program_a) == []
    for thread_id in ("one", "two", "one"):
        talk(program_a, thread_id, HumanMessage("Hello"))
    (one, two) = program_a.get(SESSIONS).json()["results"]
    assert (one["thread_id"], one["checkpoints"]) == ("one", 6)
    assert (two["thread_id"], two["checkpoints"]) == ("two", 3)
    assert one["updated_at"] > two["updated_at"]
    assert one["url"] == "http://localhost/api/v1/sessions/one/"


def test_pages_follow_one_another_while_threads_are_used(program_a: Program) -> None:
    for number in range(5):
        talk(program_a, f"thread-{number}", HumanMessage("Hello"))
    first = program_a.get(f"{SESSIONS}?limit=2").json()
    assert [session["thread_id"] for session in first["results"]] == ["thread-4", "thread-3"]
    talk(program_a, "thread-4", HumanMessage("Again"))
    talk(program_a, "new", HumanMessage("Hello"))
    second = program_a.get(first["next"].removeprefix("http://localhost")).json()
    assert [session["thread_id"] for session in second["results"]] == ["thread-2", "thread-1"]
    last = program_a.get(second["next"].removeprefix("http://localhost")).json()
    assert [session["thread_id"] for session in last["results"]] == ["thread-0"]
    assert last["next"] is None
    back = program_a.get(last["previous"].removeprefix("http://localhost")).json()
    assert back["results"] == second["results"]
    newer = program_a.get(back["previous"].removeprefix("http://localhost")).json()
    assert [session["thread_id"] for session in newer["results"]] == ["thread-4", "thread-3"]


def test_session_is_returned_with_its_newest_messages(program_a: Program) -> None:
    talk(
        program_a,
        "thread",
        HumanMessage("Look it up", name="Maria"),
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "call-1"}]),
        ToolMessage("found", tool_call_id="call-1"),
        AIMessage("It is a cat.", id="m4"),
    )
    session = program_a.get(path_of("thread")).json()
    assert (session["thread_id"], session["checkpoints"]) == ("thread", 3)
    assert [(message["role"], message["content"]) for message in session["messages"]] == [
        ("user", "Look it up"),
        ("assistant", ""),
        ("tool", "found"),
        ("assistant", "It is a cat."),
    ]
    assert session["messages"][0]["name"] == "Maria"
    assert session["messages"][2]["tool_call_id"] == "call-1"
    assert session["messages"][3] == {"role": "assistant", "content": "It is a cat.", "id": "m4"}
    newest = program_a.get(path_of("thread", limit=1)).json()["messages"]
    assert [message["content"] for message in newest] == ["It is a cat."]
    assert program_a.get(path_of("thread", limit=0)).status_code == 400
    assert program_a.get(path_of("thread", top=1)).status_code == 400


def test_only_the_cleared_session_is_removed(program_a: Program) -> None:
    talk(program_a, "thread", HumanMessage("Hello"))
    talk(program_a, "other", HumanMessage("Hello"))
    assert program_a.request("DELETE", path_of("thread")).status_code == 204
    assert listed(program_a) == ["other"]
    for response in (
        program_a.get(path_of("thread")),
        program_a.request("DELETE", path_of("thread")),
        program_a.get(path_of("x" * 2000)),
        program_a.get(path_of("a\0b")),
    ):
        assert response.status_code == 404
    assert listed(program_a) == ["other"]


def test_session_is_kept_if_its_clearing_cannot_be_recorded(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(program_a, "thread", HumanMessage("Hello"))
    refused = access_log._INSERT.replace("%(action)s", "1 / 0")
    with monkeypatch.context() as patch:
        patch.setattr(access_log, "_INSERT", refused)
        assert program_a.request("DELETE", path_of("thread")).status_code == 500
    assert listed(program_a) == ["thread"]


def test_unreadable_state_is_reported_as_unreadable(program_a: Program) -> None:
    graph = (
        StateGraph(Odd)
        .add_node("end", lambda state: {"messages": "none"})
        .add_edge(START, "end")
        .compile(checkpointer=SessionStore(program_a.tenant.id).checkpointer)
    )
    graph.invoke({"messages": ""}, {"configurable": {"thread_id": "thread"}})
    response = program_a.get(path_of("thread"))
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "thread_id"
    assert "keeps a str under 'messages'" in response.json()["detail"]


def test_session_with_code_is_returned_as_unreadable(program_a: Program, tmp_path: Path) -> None:
    talk(program_a, "thread", HumanMessage("Hello"))
    attack = dict(msgpack_attacks(tmp_path / "made"))["in-a-list"]
    with tenant_transaction(program_a.tenant.id) as lent:
        lent.execute("UPDATE checkpoint_blobs SET type = 'msgpack', blob = %s", (attack,))
    response = program_a.get(path_of("thread"))
    assert response.status_code == 422
    assert response.json()["type"].endswith("unreadable-session")
    assert "os.mkdir, which is not allowed there" in response.json()["detail"]
    assert not (tmp_path / "made").exists()
