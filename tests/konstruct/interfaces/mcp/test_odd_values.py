"""Every value of every request, replaced by unusual values."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.konstruct.api.seed_data import SeedData, create_seed_data
from tests.konstruct.conftest import Program, json_bytes
from tests.konstruct.interfaces.mcp.speaking import ENDPOINT, NEW, OLD, body_of, headers_of
from tests.konstruct.interfaces.mcp.test_every_tool import CASES

pytestmark = [pytest.mark.long, pytest.mark.django_db]

ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1e308, 10**400, "", " ", "\0", "\ud800", "\u202e", "a\nb", "%ff",
    "x" * 70_000, [], [[]], {}, {"": {"\ud800": [None]}}, {"_meta": None},
    "'; DROP TABLE memory_message; --",
]  # fmt: skip
VALUES_PER_CALL = 60


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value in a document, except the document itself."""
    inner = value.items() if isinstance(value, dict) else ()
    for key, field in inner:
        yield (*path, key)
        yield from places(field, (*path, key))


def replaced(body: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    holder: Any = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed


@pytest.fixture
def seed(program_a: Program, settings: Any) -> SeedData:
    # Before the first request, which fills the buckets.
    settings.RATE_LIMIT_BURST = 2_000_000
    return create_seed_data(program_a)


def test_no_value_causes_an_internal_error(seed: SeedData) -> None:
    chosen = random.Random(1)
    for name, case in sorted(CASES.items()):
        params = case.params(seed)
        for version in (OLD, NEW):
            body, headers = (
                body_of("tools/call", params, version),
                headers_of("tools/call", params, version),
            )
            tried = [(path, odd) for path in places(body) for odd in ODD_VALUES]
            for path, odd in chosen.sample(tried, VALUES_PER_CALL // 2):
                sent = json_bytes(replaced(body, path, odd))
                answer = seed.program.post(ENDPOINT, sent, headers=headers)
                context = (name, version, path, str(odd)[:50], answer.content[:300])
                assert answer.status_code in (200, 202, 400, 404), context
                if answer.status_code == 202:
                    continue
                document = answer.json()
                assert document["jsonrpc"] == "2.0", context
                assert document.get("error", {}).get("code") != -32603, context
                assert b"our fault" not in answer.content, context
