"""A checkpoint is data: values of graphs are read back unchanged, and no code runs."""

import pickle
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from langchain_core import messages
from langchain_core.documents import Document
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt, Send, interrupt
from psycopg.types.json import Jsonb
from pydantic import BaseModel

from memory.context import SessionStore
from memory.context.checkpoints import StrictSerializer, strict_serializer
from memory.exceptions import CheckpointRefused
from tenants.models import Tenant
from tests.memory.context.checkpoints.attacks import json_attacks, msgpack_attacks, packed
from tests.memory.context.checkpoints.stored import tenant_transaction

MISSING_PATH = Path("/nowhere")
THREAD: Any = {"configurable": {"thread_id": "thread"}}


class Mood(Enum):
    """A value class of a graph."""

    GOOD = "good"


@dataclass
class Cart:
    """An object class of a graph."""

    items: list[str]
    mood: Mood = Mood.GOOD


class Order(BaseModel):
    """A model class of a graph."""

    number: int
    carts: list[Cart]


STORED_VALUES = [
    None,
    b"bytes",
    bytearray(b"bytes"),
    "text",
    {"a": [1, 2.5, True, None], 3: "three"},
    datetime(2026, 3, 14, 9, 30, tzinfo=UTC),
    datetime(2026, 3, 14, 9, 30, tzinfo=ZoneInfo("Europe/Lisbon")),
    date(2026, 3, 14),
    time(9, 30, tzinfo=UTC),
    timedelta(days=1, microseconds=5),
    UUID(int=5),
    Decimal("1.50"),
    {1, 2},
    frozenset({"a"}),
    deque([1, 2]),
    ip_address("10.0.0.1"),
    Path("/a/b"),
    messages.HumanMessage("Hello", name="Maria", id="1"),
    [messages.AIMessage("", tool_calls=[{"name": "look", "args": {"a": 1}, "id": "1"}])],
    messages.SystemMessage([{"type": "text", "text": "Hi"}]),
    messages.ToolMessage("found", tool_call_id="1", artifact={"rows": [1]}),
    messages.AIMessageChunk("a"),
    messages.RemoveMessage(id="1"),
    Document("page", metadata={"page": 1}),
    Send("node", {"messages": [messages.HumanMessage("Hello")]}),
    Command(resume={"a": 1}, goto="node"),
    (Interrupt(value={"ask": "?"}, id="1"),),
]


@pytest.mark.parametrize("value", STORED_VALUES, ids=repr)
def test_values_of_graphs_round_trip(value: Any) -> None:
    serializer = StrictSerializer()
    back = serializer.loads_typed(serializer.dumps_typed(value))
    assert back == (list(value) if isinstance(value, tuple) else value)
    inner = serializer.loads_typed(serializer.dumps_typed({"in": [value]}))["in"][0]
    assert type(inner) is type(back) or isinstance(value, bytearray)


def test_the_attacks_run_code_with_langgraphs_default(tmp_path: Path) -> None:
    """Otherwise the tests below would prove nothing."""
    permissive = JsonPlusSerializer(allowed_msgpack_modules=True)
    ran = []
    for name, value in msgpack_attacks(tmp_path / "made"):
        with suppress(ValueError):
            permissive.loads_typed(("msgpack", value))
        if (tmp_path / "made").exists():
            (tmp_path / "made").rmdir()
            ran.append(name)
    assert len(ran) >= 9, ran


@pytest.mark.parametrize("attack", [name for name, _ in msgpack_attacks(MISSING_PATH)])
def test_an_object_of_another_class_is_refused_without_code(tmp_path: Path, attack: str) -> None:
    value = dict(msgpack_attacks(tmp_path / "made"))[attack]
    with pytest.raises(CheckpointRefused, match=r"a checkpoint's value (holds|is not readable)"):
        StrictSerializer().loads_typed(("msgpack", value))
    assert not (tmp_path / "made").exists()


class Runs:
    """Creates a folder when it is unpickled."""

    def __reduce__(self) -> Any:
        import os

        return os.mkdir, (str(MISSING_PATH),)


@pytest.mark.parametrize("encoding", ["pickle", "msgpack+aes", "yaml", "", "empty", "MSGPACK"])
def test_no_other_encoding_is_read(encoding: str) -> None:
    with pytest.raises(CheckpointRefused, match=f"has the encoding '{encoding}'".replace("+", ".")):
        StrictSerializer().loads_typed((encoding, pickle.dumps(Runs())))


@pytest.mark.parametrize("value", [Mood.GOOD, Cart(["tea"]), Order(number=1, carts=[]), [Cart([])]])
def test_unknown_class_is_refused_on_write_with_a_remedy(value: Any) -> None:
    with pytest.raises(CheckpointRefused, match=rf"{__name__}\.\w+, which is not .*CHECKPOINT_T"):
        StrictSerializer().dumps_typed(value)
    with pytest.raises(CheckpointRefused, match="keep plain data"):
        StrictSerializer().dumps_typed(object())


def test_configured_classes_are_stored(settings: Any) -> None:
    settings.CHECKPOINT_TYPES = [f"{__name__}.{name}" for name in ("Mood", "Cart", "Order")]
    serializer = StrictSerializer()
    for value in (Mood.GOOD, Cart(["tea"]), Order(number=1, carts=[Cart(["tea"])])):
        assert serializer.loads_typed(serializer.dumps_typed(value)) == value
    with pytest.raises(CheckpointRefused):
        serializer.loads_typed(("msgpack", packed(0, [__name__, "Runs", 1])))


