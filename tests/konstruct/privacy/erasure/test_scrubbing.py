"""The access log after an erasure: ids become pseudonyms, texts about the person a marker."""

from typing import Any

import pytest

from konstruct.privacy.erasure.logs import (
    ERASED,
    Pseudonyms,
    without_person,
)

MARIA = {"maria": "erased:1", "Maria Lopez": "erased:2", "U07:maria%": "erased:3"}


def without(
    detail: dict[str, Any],
    users: dict[str, str] | None = None,
    *,
    is_theirs: bool = False,
    everywhere: bool = True,
) -> Any:
    names = Pseudonyms(users or MARIA, frozenset({"hers"}), everywhere=everywhere)
    event = {"user_id": None, "subject_id": "", "request_id": "", "detail": detail}
    return without_person(event, names, is_theirs=is_theirs, user_fields=set())["detail"]


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ({"was": "maria"}, {"was": "erased:1"}),
        (
            {"before": {"user_id": "maria", "agent": "maria"}},
            {"before": {"user_id": "erased:1", "agent": "maria"}},
        ),
        ({"users": ["maria", "mariana"]}, {"users": ["erased:1", "mariana"]}),
        ({"user_id": ["maria", "bob"]}, {"user_id": ["erased:1", "bob"]}),
        ({"thread": "hers"}, {"thread": ERASED}),
        ({"address": "user=maria&q=maria"}, {"address": "user=erased:1&q=erased:1"}),
        ({"address": "user=U07%3Amaria%25&o=1"}, {"address": "user=erased:3&o=1"}),
        ({"address": "q=Maria+Lopez"}, {"address": "q=erased:2"}),
        ({"address": "maria=1&user=maria"}, {"address": "maria=1&user=erased:1"}),
        ({"path": "/api/v1/users/maria/"}, {"path": "/api/v1/users/erased:1/"}),
        ({"asked": {"q": "Has Maria Lopez paid?"}}, {"asked": {"q": "Has erased:2 paid?"}}),
        ({"query": '{"OR": [{"app": "maria"}]}'}, {"query": '{"OR": [{"app": "erased:1"}]}'}),
        ({"query": "bob\nmaria\\n"}, {"query": "bob\nerased:1\\n"}),
        ({"filters": {"metadata": {"maria": 1}}}, {"filters": {"metadata": {"erased:1": 1}}}),
    ],
)  # fmt: skip
def test_id_is_replaced_in_all_places(detail: dict[str, Any], expected: dict[str, Any]) -> None:
    assert without(detail) == expected


@pytest.mark.parametrize("user", ["ada", "was", "q", "1", "12345", "%", ".*", " ", "{}", "query"])
def test_text_that_resembles_the_id_is_kept(user: str) -> None:
    detail = {
        "agent": user,
        "query": "adam was2 12 and 12345 more",
        "was": f"{user}2",
        "user_id": f"{user}-2",
        "address": "agent=ada&q=2&limit=1&user=ada-2",
        "limit": 1,
        "thread": "his",
        "nothing": None,
    }
    assert without(detail, {user: "erased:1"}) == detail


def test_access_log_entry_of_the_person_keeps_only_data_of_others() -> None:
    detail = {
        "agent": "ada",
        "query": "Is she ill?",
        "limit": 3,
        "after": {"content": "Ill.", "ok": True, "tags": ["x", 1], "metadata": {"ill": 1}},
        "merged": "maria",
    }
    assert without(detail, is_theirs=True) == {
        "agent": "ada",
        "query": ERASED,
        "limit": 3,
        "after": {"content": ERASED, "ok": True, "tags": [ERASED, 1], "metadata": ERASED},
        "merged": "erased:1",
    }
