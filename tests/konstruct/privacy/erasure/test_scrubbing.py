"""The record without a person: an id is replaced where a field holds it, and nothing else is."""

import json
from typing import Any

import pytest

from konstruct.privacy.erasure.stores.scrubbing import (
    ERASED,
    Names,
    scrubbed_change_message,
    scrubbed_detail,
)


def scrubbed(
    user: str, detail: dict[str, Any], *, subject: str = "facts", is_theirs: bool = False
) -> dict[str, Any]:
    names = Names({user: "erased:1"}, frozenset({"hers"}))
    return scrubbed_detail(detail, names, subject=subject, is_theirs=is_theirs)


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ({"was": "maria"}, {"was": "erased:1"}),
        ({"before": {"user_id": "maria", "agent": "maria"}}, None),
        ({"users": ["maria"], "user_id": ["maria", "bob"]}, None),
        ({"thread": "hers"}, {"thread": ERASED}),
        ({"address": "user=maria&q=maria"}, {"address": "user=erased%3A1&q=maria"}),
        ({"address": "user_id__exact=maria&o=1"}, {"address": "user_id__exact=erased%3A1&o=1"}),
    ],
)
def test_an_id_is_replaced_where_a_field_holds_a_users_id(
    detail: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    if "before" in detail:
        expected = {"before": {"user_id": "erased:1", "agent": "maria"}}
    if "users" in detail:
        expected = {"users": ["maria"], "user_id": ["erased:1", "bob"]}
    assert scrubbed("maria", detail) == expected


@pytest.mark.parametrize(
    "user", ["agent", "ada", "was", "user=ada", "q", "1", "%", ".*", " ", "{}"]
)
def test_what_only_reads_like_the_id_stays(user: str) -> None:
    detail = {
        "agent": "ada",
        "query": f"{user} and more",
        "was": f"{user}2",
        "address": "agent=ada&q=1&user=ada2",
        "limit": 1,
        "thread": "his",
        "nothing": None,
    }
    assert scrubbed(user, detail) == detail


def test_of_an_entry_about_the_person_only_what_is_not_theirs_stays() -> None:
    detail = {
        "agent": "ada",
        "query": "Is she ill?",
        "limit": 3,
        "after": {"content": "Ill.", "ok": True, "tags": ["x", 1]},
        "merged": "maria",
    }
    assert scrubbed("maria", detail, is_theirs=True) == {
        "agent": "ada",
        "query": ERASED,
        "limit": 3,
        "after": {"content": ERASED, "ok": True, "tags": [ERASED, 1]},
        "merged": "erased:1",
    }


def test_a_term_is_an_id_in_lists_that_are_searched_by_it() -> None:
    term = {"query": "maria", "address": "q=maria+"}
    assert scrubbed("maria", term, subject="people") == {"query": "erased:1", "address": "q=maria+"}
    assert scrubbed("maria ", term, subject="identity")["address"] == "q=erased%3A1"
    assert scrubbed("maria", term, subject="facts") == term


def test_names_of_fields_stay_in_what_was_changed_and_names_of_things_do_not() -> None:
    changed = [
        {"changed": {"fields": ["Content"]}},
        {"added": {"name": "fact", "object": "Maria is ill."}},
    ]
    assert json.loads(scrubbed_change_message(json.dumps(changed))) == [
        {"changed": {"fields": ["Content"]}},
        {"added": {"name": "fact", "object": ERASED}},
    ]
    assert scrubbed_change_message("") == ""
    for message in ("Maria is ill.", '"Maria"', '["Maria"]', "{}"):
        assert scrubbed_change_message(message) == ERASED
