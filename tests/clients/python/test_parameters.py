"""Every call sends every parameter of the API's description, with every allowed value.

Each method of both clients is called with all of its arguments. The request is compared with the
operation in docs/openapi.yaml: parameters in the path, the query and the headers, and the
properties of the body.
"""

import asyncio
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import httpx
import pytest
from konstruct_client import AsyncClient, Client
from konstruct_client._methods import Method
from konstruct_client.errors import Problem

from tests.clients.python.documents import API, SCHEMAS
from tests.documentation.pages import DOCS
from tests.openapi import parameters_of

URL, KEY = "http://konstruct.test", "ks_test"
# Parameters that a method does not take, with the reason. Key: (method or "*", parameter).
NOT_TAKEN = {
    ("*", "cursor"): "iterating over a list sends it",
    ("facts.get_tagged", "at"): "an ETag is of the present state",
    ("messages.stream", "wait_for"): "a stream ends with the reply",
    ("events.read", "Last-Event-ID"): "a stream has it, and the client reads lists",
}
# Arguments that take a list.
LISTS = {
    *("items", "messages", "facts", "values", "writes", "threads", "include", "results", "tools"),
}
# Arguments that are sent as a header, or as a parameter with another name.
SENT_AS = {"idempotency_key": "Idempotency-Key", "if_match": "If-Match"}
with Client(URL, KEY) as konstruct:
    METHODS = {
        f"{name}.{attribute}": value
        for name, resource in vars(konstruct).items()
        for attribute, value in vars(type(resource)).items()
        if isinstance(value, Method)
    }


def arguments_of(method: str) -> dict[str, tuple[inspect.Parameter | None, Any]]:
    """Return the arguments of a method by name: the parameter, None for a field, and the type."""
    describe = METHODS[method].describe
    hints = get_type_hints(describe)
    found: dict[str, tuple[inspect.Parameter | None, Any]] = {}
    for parameter in list(inspect.signature(describe).parameters.values())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            (fields,) = get_args(hints[parameter.name])
            assert is_typeddict(fields)
            found |= {name: (None, hint) for name, hint in get_type_hints(fields).items()}
        else:
            found[parameter.name] = (parameter, hints[parameter.name])
    return found


def value_of(name: str) -> Any:
    """Return a valid value for an argument with this name."""
    if name in LISTS:
        return []
    if name == "file":
        return b"x"
    if name in ("wait", "limit"):
        return 1
    return {"topic": "food"} if name in ("filters", "metadata") else "x"


def requested(method: str, form: type[Client] | type[AsyncClient]) -> httpx.Request:
    """Call a method with all of its arguments. Return its request."""
    requests: list[httpx.Request] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(422, json={})

    args, options = [], {}
    for name, (parameter, _) in arguments_of(method).items():
        if parameter is not None and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            args.append(value_of(name))
        else:
            options[name] = value_of(name)
    transport = httpx.MockTransport(refuse)
    name, attribute = method.split(".")

    def call(konstruct: Client | AsyncClient) -> Any:
        return getattr(getattr(konstruct, name), attribute)(*args, **options)

    async def awaited() -> None:
        async with httpx.AsyncClient(transport=transport) as http:
            answer = call(AsyncClient(URL, KEY, http=http))
            await (answer if inspect.isawaitable(answer) else anext(aiter(answer)))

    with suppress(Problem):  # the error of a refused request
        if form is AsyncClient:
            asyncio.run(awaited())
        with httpx.Client(transport=transport) as http:
            next(iter(call(Client(URL, KEY, http=http))))
    (request,) = requests
    return request


def operation_of(request: httpx.Request) -> dict[str, Any]:
    for path, operations in API["paths"].items():
        pattern = re.sub(r"{\w+}", "x", path)
        if request.url.path == pattern and request.method.lower() in operations:
            return dict(operations[request.method.lower()])
    raise AssertionError(f"no operation is described for {request.method} {request.url.path}")


def sent_by(request: httpx.Request) -> set[tuple[str, str]]:
    headers = {name.lower() for name in request.headers}
    body = json.loads(request.content) if request.content else {}
    return {
        *(("query", name) for name in request.url.params),
        *(("header", name) for name in SENT_AS.values() if name.lower() in headers),
        *(("body", name) for name in body),
    }


@pytest.mark.parametrize("method", METHODS)
def test_a_method_of_either_client_sends_every_parameter(method: str) -> None:
    for request in (requested(method, Client), requested(method, AsyncClient)):
        expected = {
            (place, name)
            for place, name in parameters_of(operation_of(request))
            if not {("*", name), (method, name)} & NOT_TAKEN.keys()
        }
        assert sent_by(request) == expected


def values_in(hint: Any) -> Iterator[Any]:
    """Yield every value of every Literal in a type."""
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    for inner in get_args(hint):
        yield from values_in(inner)


def allowed_by(schema: Any) -> Iterator[Any]:
    """Yield every value of every enumeration in a schema, except blank ones and booleans."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield from allowed_by(SCHEMAS[schema["$ref"].rsplit("/", 1)[1]])
        yield from (value for value in schema.get("enum", ()) if value not in ("true", "false"))
        for inner in ("items", "additionalProperties", "allOf", "oneOf", "anyOf"):
            yield from allowed_by(schema.get(inner))
    elif isinstance(schema, list):
        for part in schema:
            yield from allowed_by(part)


@pytest.mark.parametrize("method", METHODS)
def test_an_argument_takes_every_value_of_the_description(method: str) -> None:
    described = {
        name: {*allowed_by(schema)}
        for (_, name), schema in parameters_of(operation_of(requested(method, Client))).items()
    }
    accepted = {
        SENT_AS.get(name, name): {*values_in(hint)}
        for name, (_, hint) in arguments_of(method).items()
    }
    both = described.keys() & accepted.keys()
    assert {name: accepted[name] for name in both} == {name: described[name] for name in both}


def test_every_operation_has_a_method() -> None:
    sent = [requested(method, Client) for method in METHODS]
    assert {
        (method.upper(), re.sub(r"{\w+}", "x", path))
        for path, operations in API["paths"].items()
        for method in operations
    } == {(request.method, request.url.path) for request in sent}


def test_the_documentation_lists_every_method() -> None:
    page = (DOCS / "clients" / "python.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", page, re.MULTILINE)
    listed = [f"{name}.{method}" for name, row in rows for method in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(METHODS)
