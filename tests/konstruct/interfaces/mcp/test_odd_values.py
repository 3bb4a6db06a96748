"""Unusual values as arguments of tools: none is an internal error."""

import itertools
from typing import Any

import pytest

from tests.konstruct.api.seed_data import SeedData, create_seed_data
from tests.konstruct.conftest import Program, json_bytes
from tests.konstruct.interfaces.mcp.speaking import ENDPOINT, NEW, OLD, body_of, headers_of
from tests.konstruct.interfaces.mcp.test_every_tool import CASES

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

ODD_VALUES: list[Any] = [
    None, True, -1, 1e308, 10**400, "", "\0", "\ud800", "\u202e", "%ff", "x" * 70_000, [], [[]],
    {}, {"": {"\ud800": [None]}}, {"_meta": None}, "'; DROP TABLE memory_message; --",
]  # fmt: skip


@pytest.fixture
def seed(program_a: Program, settings: Any) -> SeedData:
    settings.RATE_LIMIT_BURST = settings.KEY_RATE_LIMIT_BURST = 1_000_000
    return create_seed_data(program_a)


def test_no_argument_causes_an_internal_error(seed: SeedData) -> None:
    turns = itertools.cycle(ODD_VALUES)
    for name, case in sorted(CASES.items()):
        params = case.params(seed)
        for version, key in itertools.product((OLD, NEW), [*params["arguments"], "\ud800"]):
            for odd in itertools.islice(turns, 2):
                changed = {**params, "arguments": params["arguments"] | {key: odd}}
                answer = seed.program.post(
                    ENDPOINT,
                    json_bytes(body_of("tools/call", changed, version)),
                    headers=headers_of("tools/call", changed, version),
                )
                context = (name, version, key, str(odd)[:50], answer.content[:300])
                assert answer.status_code in (200, 400, 404), context
                assert answer.json().get("error", {}).get("code") != -32603, context
                assert b"our fault" not in answer.content, context
