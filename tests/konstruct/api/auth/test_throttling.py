"""Rate limits of the API."""

from typing import Any

import pytest

from memory.models import Message
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Program


@pytest.fixture(autouse=True)
def _small_buckets(settings: Any) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 4, 0.002


def test_responses_contain_the_remaining_requests(program_a: Program) -> None:
    response = program_a.send()
    assert [response.headers[f"RateLimit-{name}"] for name in ("Limit", "Remaining", "Reset")] == [
        "2",
        "1",
        "1000",
    ]


def test_too_many_messages_are_refused_and_not_stored(program_a: Program) -> None:
    statuses = [program_a.send().status_code for _ in range(3)]
    refused = program_a.send()
    assert statuses == [202, 202, 429]
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["type"] == "urn:konstruct:problem:too-many-requests"
    assert 999 <= int(refused.headers["Retry-After"]) <= 1000
    assert refused.headers["RateLimit-Remaining"] == "0"
    with tenant_scope(program_a.tenant.id):
        assert Message.objects.count() == 2


def test_asking_for_replies_does_not_use_up_sending(program_a: Program) -> None:
    assert [program_a.get(MESSAGES).status_code for _ in range(3)] == [200, 200, 429]
    assert program_a.send().status_code == 202


def test_each_tenant_has_its_own_buckets(program_a: Program, program_b: Program) -> None:
    assert [program_a.send().status_code for _ in range(3)] == [202, 202, 429]
    assert program_b.send().status_code == 202


def test_refused_request_does_not_count_against_the_limit(program_a: Program) -> None:
    key, program_a.key = program_a.key, "nonsense"
    assert [program_a.send().status_code for _ in range(3)] == [401, 401, 401]
    program_a.key = key
    assert program_a.send().headers["RateLimit-Remaining"] == "1"


def test_one_key_does_not_use_the_whole_rate_of_its_tenant(
    program_a: Program, settings: Any
) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 5, 0.001
    assert [program_a.send().status_code for _ in range(4)] == [202, 202, 429, 429]
    another = program_a.with_key(name="another")
    assert [another.send().headers["RateLimit-Remaining"] for _ in range(2)] == ["1", "0"]
