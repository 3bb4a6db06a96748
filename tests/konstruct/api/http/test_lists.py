"""Pages: complete, stable, in any order, without cursors of other lists."""

from collections.abc import Callable
from typing import Any

import pytest

from konstruct.orchestrator.agents import create_agent
from tests.konstruct.api.seed_data import create_seed_data
from tests.konstruct.conftest import MESSAGES, Program

AGENTS = "/api/v1/agents/"
TRANSCRIPT = "/api/v1/conversations/transcript/"


def walk(program: Program, address: str, key: str, link: str = "next") -> list[list[Any]]:
    """Follow a list to its end. Return the content of each page."""
    pages = []
    following: str | None = address
    while following is not None:
        response = program.get(following)
        assert response.status_code == 200
        pages.append([row[key] for row in response.json()["results"]])
        following = response.json()[link]
    return pages


def import_turns(program: Program, count: int) -> None:
    """Import turns with the same time: only their number gives the order."""
    messages = [
        {
            "external_id": f"e{number}",
            "agent": "ada",
            "user_id": "maria",
            "thread_id": "t",
            "role": "user",
            "content": f"{number}",
            "created_at": "2025-03-14T09:00:00Z",
        }
        for number in range(count)
    ]
    response = program.post("/api/v1/messages/import/", {"messages": messages})
    assert response.json()["created"] == count


def test_rows_with_equal_times_are_listed_once(program_a: Program) -> None:
    import_turns(program_a, 7)
    of_maria = f"{TRANSCRIPT}?agent=ada&user_id=maria&limit=3"
    rising = [["0", "1", "2"], ["3", "4", "5"], ["6"]]
    descending = [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert walk(program_a, of_maria, "content") == rising
    assert walk(program_a, f"{of_maria}&ordering=-created_at", "content") == descending


def test_a_list_can_be_walked_back(program_a: Program) -> None:
    import_turns(program_a, 6)
    address = f"{TRANSCRIPT}?agent=ada&user_id=maria&limit=2"
    last = program_a.get(program_a.get(program_a.get(address).json()["next"]).json()["next"])
    assert last.json()["next"] is None
    back = walk(program_a, last.json()["previous"], "content", link="previous")
    assert back == [["2", "3"], ["0", "1"]]


def test_new_rows_do_not_shift_following_pages(program_a: Program) -> None:
    for number in range(4):
        program_a.send(f"{number}")
    first = program_a.get(f"{MESSAGES}?limit=2").json()
    program_a.send("new")
    second = program_a.get(first["next"]).json()
    assert [row["content"] for row in second["results"]] == ["1", "0"]
    assert second["next"] is None


def test_agents_are_paged_by_name_and_by_age(program_a: Program) -> None:
    for name in ("cleo", "bo", "dora"):
        create_agent(tenant_id=program_a.tenant.id, name=name)
    assert walk(program_a, f"{AGENTS}?limit=2", "name") == [["ada", "bo"], ["cleo", "dora"]]
    assert walk(program_a, f"{AGENTS}?limit=3&ordering=-name", "name") == [
        ["dora", "cleo", "bo"],
        ["ada"],
    ]
    by_age = walk(program_a, f"{AGENTS}?limit=2&ordering=created_at", "name")
    assert sorted(by_age[0] + by_age[1]) == ["ada", "bo", "cleo", "dora"]


@pytest.fixture
def cursor(program_a: Program) -> Callable[[str], str]:
    """Return a cursor of a list."""
    for name in ("bo", "cleo"):
        create_agent(tenant_id=program_a.tenant.id, name=name)

    def of(address: str) -> str:
        following: str = program_a.get(address).json()["next"]
        return following.split("cursor=")[1].split("&")[0]

    return of


@pytest.mark.parametrize(
    "address", [f"{AGENTS}?ordering=-name&cursor=", "/api/v1/conversations/?cursor="]
)
def test_a_cursor_is_of_one_list_in_one_order(
    program_a: Program, cursor: Callable[[str], str], address: str
) -> None:
    first_cursor = cursor(f"{AGENTS}?limit=1")
    assert program_a.get(f"{AGENTS}?cursor={first_cursor}").status_code == 200
    response = program_a.get(address + first_cursor)
    assert response.status_code == 404
    assert [error["field"] for error in response.json()["errors"]] == ["cursor"]


def test_a_cursor_cannot_be_made_or_changed(
    program_a: Program, cursor: Callable[[str], str]
) -> None:
    first_cursor = cursor(f"{AGENTS}?limit=1")
    for forged in (
        first_cursor[:-1] + ("A" if first_cursor[-1] != "A" else "B"),
        "x" + first_cursor,
        "a.b",
        "cD1hYmM",
    ):
        assert program_a.get(f"{AGENTS}?cursor={forged}").status_code == 404
    assert program_a.get(f"{AGENTS}?cursor=").status_code == 400


@pytest.mark.parametrize(
    "query", ["ordering=number", "limit=0", "limit=x", "limit=201", "cursor=a&cursor=b", "page=2"]
)
def test_unknown_parameter_of_a_list_is_refused(program_a: Program, query: str) -> None:
    response = program_a.get(f"{AGENTS}?{query}")
    assert response.status_code == 400
    assert [error["field"] for error in response.json()["errors"]] == [query.split("=")[0]]


def test_users_are_paged_in_both_directions(program_a: Program) -> None:
    create_seed_data(program_a)
    users = "/api/v1/users/?limit=2"
    assert walk(program_a, users, "user_id") == [["maria", "theo"], ["vera"]]
    assert walk(program_a, f"{users}&ordering=-user_id", "user_id") == [["vera", "theo"], ["maria"]]
    last = program_a.get(program_a.get(users).json()["next"]).json()
    assert walk(program_a, last["previous"], "user_id", link="previous") == [["maria", "theo"]]