def test_langgraphs_own_serializers_are_made_strict(tmp_path: Path) -> None:
    class NoCipher:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "none", plaintext[::-1]

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return ciphertext[::-1]

    attack = dict(msgpack_attacks(tmp_path / "made"))["call-0"]
    encrypted = EncryptedSerializer(NoCipher(), JsonPlusSerializer(allowed_msgpack_modules=True))
    for serde in (
        JsonPlusSerializer(),
        JsonPlusSerializer(allowed_msgpack_modules=True, pickle_fallback=True),
        encrypted,
    ):
        with pytest.raises(CheckpointRefused):
            strict_serializer(serde).loads_typed(("msgpack", attack))
    with pytest.raises(CheckpointRefused):
        strict_serializer(encrypted).loads_typed(("msgpack+none", attack[::-1]))
    assert not (tmp_path / "made").exists()
    assert strict_serializer(encrypted).loads_typed(
        strict_serializer(encrypted).dumps_typed({1})
    ) == {1}
    named = strict_serializer(JsonPlusSerializer(allowed_msgpack_modules=[Mood]))
    assert named.loads_typed(named.dumps_typed(Mood.GOOD)) is Mood.GOOD


# --- In a graph -----------------------------------------------------------------------------------


class State(MessagesState):
    """The state of a shop's graph."""

    cart: Cart
    orders: Annotated[list[Order], "all of them"]


def shop(tenant: Tenant) -> Any:
    def serve(state: State) -> dict[str, Any]:
        assert type(state["cart"]) is Cart
        answer = interrupt({"sure": state["cart"].items})
        return {
            "messages": [messages.AIMessage(f"You said {answer}.")],
            "orders": [Order(number=1, carts=[state["cart"]])],
        }

    return (
        StateGraph(State)
        .add_node("serve", serve)
        .add_edge(START, "serve")
        .compile(checkpointer=SessionStore(tenant.id).checkpointer)
    )


@pytest.mark.django_db(transaction=True)
def test_the_classes_of_a_graphs_state_are_its_own_to_keep(tenant_a: Tenant) -> None:
    shop(tenant_a).invoke(
        {"messages": [messages.HumanMessage("Tea")], "cart": Cart(["tea"])}, THREAD
    )
    state = shop(tenant_a).invoke(Command(resume="yes"), THREAD)
    assert state["messages"][-1].content == "You said yes."
    kept = shop(tenant_a).get_state(THREAD).values
    assert kept["orders"] == [Order(number=1, carts=[Cart(["tea"])])]
    # A program without the shop's classes can still read the messages.
    assert [
        message["content"] for message in SessionStore(tenant_a.id).get_session_messages("thread")
    ] == ["Tea", "You said yes."]
    with pytest.raises(CheckpointRefused, match=r"Mood, which is not allowed"):
        SessionStore(tenant_a.id).checkpointer.get_tuple(THREAD)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("table", ["checkpoint_blobs", "checkpoint_writes"])
def test_row_with_code_executes_nothing(tenant_a: Tenant, tmp_path: Path, table: str) -> None:
    attack = dict(msgpack_attacks(tmp_path / "made"))["in-a-list"]
    store = SessionStore(tenant_a.id)
    graph = (
        StateGraph(MessagesState)
        .add_node("wait", lambda state: {"messages": [messages.AIMessage(interrupt("?"))]})
        .add_edge(START, "wait")
        .compile(checkpointer=store.checkpointer)
    )
    graph.invoke({"messages": [messages.HumanMessage("Hello")]}, THREAD)
    with tenant_transaction(tenant_a.id) as lent:
        changed = lent.execute(f"UPDATE {table} SET type = 'msgpack', blob = %s", (attack,))
        assert changed.rowcount > 0
    with pytest.raises(CheckpointRefused):
        graph.get_state(THREAD)
    with pytest.raises(CheckpointRefused):
        graph.invoke(Command(resume="yes"), THREAD)
    with pytest.raises(CheckpointRefused):
        list(store.checkpointer.list(None))
    if table == "checkpoint_blobs":
        with pytest.raises(CheckpointRefused):
            store.get_session_messages("thread")
    assert not (tmp_path / "made").exists()


@pytest.mark.django_db(transaction=True)
def test_json_columns_of_a_checkpoint_are_plain_json(tenant_a: Tenant, tmp_path: Path) -> None:
    attack = {
        "lc": 2, "type": "constructor", "id": ["os", "mkdir"], "args": [str(tmp_path / "made")]
    }  # fmt: skip
    store = SessionStore(tenant_a.id)
    shop(tenant_a).invoke({"messages": [messages.HumanMessage("Tea")], "cart": Cart([])}, THREAD)
    with tenant_transaction(tenant_a.id) as lent:
        lent.execute(
            "UPDATE checkpoints SET metadata = metadata || %(a)s, checkpoint = jsonb_set("
            "checkpoint, '{channel_values,messages}', %(b)s)",
            {"a": Jsonb({"evil": attack}), "b": Jsonb([attack])},
        )
    found = shop(tenant_a).get_state(THREAD)
    assert found.metadata["evil"] == attack
    assert len(store.get_session_messages("thread")) == 1
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("attack", [name for name, _ in json_attacks(MISSING_PATH)])
def test_json_calls_no_constructor(tmp_path: Path, attack: str) -> None:
    value = dict(json_attacks(tmp_path / "made"))[attack]
    with pytest.raises(CheckpointRefused, match="holds the constructor"):
        StrictSerializer().loads_typed(("json", value))
    assert not (tmp_path / "made").exists()
    assert StrictSerializer().loads_typed(("json", b'{"lc": 3, "a": [1]}')) == {"lc": 3, "a": [1]}
