"""mem0's language of filters: its meaning, and refused filters."""

from typing import Any

import pytest

from konstruct.interfaces.mem0 import memories
from memory.exceptions import InvalidArgument

ID = "0b0d1f3e-9d0c-4f0e-8f63-1f2c1c4e6a11"


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"user_id": "alex"}
    for _ in range(depth - 1):
        inner = {"AND": [inner]}
    return inner


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([], "filters=list of 0 is not an object"),
        ({"user": "alex"}, "filters knows no field 'user'; use one of: AND, OR, NOT, user_id"),
        ({"AND": {"user_id": "a"}}, "is not a list of conditions"),
        ({"OR": [{}]}, "holds an empty condition"),
        ({"user_id": 7}, "user_id=7 is not text"),
        ({"user_id": ""}, "user_id='' is empty"),
        ({"user_id": "a\x00"}, "NUL"),
        ({"user_id": "a\ud800"}, "surrogate"),
        ({"user_id": {}}, "is empty: it has no condition"),
        ({"user_id": {"gte": "a"}}, "knows no operator 'gte'; use one of: eq, ne, in"),
        ({"user_id": {"in": ["a"] * 257}}, "has 257 values; at most 256 can be"),
        ({"memory_ids": [ID, "m1"]}, "memory_ids='m1' is not a UUID"),
        ({"memory_ids": {"ne": [ID]}}, "is not a list"),
        ({"metadata": "x"}, "is not an object of values"),
        ({"metadata": {"a\x00": 1}}, "NUL"),
        ({"metadata": {"a": [1]}}, "is not one of text, number, true, false and null"),
        ({"metadata": {"a": {"gt": True}}}, "has no order"),
        ({"metadata": {"a": 10**400}}, "is not a finite number"),
        ({"keywords": {"contains": "x" * 513}}, "looks for 513 characters"),
        ({"created_at": {"gt": "soon"}}, "is not a time"),
        ({"created_at": {"gt": 1e300}}, "is not a time"),
        ({"created_at": {"gt": "0001-01-01T00:00:00+23:00"}}, "is not a time"),
        (nested(9), "is nested deeper than 8 levels"),
        ({"AND": [{"user_id": "a"}] * 33}, "has 33 conditions; at most 32 can be"),
    ],
)
def test_unknown_filter_is_refused_with_the_supported_ones(value: Any, error: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        memories.parse(value)
    assert error in str(refused.value)
    assert len(str(refused.value)) < 500


def test_filters_at_the_limits_are_parsed() -> None:
    assert memories.parse(nested(8)).values == {"user_id": "alex"}
    assert memories.parse({"AND": [{"user_id": "a"}] * 32}).conditions == 32


def test_the_entities_of_every_match() -> None:
    one = memories.parse({"AND": [{"run_id": "*"}, {"user_id": "a"}]})
    assert one.values == {"user_id": "a"}
    either = memories.parse({"OR": [{"user_id": "a"}, {"user_id": "b"}]})
    assert either.values == {}
