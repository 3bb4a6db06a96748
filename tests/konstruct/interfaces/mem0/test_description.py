"""docs/mem0.yaml matches the requests and answers."""

import json
import re
from functools import partial
from typing import Any

import pytest

from konstruct.interfaces.mem0 import serializers
from konstruct.interfaces.mem0.views import MemoryViewSet
from konstruct.urls import interfaces
from tests.described import described, errors_in, schema_of_answer
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mem0.calls import add

pytestmark = pytest.mark.django_db

errors = partial(errors_in, "mem0")
OF_ALEX = {"filters": {"user_id": "alex"}}
READ = {
    "Add": serializers.AddSerializer,
    "List": serializers.ListSerializer,
    "Search": serializers.SearchSerializer,
    "Change": serializers.ChangeSerializer,
    "Entities": serializers.EntitiesSerializer,
    "UpdateBatch": serializers.UpdateBatchSerializer,
    "DeleteBatch": serializers.DeleteBatchSerializer,
}


def operations() -> dict[tuple[str, str], Any]:
    """Return the descriptions of each operation by path and method."""
    return {
        (path, method.upper()): operation
        for path, methods in described("mem0")["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }


def test_every_route_is_described() -> None:
    served = set()
    for pattern in interfaces.mem0_urls:
        view = getattr(pattern.callback, "cls", None)
        if view is not None and issubclass(view, MemoryViewSet):
            path = re.sub(r"<uuid:(\w+)>|\(\?P<(\w+)>[^)]*\)", r"{\1\2}", str(pattern.pattern))
            methods = {method.upper() for method in pattern.callback.actions} - {"HEAD"}
            served |= {(f"/{path.strip('^$')}", method) for method in methods}
    assert operations().keys() == served


@pytest.mark.parametrize("name", READ)
def test_accepted_fields_are_documented(name: str) -> None:
    schema = described("mem0")["components"]["schemas"][name]
    read = READ[name]()
    assert set(schema["properties"]) == set(read.fields)
    assert {name for name, field in read.fields.items() if field.required} == set(
        schema.get("required", ())
    )
    for field, description in schema["properties"].items():
        longest = getattr(read.fields[field], "max_length", None) or getattr(
            read.fields[field], "most", None
        )
        resolved = {**description, **described("mem0")["components"]["schemas"].get(
            description.get("$ref", "").split("/")[-1], {})}  # fmt: skip
        if longest is not None:
            assert longest in (resolved.get("maxLength"), resolved.get("maxItems")), field


def test_requests_and_answers_are_as_they_are_described(program: Program) -> None:
    made = add(program, "I row.", user_id="carl", run_id="r9", metadata={"a": 1})
    memory = f"/v1/memories/{made['id']}/"
    others = [add(program, text, user_id="carl")["id"] for text in ("I ski.", "I swim.")]
    calls: list[tuple[str, str, str, Any]] = [
        ("GET", "/v1/ping/", "", None),
        ("POST", "/v3/memories/add/", "", {
            "messages": [{"role": "user", "content": "I surf."}], "user_id": "carl",
            "infer": False, "timestamp": "2026-03-01", "expiration_date": "2999-01-01",
            "metadata": {"topic": "sea"},
        }),
        ("POST", "/v3/memories/", "?page_size=1", OF_ALEX),
        ("POST", "/v3/memories/", "", {**OF_ALEX, "fields": ["memory"], "start_date": 0}),
        ("POST", "/v3/memories/search/", "", {**OF_ALEX, "query": "tea?", "rerank": True}),
        ("GET", "/v1/memories/{memory_id}/", memory, None),
        ("PUT", "/v1/memories/{memory_id}/", memory, {"text": "I row daily."}),
        ("GET", "/v1/memories/{memory_id}/history/", f"{memory}history/", None),
        ("PUT", "/v1/batch/", "", {"memories": [{"memory_id": others[0], "text": "I dive."}]}),
        ("DELETE", "/v1/batch/", "", {"memories": [{"memory_id": others[1]}]}),
        ("GET", "/v1/entities/", "?page_size=2", None),
        ("DELETE", "/v1/memories/{memory_id}/", memory, None),
        ("DELETE", "/v1/memories/", "?user_id=alex", None),
        ("DELETE", "/v2/entities/{kind}/{name}/", "/v2/entities/user/bea/", None),
    ]  # fmt: skip
    assert {(path, method) for method, path, *_ in calls} == operations().keys()
    for method, path, where, body in calls:
        address = where if where.startswith("/") else path + where
        for sent, status in ((body, 200), ({"nonsense": 1}, 400)):
            if body is None and status == 400:
                continue
            options = {"data": json.dumps(sent), "content_type": "application/json"} if sent else {}
            answer = program.request(method, f"/mem0{address}", **options)
            assert answer.status_code == status, (method, path, answer.content)
            schema = schema_of_answer("mem0", path, method, status)
            assert errors(answer.json(), schema) == [], (method, path)
        if body is not None:
            content = operations()[path, method]["requestBody"]["content"]
            assert errors(body, content["application/json"]["schema"]) == []


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/v3/memories/add/", {"user_id": "carl"}),
        ("/v3/memories/add/", {"user_id": "carl", "text": "a", "messages": "b"}),
        ("/v3/memories/add/", {"user_id": "carl", "messages": []}),
        ("/v3/memories/add/", {"user_id": "carl", "messages": [{"role": "king", "content": "a"}]}),
        ("/v3/memories/add/", {"user_id": 5, "text": "a"}),
        ("/v3/memories/add/", {"user_id": "carl", "text": "a", "infer": "no"}),
        ("/v3/memories/search/", OF_ALEX),
        ("/v3/memories/search/", {**OF_ALEX, "query": "a", "top_k": 0}),
        ("/v3/memories/search/", {**OF_ALEX, "query": "a", "threshold": 2}),
        ("/v3/memories/", {**OF_ALEX, "show_expired": "no"}),
    ],
)
def test_undocumented_field_is_refused(program: Program, path: str, sent: Any) -> None:
    content = operations()[path, "POST"]["requestBody"]["content"]
    assert errors(sent, content["application/json"]["schema"])
    refused = program.post(f"/mem0{path}", sent)
    assert (refused.status_code, errors(refused.json(), "Error")) == (400, [])
