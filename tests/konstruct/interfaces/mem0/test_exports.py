"""mem0's exports: memories in a schema of the client's, made when they are fetched."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django_redis import get_redis_connection

from konstruct.interfaces.mem0 import asking
from konstruct.interfaces.mem0.exports import requests, views
from konstruct.trust.erasure.person import Person
from konstruct.trust.erasure.stores.cache import remove_keys
from tenants.redis_keys import all_keys_pattern
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mem0.calls import (
    ANY,
    COFFEE,
    EXPORT,
    EXPORTS,
    MEMORIES,
    ROME,
    TEA,
    add,
    bound,
    refusal,
)
from tests.servers.llm import Answer, LLMServer

pytestmark = pytest.mark.django_db

TEXT = {"type": "string"}
MEMORY = {"type": "object", "properties": {"memory": TEXT, "user_id": TEXT}}
# As Pydantic writes `memories: list[Item]`, with a field that may be null.
NESTED = {
    "$defs": {
        "Item": {
            "type": "object",
            "title": "Item",
            "properties": {
                "content": {"type": "string", "title": "Content"},
                "agent_id": {"anyOf": [TEXT, {"type": "null"}], "default": None},
                "metadata": {"type": "object", "additionalProperties": True},
                "created_at": {"type": "string", "format": "date-time"},
            },
            "required": ["content", "agent_id"],
        }
    },
    "type": "object",
    "properties": {
        "user_id": TEXT,
        "memories": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
    },
    "required": ["user_id", "memories"],
}
PROFILE = {
    "type": "object",
    "title": "Profile",
    "properties": {
        "city": {"anyOf": [TEXT, {"type": "null"}], "default": None},
        "drinks": {"type": "array", "items": TEXT},
    },
    "required": ["drinks"],
}
OF_ALEX = {"user_id": "alex"}


@pytest.fixture(autouse=True)
def no_exports(program: Program) -> Iterator[None]:
    yield
    client = get_redis_connection("default")
    for key in client.scan_iter(match=f"{program.tenant.id}:mem0_exports:*"):
        client.delete(key)


@pytest.fixture
def model(llm_server: LLMServer, settings: Any) -> LLMServer:
    settings.LLM_POOL_URL, settings.LLM_API = llm_server.url, "pool"
    return llm_server


def create(program: Program, schema: Any, filters: Any = OF_ALEX, **fields: Any) -> str:
    answer = program.post(EXPORTS, {"schema": schema, "filters": filters, **fields})
    assert answer.status_code == 200, answer.content
    assert answer.json()["status"] == "completed"
    return str(answer.json()["id"])


def fetch(program: Program, export_id: str, **fields: Any) -> Any:
    answer = program.post(EXPORT, {"memory_export_id": export_id, **fields})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_schema_of_one_memory_gives_one_for_each(program: Program) -> None:
    given = fetch(program, create(program, MEMORY))
    assert given == {"results": [{"memory": ROME, "user_id": "alex"},
                                 {"memory": TEA, "user_id": "alex"}]}  # fmt: skip
    as_text = create(program, json.dumps(MEMORY), {}, user_id="alex")
    assert fetch(program, as_text) == given


def test_a_schema_of_a_list_is_filled_as_it_is(program: Program) -> None:
    given = fetch(program, create(program, NESTED))
    assert given["user_id"] == "alex"
    rome, tea = given["memories"]
    assert (rome["content"], rome["agent_id"]) == (ROME, "ada")
    assert (tea["content"], tea["agent_id"], tea["metadata"]) == (TEA, None, {"n": 1})
    texts = {"type": "object", "properties": {"memories": {"type": "array", "items": TEXT}}}
    assert fetch(program, create(program, texts)) == {"memories": [ROME, TEA]}
    assert fetch(program, create(program, {"type": "array", "items": TEXT})) == [ROME, TEA]
    assert fetch(program, create(program, MEMORY, {"user_id": "nobody"})) == {"results": []}


def test_an_export_tells_what_is_remembered_when_it_is_fetched(program: Program) -> None:
    export_id = create(program, MEMORY)
    ski = add(program, "I ski.", user_id="alex")["id"]
    assert len(fetch(program, export_id)["results"]) == 3
    assert fetch(program, export_id, filters={"keywords": "ski"})["results"] == [
        {"memory": "I ski.", "user_id": "alex"}
    ]
    program.request("DELETE", f"{MEMORIES}{ski}/")
    assert len(fetch(program, export_id)["results"]) == 2
    (row,) = get_redis_connection("default").lrange(
        f"{program.tenant.id}:mem0_exports:{program_id(program)}", 0, -1
    )
    assert TEA not in row.decode()


def program_id(program: Program) -> str:
    (key,) = get_redis_connection("default").keys(f"{program.tenant.id}:mem0_exports:*")
    return str(key.decode().split(":")[2])


def test_the_newest_export_of_the_same_people_is_found_by_filters(program: Program) -> None:
    create(program, NESTED)
    create(program, MEMORY, {"user_id": "bea"})
    newest = create(program, {"type": "object", "properties": {"text": TEXT}})
    by_filters = program.post(EXPORT, {"filters": {"AND": [{"created_at": {"gte": 0}}, OF_ALEX]}})
    assert (
        by_filters.json() == fetch(program, newest) == {"results": [{"text": ROME}, {"text": TEA}]}
    )
    assert program.post(EXPORT, {"user_id": "bea"}).json()["results"] == [
        {"memory": COFFEE, "user_id": "bea"}
    ]
    assert "no export of these users" in refusal(program.post(EXPORT, {"user_id": "carl"}), 404)
    assert "no export of the id 'x'" in refusal(
        program.post(EXPORT, {"memory_export_id": "x"}), 404
    )
    assert "say which export is meant" in refusal(program.post(EXPORT, {}))


def test_keys_export_what_is_theirs(program: Program) -> None:
    mine = bound(program, user_id="alex", scopes=["read"])
    everything = create(mine, MEMORY, ANY)
    assert {each["user_id"] for each in fetch(mine, everything)["results"]} == {"alex"}
    assert fetch(mine, create(mine, MEMORY, {"user_id": "bea"})) == {"results": []}
    assert fetch(mine, create(mine, MEMORY, {})) == fetch(mine, everything)
    # An export is of the key that asked for it.
    refusal(program.post(EXPORT, {"memory_export_id": everything}), 404)
    writer = bound(program, scopes=["write"])
    assert "needs the scope read" in refusal(writer.post(EXPORTS, {}), 403)
    assert "needs the scope read" in refusal(writer.post(EXPORT, {}), 403)
    assert "Say whose memories are meant" in refusal(program.post(EXPORTS, {"schema": MEMORY}))


def test_a_key_has_so_many_exports(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST", 2)
    first, second, third = (create(program, MEMORY) for _ in range(3))
    refusal(program.post(EXPORT, {"memory_export_id": first}), 404)
    assert fetch(program, second) == fetch(program, third)
    (key,) = get_redis_connection("default").keys(f"{program.tenant.id}:mem0_exports:*")
    left = get_redis_connection("default").ttl(key)
    assert requests.SECONDS - 60 < left <= requests.SECONDS


def test_an_erasure_forgets_what_was_asked_for(program: Program) -> None:
    export_id = create(program, MEMORY)
    assert remove_keys(Person(program.tenant.id, ("zoe",), None)) == 1
    keys = get_redis_connection("default").keys(all_keys_pattern(program.tenant.id))
    assert not [key for key in keys if b"mem0_exports" in key]
    assert "until somebody is erased" in refusal(
        program.post(EXPORT, {"memory_export_id": export_id}), 404
    )


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (PROFILE, "memories do not have: city, drinks."),
        ({"type": "object", "properties": {"memory": TEXT, "mood": TEXT}}, "do not have: mood."),
        ({"type": "object", "properties": {"memory": {"type": "integer"}}}, "do not have: memory."),
        ({"type": "array", "items": {"type": "object", "properties": {"id": TEXT, "x": TEXT}}},
         "do not have: [].x."),
        ({"properties": {"memories": {"type": "array", "items": {"properties": {
            "content": TEXT, "mood": TEXT}}}, "city": TEXT}},
         "do not have: memories[].mood, city."),
        ({"type": "object"}, "(an object without properties)"),
        ({}, "no JSON schema"),
        ([], "no JSON schema"),
        ("{", "schema is not JSON"),
        (7, "no JSON schema"),
        ({"properties": {"memory": {"type": "string", "pattern": "(a+)+$"}}},
         "schema.properties.memory has 'pattern', which is not read here"),
        ({"properties": {"memory": {"type": "text"}}},
         "schema.properties.memory.type cannot be so"),
        ({"properties": {"a": {"$ref": "http://a.test/"}}}, "refers to 'http://a.test/'"),
        ({"$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}}}}, "refers to itself"),
        ({"$defs": {f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 2} for n in range(8)}
          | {"D8": TEXT}}, "more than 1000 parts"),
        ({"title": "x" * 20_000}, "more than 16,384 characters"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_filled_says_why(program: Program, schema: Any, told: str) -> None:
    assert told in refusal(program.post(EXPORTS, {"schema": schema, "filters": OF_ALEX}))


def test_memories_that_do_not_fit_are_told(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    required = {**MEMORY, "required": ["user_id"]}
    export_id = create(program, required, {"agent_id": "ada"})
    told = refusal(program.post(EXPORT, {"memory_export_id": export_id}))
    assert "results[0].user_id: None is not of type 'string'" in told
    monkeypatch.setattr(views, "MOST_EXPORTED", 1)
    told = refusal(program.post(EXPORT, {"memory_export_id": create(program, MEMORY)}))
    assert "more than 1 memories" in told


def test_a_language_model_fits_what_memories_say_into_other_schemas(
    program: Program, model: LLMServer
) -> None:
    export_id = create(program, PROFILE, export_instructions="Name no brands.")
    profile = {"city": "Rome", "drinks": ["tea"]}
    model.answers.append(Answer({"content": f"```json\n{json.dumps(profile)}\n```"}))
    assert fetch(program, export_id) == profile
    (asked,) = model.requests
    prompt, material = (each["content"] for each in asked.body["messages"])
    assert "Name no brands." in prompt
    assert '"drinks"' in prompt
    assert TEA in material
    assert COFFEE not in material
    # What memories fill by themselves needs no language model.
    create_plain = create(program, MEMORY)
    assert len(fetch(program, create_plain)["results"]) == 2
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("I cannot.", "it is no JSON"),
        ('{"city": "Rome"}', ": 'drinks' is a required property"),
        ('{"drinks": "tea"}', ".drinks: 'tea' is not of type 'array'"),
    ],
)
def test_an_answer_that_does_not_fit_is_an_error(
    program: Program, model: LLMServer, answer: str, told: str
) -> None:
    export_id = create(program, PROFILE)
    model.answers.append(Answer({"content": answer}))
    assert told in refusal(program.post(EXPORT, {"memory_export_id": export_id}), 503)


def test_too_much_is_not_given_to_a_language_model(
    program: Program, model: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = {"memory_export_id": create(program, PROFILE)}
    monkeypatch.setattr(views, "LONGEST_MATERIAL", 100)
    assert "Narrow the filters" in refusal(program.post(EXPORT, fetched))
    monkeypatch.undo()
    monkeypatch.setattr(asking._waiting, "acquire", lambda blocking: False)
    assert "too many requests" in refusal(program.post(EXPORT, fetched), 503)
    assert model.requests == []
