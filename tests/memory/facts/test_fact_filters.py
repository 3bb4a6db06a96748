"""Metadata as filter attributes, and filters on it."""

from typing import Any

import pytest
from hypothesis import strategies as st

from memory.exceptions import InvalidArgument
from memory.models.attributes import (
    Condition,
    Value,
    metadata_values,
    parse_filters,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def test_every_value_has_its_path_and_kind() -> None:
    metadata = {
        "topic": "food",
        "priority": 2,
        "sure": True,
        "until": None,
        "tags": ["a", "b", "a"],
        "source": {"url": "x", "page": 1.5},
    }

    assert metadata_values(metadata) == [
        ("topic", Value("text", text="food")),
        ("priority", Value("number", number=2.0)),
        ("sure", Value("literal", text="true")),
        ("until", Value("literal", text="null")),
        ("tags", Value("list")),
        ("tags", Value("text", text="a")),
        ("tags", Value("text", text="b")),
        ("source", Value("object")),
        ("source.url", Value("text", text="x")),
        ("source.page", Value("number", number=1.5)),
    ]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"topic": "food"}, [Condition("topic", "in", (Value("text", "food"),))]),
        ({"topic": {"eq": "food"}}, [Condition("topic", "in", (Value("text", "food"),))]),
        ({"sure": True}, [Condition("sure", "in", (Value("literal", "true"),))]),
        (
            {"n": {"in": [1, "1"]}},
            [Condition("n", "in", (Value("number", number=1.0), Value("text", "1")))],
        ),
        ({"n": {"in": []}}, [Condition("n", "in")]),
        ({"n": {"exists": True}}, [Condition("n", "exists")]),
        ({"n": {"exists": False}}, [Condition("n", "missing")]),
        (
            {"n": {"gte": 2, "lt": 5}},
            [
                Condition("n", "gte", (Value("number", number=2.0),)),
                Condition("n", "lt", (Value("number", number=5.0),)),
            ],
        ),
        ({"n": {"ne": "a"}}, [Condition("n", "ne", (Value("text", "a"),))]),
        ({"n": {"icontains": "a"}}, [Condition("n", "icontains", (Value("text", "a"),))]),
        ({"day": {"gt": "2026-01"}}, [Condition("day", "gt", (Value("text", "2026-01"),))]),
        ({}, []),
    ],
)
def test_filters_are_read(filters: dict[str, Any], expected: list[Condition]) -> None:
    assert parse_filters(filters) == expected


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([], r"filters=\[\] is not an object"),
        ({"": 1}, "filters has the key ''"),
        ({"n": {}}, r"filters\['n'\] is empty"),
        (
            {"n": {"like": 1}},
            "knows no operator 'like'; use one of: eq, ne, in, exists, gt, gte, lt, lte, contains",
        ),
        ({"n": {"in": "abc"}}, r"\['in'\]='abc' is not a list"),
        ({"n": {"exists": 1}}, r"\['exists'\]=1 is not true or false"),
        ({"n": {"contains": ""}}, r"\['contains'\] is not a text of 1 to 512 bytes"),
        ({"n": {"contains": 1}}, r"\['contains'\] is not a text"),
        ({"n": {"gt": True}}, r"\['gt'\]=True has no order"),
        ({"n": [1]}, r"n=\[1\] is not one of text, number, true, false and null"),
        ({"n": float("nan")}, "n=nan is not a finite number"),
        ({"n": 10**400}, "is not a finite number"),
        ({"n": "a\x00"}, "NUL character"),
        ({"n\ud800": 1}, "half of a surrogate pair"),
        ({f"n{i}": i for i in range(33)}, "filters has more than 32 conditions"),
        ({"n": {"in": list(range(257))}}, "has 257 values; at most 256 can be"),
    ],
)
def test_contradictory_filter_is_refused(filters: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        parse_filters(filters)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("text", "metadata='text' is not an object"),
        ({1: 2}, "metadata has the key 1"),
        ({"a": {1}}, "is not one of text"),
        ({"a": float("inf")}, "a=inf is not a finite number"),
        ({"a": "\x00"}, "NUL"),
        ({"k" * 513: 1}, "which is longer than 512 characters"),
        ({"a": [1] * 5000}, "metadata has more than 4096 items, repeated ones counted"),
        ({"a": list(range(300))}, "metadata has more than 256 values; leave some out"),
    ],
)
def test_metadata_that_postgres_could_not_hold_is_refused(metadata: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        metadata_values(metadata)
