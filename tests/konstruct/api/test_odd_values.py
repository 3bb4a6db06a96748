"""Any value of a field is accepted or an error of the client: no request is a 500.

Fields come from the description, so that new endpoints and fields are covered.
"""

import itertools
import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from django.db import transaction
from django.urls import get_resolver

from tests.konstruct.api.routes import CASES, V1, patterns
from tests.konstruct.api.seed_data import SeedData
from tests.openapi import described, operation_of

pytestmark = pytest.mark.long

DESCRIBED: dict[str, Any] = described()
# The interfaces of other products are described by those products.
REST = {
    str(pattern.name)
    for path, pattern in patterns(get_resolver("konstruct.urls.api"))
    if path.startswith("v1/")
}
REST_CASES = sorted(case for case in CASES if case[0] in REST)
WRITING = [key for key in REST_CASES if CASES[key].body is not None]
ODD_VALUES: tuple[Any, ...] = (
    "\ud800",
    "a\udfffb",
    "\0",
    "\u202e\u2066",
    "x" * 5000,
    10**400,
    ["\ud800"],
    {"\ud800": {"\udfff": "\ud800"}},
)
# Most JSON parsers accept an unpaired surrogate: every field gets one.
HALF_A_PAIR = ODD_VALUES[0]
ODD_ADDRESSES = ("%00", "%ED%A0%80", "%FF", "x" * 3000, "1e999", "-1", "%F0%9F%A6%8A", "9" * 40)


@pytest.fixture
def seed(committed_seed: SeedData) -> SeedData:
    return committed_seed


@pytest.fixture(autouse=True)
def _no_limits(settings: Any) -> None:
    settings.RATE_LIMIT_BURST = 2_000_000


def ask(seed: SeedData, method: str, path: str, **options: Any) -> Any:
    """Send a request, and undo its changes."""
    server = seed.program.tenant.server
    with transaction.atomic(using=server):
        response = seed.program.request(method, path, **options)
        transaction.set_rollback(True, using=server)
    return response


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = DESCRIBED["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def fields_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return every field of an object, including those of its alternatives."""
    schema = resolved(schema)
    fields = dict(schema.get("properties", {}))
    for part in (*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        fields |= fields_of(part)
    return fields


def odd_bodies(body: Any, schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the body with one odd value: half a pair in each field, and one more by turns."""
    yield from ODD_VALUES
    turns = itertools.cycle(ODD_VALUES[1:])

    def odds() -> tuple[Any, ...]:
        return HALF_A_PAIR, next(turns)

    if isinstance(body, dict):
        for name in sorted({*fields_of(schema), *body, "\ud800"}):
            for odd in odds():
                yield body | {name: odd}
    for name, value in body.items() if isinstance(body, dict) else ():
        inner = resolved(fields_of(schema).get(name, {}))
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for odd in odd_bodies(value[0], inner.get("items", {})):
                yield deepcopy(body) | {name: [odd, *value]}
        elif isinstance(value, list):
            yield from (body | {name: [odd]} for odd in odds())


@pytest.mark.parametrize(("route", "method"), WRITING)
def test_no_field_of_a_body_is_a_500(seed: SeedData, route: str, method: str) -> None:
    case = CASES[route, method]
    assert case.body is not None
    path, body = case.path(seed), case.body(seed)
    content = operation_of(path, method)["requestBody"]["content"]["application/json"]["schema"]
    requests = 0
    for odd in odd_bodies(body, content):
        sent = json.dumps(odd).encode()
        response = ask(seed, method, path, data=sent, content_type="application/json")
        assert response.status_code < 500, (sent[:300], response.content)
        json.loads(response.content.decode() or "null")
        requests += 1
    raw = json.dumps(body).encode().replace(b'": "', b'": "\xed\xa0\x80', 1)
    response = ask(seed, method, path, data=raw, content_type="application/json")
    assert response.status_code < 500
    assert requests >= len(ODD_VALUES)


@pytest.mark.parametrize(("route", "method"), REST_CASES)
def test_no_parameter_of_an_address_is_a_500(seed: SeedData, route: str, method: str) -> None:
    case = CASES[route, method]
    path = case.path(seed).partition("?")[0]
    described = operation_of(path, method).get("parameters", [])
    names = {parameter["name"] for parameter in described if parameter["in"] == "query"}
    turns = itertools.cycle(ODD_ADDRESSES)

    def odds() -> tuple[str, ...]:
        return next(turns), next(turns)

    addresses = [f"{path}?{name}={odd}" for name in (*sorted(names), "%ED%A0%80") for odd in odds()]
    parts = path.removeprefix(V1).strip("/").split("/")
    for place in range(1, len(parts)):
        for odd in odds():
            changed = [*parts[:place], odd, *parts[place + 1 :]]
            addresses.append(f"{V1}{'/'.join(changed)}/")
    body = None if case.body is None else json.dumps(case.body(seed)).encode()
    for address in addresses:
        options: dict[str, Any] = {}
        if body is not None:
            options = {"data": body, "content_type": "application/json"}
        response = ask(seed, method, address, **options)
        assert response.status_code < 500, (address[:300], response.content)


BAD = {
    "external_id": "\ud800",
    "agent": "\ud800",
    "user_id": "maria\udfff",
    "thread_id": "\ud83d",
    "content": "So \ud800",
    "name": "\udfff",
    "role": "\ud800",
    "created_at": "\ud800",
    "\ud800": "x",
}


def test_a_line_with_half_a_pair_is_invalid_by_itself(seed: SeedData) -> None:
    line = {
        "external_id": "a good one", "agent": "ada", "user_id": "theo", "thread_id": "old",
        "role": "user", "content": "And then?", "created_at": "2025-03-15T09:00:00Z",
    }  # fmt: skip
    bad = [
        line | {"external_id": f"bad {n}"} | {name: value}
        for n, (name, value) in enumerate(BAD.items())
    ]
    nul = [line | {"external_id": f"nul {name}", name: "\0"} for name in ("agent", "user_id")]
    response = seed.program.post(f"{V1}messages/import/", {"messages": [*bad, *nul, line]})
    assert response.status_code == 200, response.content
    results = response.json()["results"]
    assert [result["status"] for result in results] == ["invalid"] * (len(bad) + 2) + ["created"]
    assert all(result["error"] for result in results[:-1])
    for field in ("user_id", "thread_id", "content", "name"):
        place = list(BAD).index(field)
        assert f"{field} holds half of a surrogate pair" in results[place]["error"]


@pytest.mark.parametrize("header", ["Idempotency-Key", "If-Match", "If-None-Match", "X-Request-ID",
                                    "Accept", "Content-Type", "Authorization", "Host"])  # fmt: skip
def test_no_header_is_a_500(seed: SeedData, header: str) -> None:
    for value in ("\xed\xa0\x80", "\xff", "x" * 5000, "", " ", '"', "\x01"):
        for path in (f"{V1}messages/", f"{V1}facts/{seed.fact}/"):
            response = ask(
                seed, "POST" if path.endswith("messages/") else "PATCH", path, data=b"{}",
                content_type="application/json", headers={header: value},
            )  # fmt: skip
            assert response.status_code < 500, (header, value)
