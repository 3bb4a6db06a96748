"""Pages of checkpoints by REST: limited by their size, and complete for earlier clients."""

import base64
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from konstruct.api.resources.memory import checkpoints
from memory.context import SessionStore
from tests.konstruct.conftest import Program

pytestmark = pytest.mark.django_db(transaction=True)

CHECKPOINTS = "/api/v1/checkpoints/"
LARGE = 2_000


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PAGE_BYTES", 3 * LARGE)
    monkeypatch.setattr(checkpoints, "MAX_BYTES", 6 * LARGE)


def save(program: Program, name: str, size: int = LARGE, thread: str = "t", **channels: str) -> str:
    """Save a checkpoint with a value of the given size in bytes, which may be compressible."""
    value = {"channel": "a", "type": "bytes", "value": base64.b64encode(bytes(size)).decode()}
    state = {"v": 4, "id": name, "ts": "2026-03-14T09:30:00Z", "versions_seen": {}}
    state["channel_versions"] = {"a": name, **channels}
    body = {"thread_id": thread, "checkpoint": state, "values": [value], "metadata": {"of": name}}
    assert program.post(CHECKPOINTS, body).status_code == 204
    return name


def page(program: Program, **query: Any) -> dict[str, Any]:
    response = program.get(f"{CHECKPOINTS}?{urlencode(query)}")
    assert response.status_code == 200, response.json()
    return response.json()


def beside(program: Program, address: str) -> dict[str, Any]:
    return page(program, **dict(parse_qsl(urlsplit(address).query)))


def ids(page: dict[str, Any]) -> list[str]:
    return [checkpoint["checkpoint_id"] for checkpoint in page["results"]]


def followed(program: Program, **query: Any) -> list[list[str]]:
    """Return the ids of all pages."""
    pages = [page(program, **query)]
    while pages[-1]["next"]:
        pages.append(beside(program, pages[-1]["next"]))
    return [ids(one_page) for one_page in pages]


@pytest.mark.usefixtures("bounds")
def test_a_page_ends_before_it_is_too_large(program_a: Program, program_b: Program) -> None:
    for number in range(5):
        save(program_a, f"1f{number}")
    save(program_a, "1f5", 5 * LARGE)
    assert followed(program_a) == [["1f5"], ["1f4", "1f3"], ["1f2", "1f1"], ["1f0"]]
    assert followed(program_a, thread_id="t", before="1f3") == [["1f2", "1f1"], ["1f0"]]
    assert followed(program_a, thread_id="t", filters='{"of": "1f2"}') == [["1f2"]]
    values = [value["values"] for value in page(program_a, thread_id="t", before="1f1")["results"]]
    assert [base64.b64decode(value["value"]) for (value,) in values] == [bytes(LARGE)]
    second = page(program_a, before="1f5", limit=3)["next"]
    last = beside(program_a, second)
    assert ids(last) == ["1f1", "1f0"]
    back = beside(program_a, last["previous"].replace("limit=3", "limit=1"))
    assert ids(back) == ["1f2"]
    assert ids(beside(program_a, back["previous"].replace("&limit=1", ""))) == ["1f4", "1f3"]
    assert page(program_b) == {"next": None, "previous": None, "results": []}
    assert program_b.get(second.removeprefix("http://localhost")).status_code == 404


@pytest.mark.usefixtures("bounds")
def test_page_has_the_requested_number_or_an_error(program_a: Program) -> None:
    """A client of a version without `next` treats an incomplete page as the last one."""
    for number in range(5):
        save(program_a, f"1f{number}", LARGE)
    assert [len(one) for one in followed(program_a, limit=4)] == [4, 1]
    save(program_a, "1f5", 4 * LARGE)
    refused = program_a.get(f"{CHECKPOINTS}?limit=4")
    assert refused.status_code == 422
    assert "4 checkpoints have 14," in refused.json()["detail"]
    assert "leave `limit` out, and follow `next`" in refused.json()["detail"]
    # One checkpoint with values of many requests.
    save(program_a, "1f6", 3 * LARGE, channel="1f6")
    writes = [{"channel": "b", "type": "bytes", "value": "QUJD" * LARGE}]
    body = {"thread_id": "t", "checkpoint_id": "1f6", "task_id": "1", "writes": writes}
    assert program_a.post(f"{CHECKPOINTS}writes/", body).status_code == 204
    refused = program_a.get(f"{CHECKPOINTS}?limit=1")
    assert refused.status_code == 422
    assert "checkpoint 1f6 has 12," in refused.json()["detail"]


def test_checkpoints_of_one_id_in_several_threads_are_all_listed(program_a: Program) -> None:
    for name in ("1f0", "1f1"):
        save(program_a, name, thread="first")
    for copy in ("second", "third"):
        SessionStore(program_a.tenant.id).checkpointer.copy_thread("first", copy)
    assert followed(program_a, limit=2) == [["1f1"] * 2, ["1f1", "1f0"], ["1f0"] * 2]
