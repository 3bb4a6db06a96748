"""LangGraph's store on Konstruct: the behaviour of its own stores, and isolation."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from konstruct_client import Client, errors
from konstruct_client.langgraph import KonstructStore
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from tests.clients.python.conftest import bound_key
from tests.konstruct.conftest import Program

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

DOCS = {
    ("docs", "a"): {
        "1": {"title": "Tea", "score": 3, "tags": ["x"], "inner": {"deep": 1}},
        "2": {"title": "Coffee", "score": 7, "color": "red"},
    },
    ("docs", "b", "c"): {"1": {"title": "Cocoa", "score": 4.5, "color": None}},
    ("docsy",): {"1": {"title": "Milk", "score": 7, "color": "red"}},
}
FILTERS: list[dict[str, Any]] = [
    {"title": "Tea"},
    {"color": "red", "score": 7},
    {"score": {"$gt": 3, "$lte": 4.5}},
    {"score": {"$ne": 7}},
    {"color": {"$ne": "red"}},
    {"inner": {"deep": 1}},
    {"tags": ["x"]},
    {"tags": "x"},
    {"color": None},
]
LISTED: list[dict[str, Any]] = [
    {},
    {"prefix": ("docs",)},
    {"prefix": ("docs", "*", "c")},
    {"suffix": ("c",)},
    {"prefix": ("docs",), "max_depth": 2},
    {"limit": 1, "offset": 1},
]


def fill(store: Any) -> None:
    for namespace, items in DOCS.items():
        for key, value in items.items():
            store.put(namespace, key, value)


def places(found: list[Any]) -> set[tuple[Any, ...]]:
    return {(item.namespace, item.key, json.dumps(item.value, sort_keys=True)) for item in found}


def test_store_finds_the_same_items_as_the_store_of_langgraph(url: str, program_a: Program) -> None:
    with Client(url, program_a.key) as konstruct:
        store, langgraph_store = KonstructStore(konstruct, agent="ada"), InMemoryStore()
        for filled in (store, langgraph_store):
            fill(filled)
        for prefix in ((), ("docs",), ("docs", "a"), ("nothing",)):
            assert places(store.search(prefix)) == places(langgraph_store.search(prefix))
        for filter_ in FILTERS:
            found = store.search(("docs",), filter=filter_)
            assert places(found) == places(langgraph_store.search(("docs",), filter=filter_)), (
                filter_
            )
        for filter_ in LISTED:
            assert store.list_namespaces(**filter_) == langgraph_store.list_namespaces(**filter_), (
                filter_
            )
        paged = [store.search(("docs",), limit=2, offset=offset) for offset in (0, 2)]
        assert [len(page) for page in paged] == [2, 1]
        assert places(paged[0] + paged[1]) == places(langgraph_store.search(("docs",)))


def test_an_item_is_changed_and_deleted_in_its_place(url: str, program_a: Program) -> None:
    with Client(url, program_a.key) as konstruct:
        store = KonstructStore(konstruct, agent="ada", user_id=lambda namespace: namespace[1])
        with pytest.raises(ValueError, match=r"no user in the namespace \('memories',\)"):
            store.put(("memories",), "food", {})
        place = ("memories", "maria")
        store.put(place, "food", {"text": "I love pizza.", "old": 1})
        was = store.get(place, "food")
        store.put(place, "food", {"text": "I love sushi."})
        store.put(place, "copy", {"text": "I love sushi."})
        item = store.get(place, "food")
        assert was
        assert item
        assert (item.value, item.key) == ({"text": "I love sushi."}, "food")
        assert (item.created_at, item.updated_at > was.updated_at) == (was.created_at, True)

        store.put(place, "work", {"text": "I repair clocks.", "note": "sushi"}, index=["text"])
        best, *_ = store.search(place, query="What is her job?", limit=1)
        assert (best.key, best.score and best.score > 0.1) == ("work", True)
        (fact,) = konstruct.facts.list(user_id="maria", filters={"store.key": "work"})
        assert (fact["user_id"], fact["content"]) == (
            "maria", "I repair clocks. (memories.maria/work)",
        )  # fmt: skip
        (food,) = konstruct.facts.list(filters={"store.key": "food"})
        assert len([*konstruct.facts.history(food["memory_id"])]) == 2

        results = store.batch(
            [
                PutOp(place, "food", None),
                GetOp(place, "food"),
                PutOp(place, "new", {"n": 1}),
                PutOp(place, "new", {"n": 2}),
                SearchOp(place, limit=2),
                ListNamespacesOp((MatchCondition("prefix", ("memories",)),)),
            ]
        )
        assert results[1] == item
        assert [results[0], results[2], len(results[4]), results[5]] == [None, None, 2, [place]]
        assert store.get(place, "food") is None
        found = asyncio.run(store.aget(place, "new"))
        assert found
        assert found.value == {"n": 2}
        store.delete(place, "never there")
        for wrong in ("memories.maria", ""):
            with pytest.raises(InvalidNamespaceError):
                store.batch([PutOp(place, "new", {"n": 3}), PutOp((wrong,), "new", {"n": 4})])
        assert store.get(place, "new") == found
        with pytest.raises(errors.InvalidFields, match="more than 256 values"):
            store.put(place, "large", {str(number): number for number in range(300)})


def test_parallel_puts_of_a_key_are_one_item(url: str, program_a: Program) -> None:
    with Client(url, program_a.key) as konstruct, ThreadPoolExecutor(4) as threads:
        store = KonstructStore(konstruct, agent="ada", user_id="maria")
        places = [(("m",), "a.b"), (("m",), "a"), (("m", "x"), "a")]
        puts = [(place, n) for place in places for n in range(6)]
        list(threads.map(lambda put: store.put(*put[0], {"n": put[1], str(put[1]): 1}), puts))
        items = store.search(("m",))
        assert sorted((item.namespace, item.key) for item in items) == sorted(places)
        assert [item.value for item in items] == [
            {"n": item.value["n"], str(item.value["n"]): 1} for item in items
        ]


def test_tenants_and_users_are_separate(url: str, program_a: Program, program_b: Program) -> None:
    with (
        Client(url, program_a.key) as a,
        Client(url, program_b.key) as b,
        Client(url, bound_key(program_a, "maria")) as marias,
    ):
        stores = [
            KonstructStore(key, agent="ada", user_id=lambda namespace: namespace[1])
            for key in (a, b, marias)
        ]
        for store, text in zip(stores, ("of a", "of b"), strict=False):
            store.put(("m", "maria"), "k", {"text": text})
            store.put(("m", "bea"), "k", {"text": f"{text}, of bea"})
        stores[2].put(("m", "maria"), "own", {"text": "own"})
        values = [{item.value["text"] for item in store.search(("m", "maria"))} for store in stores]
        assert values == [{"of a", "own"}, {"of b"}, {"of a", "own"}]
        assert stores[2].list_namespaces() == [("m", "maria")]
        for store in stores[:2]:
            store.delete(("m", "maria"), "k")
        assert [item.key for item in stores[2].search(("m", "maria"))] == ["own"]
        for use in (stores[2].get, stores[2].delete):
            with pytest.raises(errors.OutsideOfKey):
                use(("m", "bea"), "k")
