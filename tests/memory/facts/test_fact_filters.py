"""Metadata as filter attributes, and filters on it."""

from typing import Any

import pytest

from memory.exceptions import InvalidArgument
from memory.models.attributes import metadata_values, parse_filters


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
        ({"n": {"gt": True}}, r"\['gt'\]=True has no order"),
        ({"n": [1]}, r"n=\[1\] is not one of text, number, true, false and null"),
        ({"n": 10**400}, "is not a finite number"),
        ({"n": "a\x00"}, r"holds U\+0000"),
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
        ({"a": "\x00"}, "NUL"),
        ({"k" * 513: 1}, "which is longer than 512 characters"),
        ({"a": [1] * 5000}, "metadata has more than 4096 items, repeated ones counted"),
        ({"a": list(range(300))}, "metadata has more than 256 values; leave some out"),
    ],
)
def test_metadata_that_postgres_could_not_hold_is_refused(metadata: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        metadata_values(metadata)
