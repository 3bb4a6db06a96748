"""LangGraph's checkpointer on Konstruct: LangGraph's conformance suite, graphs, and attacks."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from konstruct_client import Client, errors
from konstruct_client.langgraph import KonstructSaver
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import BASE_CAPABILITIES
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from memory.context import SessionStore
from tests.clients.python.conftest import bound_key
from tests.konstruct.conftest import Program
from tests.memory.context.checkpoints.attacks import msgpack_attacks

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def graph(saver: KonstructSaver) -> Any:
    def answer(state: MessagesState) -> Any:
        content = state["messages"][-1].content
        return {"messages": [("ai", interrupt("Well?") if content == "Ask me." else f"{content}!")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def invoke(saver: KonstructSaver, name: str, text: str) -> list[str]:
    state = graph(saver).invoke({"messages": [HumanMessage(text)]}, thread(name))
    return [message.content for message in state["messages"]]


def test_saver_passes_the_conformance_suite_of_langgraph(url: str, program_a: Program) -> None:
    with Client(url, program_a.key) as konstruct:

        @checkpointer_test(name="KonstructSaver")
        async def saver() -> AsyncGenerator[KonstructSaver, None]:
            yield KonstructSaver(konstruct)

        report = asyncio.run(validate(saver, capabilities=BASE_CAPABILITIES))
    base = [report.results[capability.value] for capability in BASE_CAPABILITIES]
    assert [case.failures for case in base] == [[]] * 5
    assert [case.passed for case in base] == [True] * 5


def test_graph_continues_with_a_session_of_the_server(url: str, program_a: Program) -> None:
    with Client(url, program_a.key) as konstruct:
        saver = KonstructSaver(konstruct)
        assert invoke(saver, "monday", "Hello") == ["Hello", "Hello!"]
        assert invoke(KonstructSaver(konstruct), "monday", "Again")[2:] == ["Again", "Again!"]
        session = konstruct.sessions.get("monday")
        assert [(message["role"], message["content"]) for message in session["messages"]] == [
            ("user", "Hello"), ("assistant", "Hello!"), ("user", "Again"), ("assistant", "Again!"),
        ]  # fmt: skip
        # A graph on the server continues a thread of this graph, and the other way round.
        assert invoke(SessionStore(program_a.tenant.id).checkpointer, "monday", "And")[-1] == "And!"
        assert len(invoke(saver, "monday", "Too")) == 8

        invoke(saver, "tuesday", "Ask me.")
        answered = asyncio.run(graph(saver).ainvoke(Command(resume="Fine."), thread("tuesday")))
        assert [message.content for message in answered["messages"]] == ["Ask me.", "Fine."]
        history = [
            checkpoint.config for checkpoint in graph(saver).get_state_history(thread("monday"))
        ]
        assert len(history) == konstruct.sessions.get("monday")["checkpoints"]
        saver.delete_thread("monday")
        saver.delete_thread("monday")
        assert invoke(saver, "monday", "Anew") == ["Anew", "Anew!"]


def test_checkpoint_with_code_is_refused(url: str, program_a: Program, tmp_path: Path) -> None:
    class Forging:
        type_, data = "msgpack", b""

        def dumps_typed(self, value: Any) -> tuple[str, bytes]:
            return self.type_, self.data

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return data

    with Client(url, program_a.key) as konstruct:
        forging = Forging()
        saver = KonstructSaver(konstruct, serde=forging)
        attacks = [("msgpack", data) for _, data in msgpack_attacks(tmp_path / "made")]
        for forging.type_, forging.data in [*attacks, ("pickle", b"cos\n"), ("empty", b"")]:
            with pytest.raises(errors.UnreadableSession, match="a checkpoint's value"):
                invoke(saver, "t", "Hello")
        assert [*konstruct.sessions.list()] == []
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"checkpoint": {"v": 4}}, "channel_versions"),
            ({"checkpoint": state(ts="yesterday")}, "ts"),
            ({"checkpoint": state(ts="2026-03-14T09:30:00")}, "time zone"),
            ({"checkpoint": state(channel_versions={"a\\x": "1"})}, "backslashes"),
            ({"checkpoint": state(channel_versions={"a": {}})}, "channel_versions"),
            ({"metadata": {"a": ["\x00"]}}, "NUL"),
            ({"metadata": {"a": "\ud800"}}, "Unicode"),
            ({"metadata": []}, "metadata"),
            ({"values": [{"channel": "a", "type": "null", "value": "?"}]}, "base64"),
        ]
        right = {"thread_id": "t", "checkpoint": state(), "values": [], "metadata": {}}
        for change, error in wrong:
            with pytest.raises(errors.InvalidFields, match=error):
                konstruct.checkpoints.save(**{**right, **change})  # type: ignore[arg-type]
        unknown = [{"channel": "b", "type": "null", "value": ""}]
        with pytest.raises(errors.Unprocessable, match="no version in channel_versions: b"):
            konstruct.checkpoints.save(**{**right, "values": unknown})  # type: ignore[arg-type]
        assert [*konstruct.sessions.list()] == []
    assert not (tmp_path / "made").exists()


def test_long_history_is_read_completely_before_and_after_next(
    url: str, program_a: Program
) -> None:
    with Client(url, program_a.key) as konstruct:
        saver = KonstructSaver(konstruct)
        for number in range(12):
            values = {"checkpoint": state(id=f"1f{number:x}"), "metadata": {"step": number}}
            value = base64.b64encode(bytes(800_000)).decode()
            konstruct.checkpoints.save(
                thread_id="large",
                values=[{"channel": "a", "type": "bytes", "value": value}],
                **values,  # type: ignore[arg-type]
            )
        pages = [*konstruct.checkpoints.list(thread_id="large").pages()]
        assert [len(checkpoint.results) for checkpoint in pages] == [4, 4, 4]
        steps = [checkpoint.metadata["step"] for checkpoint in saver.list(thread("large"))]
        assert steps == [*range(11, -1, -1)]
        assert [
            checkpoint.metadata["step"] for checkpoint in saver.list(thread("large"), limit=5)
        ] == steps[:5]

        # As an older server answers: without `next`, and with at most ten checkpoints.
        def earlier(request: httpx.Request) -> httpx.Response:
            parameters = dict(request.url.params)
            assert "cursor" not in parameters
            found = konstruct.checkpoints.list(**{"limit": 10, **parameters})
            return httpx.Response(200, json={"results": next(found.pages()).results})

        with httpx.Client(transport=httpx.MockTransport(earlier)) as http:
            before = KonstructSaver(Client("http://earlier", "ks_", http=http))
            assert [
                checkpoint.metadata["step"] for checkpoint in before.list(thread("large"))
            ] == steps


def state(**fields: Any) -> dict[str, Any]:
    state = {"v": 4, "id": "1f0", "ts": "2026-03-14T09:30:00Z", "channel_versions": {"a": "1"}}
    return {**state, "versions_seen": {}, **fields}


def test_tenants_and_users_are_separate(url: str, program_a: Program, program_b: Program) -> None:
    with (
        Client(url, program_a.key) as a,
        Client(url, program_b.key) as b,
        Client(url, bound_key(program_a, "maria")) as marias,
    ):
        saver_a, saver_b = KonstructSaver(a), KonstructSaver(b)
        for saver, text in ((saver_a, "Of a."), (saver_b, "Of b.")):
            assert invoke(saver, "shared", text) == [text, f"{text}!"]
        (of_b, *_) = saver_b.list(thread("shared"))
        assert saver_a.get_tuple(of_b.config) is None
        assert {
            checkpoint.config["configurable"]["thread_id"] for checkpoint in saver_a.list(None)
        } == {"shared"}
        saver_a.delete_thread("shared")
        assert len([*saver_b.list(None)]) == 3
        for use in (KonstructSaver(marias).get_tuple, KonstructSaver(marias).delete_thread):
            with pytest.raises(errors.Forbidden):
                use(thread("shared") if use.__name__ == "get_tuple" else "shared")
