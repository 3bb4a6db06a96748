"""Items of conversations by REST: stored unchanged, ordered, removed at once, remembered."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connections

from konstruct.api.resources.memory import conversations
from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

ITEMS = "/api/v1/conversations/items/"
# Values that JSON, jsonb or UTF-8 would not return unchanged.
ODD_ITEMS: list[dict[str, Any]] = [
    {"z": 1, "a": {"": [None, True, 1.0, 10**30, "é😀"]}},
    {"type": "function_call_output", "output": "NUL \x00 and half \ud83d of a pair, \\u0000"},
    {"text": "x" * 1_000_000},
    {},
]


def place(program: Program, user_id: str = "maria", thread_id: str = "monday") -> dict[str, str]:
    return {"agent": program.agent.name, "user_id": user_id, "thread_id": thread_id}


def add(program: Program, *items: dict[str, Any], key: str = "", **scope: str) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    body = {**place(program, **scope), "items": list(items)}
    return program.post(ITEMS, body, headers=headers)


def rows(program: Program, **scope: str) -> list[dict[str, Any]]:
    """Return the stored items, the newest first, page by page."""
    address: str | None = f"{ITEMS}?{urlencode({**place(program, **scope), 'limit': '3'})}"
    found: list[dict[str, Any]] = []
    while address:
        response = program.get(address)
        assert response.status_code == 200, response.content
        found += response.json()["results"]
        address = response.json()["next"]
    return found


def kept(program: Program, **scope: str) -> list[Any]:
    return [row["item"] for row in reversed(rows(program, **scope))]


def message_texts(program: Program) -> list[str]:
    with tenant_scope(program.tenant.id):
        return list(Message.objects.order_by("number").values_list("content", flat=True))


def test_any_json_is_returned_equal_and_in_order(program_a: Program) -> None:
    assert add(program_a, *({"item": item} for item in ODD_ITEMS)).status_code == 204
    assert add(program_a, {"item": {"last": 1}}, thread_id="other").status_code == 204
    assert add(program_a, {"item": {"last": 2}}).status_code == 204
    found = kept(program_a)
    assert found == [*ODD_ITEMS, {"last": 2}]
    assert list(found[0]) == ["z", "a"]
    assert message_texts(program_a) == []


def test_page_has_at_most_its_bytes_and_at_least_one_item(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MAX_BYTES", 1_000)
    sizes = (300, 2_000, 400, 400, 10, 10, 10)
    add(program_a, *({"item": {"text": "x" * size}} for size in sizes))
    address = f"{ITEMS}?{urlencode({**place(program_a), 'limit': '3'})}"
    found = []
    while address:
        page = program_a.get(address).json()
        found.append([len(row["item"]["text"]) for row in page["results"]])
        back, address = page["previous"], page["next"]
    assert found == [[10, 10, 10], [400, 400], [2_000], [300]]
    assert len(program_a.get(back).json()["results"]) == 1


def test_item_is_remembered_if_the_transcript_supports_it(program_a: Program) -> None:
    words = ["Porto it is.", "\x00", "x" * 40_000, "\ud83d", " "]
    spoken = [
        {"item": {"n": n}, "said": {"role": "user", "content": w}} for n, w in enumerate(words)
    ]
    assert add(program_a, *spoken, {"item": {"n": 5}}).status_code == 204
    found = rows(program_a)
    assert [row["item"]["n"] for row in found] == [5, 4, 3, 2, 1, 0]
    assert message_texts(program_a) == ["Porto it is."]
    with tenant_scope(program_a.tenant.id):
        assert str(Message.objects.get().pk) == found[-1]["message_id"]
    assert [row["message_id"] for row in found[:-1]] == [None] * 5


def test_repeated_request_adds_and_removes_nothing(program_a: Program) -> None:
    for number in (1, 1, 2):
        words = {"said": {"role": "user", "content": "Yes."}}
        assert add(program_a, {"item": {}, **words}, key=f"k{number}").status_code == 204
    newest, oldest = rows(program_a)
    for key, status in (("p", 204), ("p", 204), ("q", 404)):
        address = f"{ITEMS}{newest['id']}/"
        answer = program_a.request("DELETE", address, headers={"Idempotency-Key": key})
        assert answer.status_code == status
    assert [row["id"] for row in rows(program_a)] == [oldest["id"]]
    # The same message twice in a row: an agent that removes and adds again does so.
    assert message_texts(program_a) == ["Yes."]


def test_cleared_conversation_is_empty_and_keeps_its_transcript(program_a: Program) -> None:
    for thread_id in ("monday", "other"):
        words = {"said": {"role": "assistant", "content": f"Of {thread_id}."}}
        add(program_a, {"item": {"of": thread_id}, **words}, thread_id=thread_id)
    address = f"{ITEMS}?{urlencode(place(program_a))}"
    assert program_a.request("DELETE", address).status_code == 204
    assert (kept(program_a), kept(program_a, thread_id="other")) == ([], [{"of": "other"}])
    assert message_texts(program_a) == ["Of monday.", "Of other."]


def test_a_bound_key_and_another_tenant_have_their_own(
    program_a: Program, program_b: Program
) -> None:
    marias = program_a.with_key(user_id="maria")
    add(program_b, {"item": {"of": "b"}})
    add(marias, {"item": {"of": "maria"}})
    add(program_a, {"item": {"of": "bea"}}, user_id="bea")
    assert kept(marias) == kept(program_a) == [{"of": "maria"}]
    assert kept(program_b) == [{"of": "b"}]
    assert add(marias, {"item": {}}, user_id="bea").status_code == 403
    beas = f"{ITEMS}?{urlencode(place(program_a, user_id='bea'))}"
    assert [marias.request(method, beas).status_code for method in ("GET", "DELETE")] == [403, 403]
    others = (rows(program_a, user_id="bea"), rows(program_b))
    for (other,) in others:
        assert marias.request("DELETE", f"{ITEMS}{other['id']}/").status_code == 404
    assert (rows(program_a, user_id="bea"), rows(program_b)) == others


@pytest.mark.parametrize(
    "item",
    [
        {"item": []},
        {"item": "text"},
        {"item": {}, "said": {"role": "user"}},
        {"item": {}, "said": {"content": "words"}},
        {"item": {}, "said": {"role": "system", "content": "words"}},
        {"item": {}, "said": {"role": "user", "content": 1}},
        {"said": {"role": "user", "content": "words"}},
        {"item": {}, "more": 1},
    ],
)
def test_invalid_item_is_refused_and_nothing_is_stored(
    program_a: Program, item: dict[str, Any]
) -> None:
    response = add(program_a, {"item": {}}, item)
    assert (response.status_code, response.json()["type"][-14:]) == (400, "invalid-fields")
    assert rows(program_a) == []


def test_number_without_an_exact_json_form_is_refused(program_a: Program) -> None:
    body = {**place(program_a), "items": [{"item": {"n": [1e300]}}]}
    data = json.dumps(body).replace("1e+300", "1e400").encode()
    response = program_a.request("POST", ITEMS, data=data, content_type="application/json")
    assert (response.status_code, rows(program_a)) == (400, [])
    assert "1e400" in response.json()["detail"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_lose_no_item_and_keep_their_order(program_a: Program) -> None:
    def write(writer: int) -> None:
        for turn in range(3):
            added = ({"item": {"by": writer, "n": [turn, n]}} for n in range(4))
            assert add(program_a, *added).status_code == 204
        connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    found = kept(program_a, thread_id="monday")
    requests = [found[start : start + 4] for start in range(0, 48, 4)]
    assert [[item["n"][1] for item in request] for request in requests] == [[0, 1, 2, 3]] * 12
    assert all(len({item["by"] for item in request}) == 1 for request in requests)
