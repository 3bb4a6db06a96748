"""mem0's REST: adding, finding, changing and deleting memories of an entity, and refusals."""

from itertools import cycle, islice
from typing import Any

import pytest

from konstruct.orchestrator.models import Agent
from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mem0.calls import (
    ADD,
    ANY,
    BATCH,
    COFFEE,
    ENTITIES,
    LIST,
    MEMORIES,
    OFFICE,
    ROME,
    SEARCH,
    TEA,
    add,
    listed,
    refusal,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"user_id": "alex"}, [TEA, ROME]),
        ({"user_id": {"eq": "alex"}, "run_id": {"eq": "*"}}, [TEA]),
        ({"user_id": {"in": ["alex", "bea"]}}, [TEA, ROME, COFFEE]),
        ({"user_id": {"ne": "alex"}}, [COFFEE, OFFICE]),
        ({"user_id": "*"}, [TEA, ROME, COFFEE]),
        ({"user_id": None}, [OFFICE]),
        ({"agent_id": "ada"}, [ROME, OFFICE]),
        ({"agent_id": {"ne": "nobody"}}, [TEA, ROME, COFFEE, OFFICE]),
        ({"agent_id": {"ne": "ada"}}, [TEA, COFFEE]),
        ({"run_id": "r1"}, [TEA]),
        ({"run_id": None}, [ROME, COFFEE, OFFICE]),
        ({"run_id": {"ne": "r1"}}, [ROME, COFFEE, OFFICE]),
        ({"app_id": {"in": ["a1", "a2"]}}, [ROME]),
        ({"OR": [{"run_id": "r1"}, {"user_id": "bea"}]}, [TEA, COFFEE]),
        ({"AND": [{"user_id": "alex"}, {"NOT": {"run_id": "r1"}}]}, [ROME]),
        ({"AND": [ANY, {"NOT": [{"user_id": "alex"}, {"user_id": "bea"}]}]}, [OFFICE]),
        ({"user_id": "*", "metadata": {"n": {"gte": 2}}}, [ROME]),
        ({"user_id": "*", "metadata": {"n": {"ne": 1}}}, [ROME, COFFEE]),
        ({"user_id": "*", "metadata": {"n": None}}, []),
        ({"user_id": "*", "metadata": {"n": {"in": [1, 5]}, "topic": "*"}}, [ROME]),
        ({"user_id": "*", "metadata": {"topic": {"contains": "Home"}}}, [ROME]),
        ({"user_id": "*", "metadata": {"topic": {"icontains": "HOME"}}}, [ROME]),
        ({"user_id": "*", "categories": {"contains": "plac"}}, [ROME]),
        ({"user_id": "*", "categories": ["places", "food"]}, [ROME]),
        ({"user_id": "*", "keywords": {"contains": "drink"}}, [TEA, COFFEE]),
        ({"user_id": "*", "keywords": {"icontains": "i LIVE"}}, [ROME]),
        ({"user_id": "*", "keywords": {"contains": "%"}}, []),
        ({"user_id": "*", "created_at": {"gte": "2020-01-01"}}, [TEA, ROME, COFFEE]),
        ({"user_id": "*", "created_at": {"lt": "2020-01-01T00:00:00Z"}}, []),
        ({"user_id": "*", "timestamp": {"gt": 4102444800}}, []),
    ],
)
def test_a_filter_finds(program: Program, filters: Any, found: list[str]) -> None:
    assert listed(program, filters) == sorted(found)


def test_memories_are_named_by_id(program: Program) -> None:
    answer = program.post(LIST, {"filters": {"user_id": "alex"}}).json()
    ids = [memory["id"] for memory in answer["results"] if memory["memory"] == TEA]
    assert listed(program, {"user_id": "*", "memory_ids": ids}) == [TEA]


def test_pages_hold_each_memory_once_and_end(program: Program) -> None:
    seen = []
    for page in (1, 2, 3):
        answer = program.post(f"{LIST}?page={page}&page_size=2", {"filters": ANY}).json()
        seen += [memory["memory"] for memory in answer["results"]]
        assert answer["count"] == 4
        assert (answer["next"] is None, answer["previous"] is None) == (page > 1, page == 1)
    assert sorted(seen) == sorted([TEA, ROME, COFFEE, OFFICE])


@pytest.mark.parametrize("path", [LIST, SEARCH])
def test_list_without_a_filter_is_refused(program: Program, path: str) -> None:
    for filters in (None, {}, {"metadata": {"n": 1}}):
        query = {"query": "a"} if path == SEARCH else {}
        answer = program.post(path, {"filters": filters, **query})
        assert refusal(answer).startswith("The filters name no owner")


def test_deleted_memory_is_not_found(program: Program) -> None:
    made = add(program, "I play the oboe.", user_id="alex")
    path = f"{MEMORIES}{made['id']}/"
    assert program.write("PUT", path, {"text": "I play the flute."}).status_code == 200
    assert program.request("DELETE", path).status_code == 200
    assert refusal(program.get(path), 404) == f"there is no memory {made['id']}"
    assert refusal(program.get(f"{path}history/"), 404)
    assert refusal(program.request("DELETE", path), 404)
    assert not {"I play the oboe.", "I play the flute."} & {*listed(program, {"user_id": "alex"})}
    found = program.post(SEARCH, {"query": "flute", "filters": {"user_id": "alex"}}).json()
    assert made["id"] not in {memory["id"] for memory in found["results"]}
    with tenant_scope(program.tenant.id):
        assert not MemoryEntry.objects.filter(content__contains="I play").exists()


def test_all_is_never_deleted(program: Program) -> None:
    for query in ("", "?user_id=*", "?filters={}", '?filters={"metadata":{"n":1}}',
                  "?filters={'user_id':'*'}", '?filters={"NOT":[{"user_id":"zoe"}]}',
                  '?filters={"user_id":{"ne":"alex"}}', '?filters={"user_id":null}',
                  '?filters={"OR":[{"user_id":"alex"},{"agent_id":"*"}]}',
                  '?filters={"OR":[{"user_id":"alex"},{"metadata":{"n":1}}],"user_id":"*"}',
                  "?org_id=o&project_id=p"):  # fmt: skip
        answer = program.request("DELETE", MEMORIES + query)
        assert refusal(answer).startswith("Nothing was deleted"), query
    for query in ("?user=alex", "?user_id=", "?filters=%FF", "?filters=[", "?filters=" + "(" * 4000,
                  "?filters={1:2}", "?filters={b'a':1}", "?filters=" + "-" * 4000 + "1",
                  "?filters=" + "a" * 5000, "?user_id=a&user_id=b", "?user_id=%00"):  # fmt: skip
        refusal(program.request("DELETE", MEMORIES + query))
    assert listed(program, ANY) == sorted([TEA, ROME, COFFEE, OFFICE])


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("?user_id=alex", [COFFEE, OFFICE]),
        ("?user_id=alex&run_id=r1", [ROME, COFFEE, OFFICE]),
        ("?agent_id=ada", [TEA, COFFEE]),
        ("?app_id=a1", [TEA, COFFEE, OFFICE]),
        ("?user_id=zoe", [TEA, ROME, COFFEE, OFFICE]),
        ('?filters={"user_id":"bea"}', [TEA, ROME, OFFICE]),
        ("?filters={'AND': [{'user_id': 'bea'}]}", [TEA, ROME, OFFICE]),
        ('?filters={"OR":[{"user_id":{"in":["bea"]}},{"run_id":"r1"}]}', [ROME, OFFICE]),
        ('?filters={"AND":[{"metadata":{"n":1}},{"run_id":"r1"}]}', [ROME, COFFEE, OFFICE]),
    ],
)
def test_memories_of_a_user_are_deleted(program: Program, query: str, left: list[str]) -> None:
    assert program.request("DELETE", MEMORIES + query).status_code == 200
    assert listed(program, ANY) == sorted(left)


def test_entities_and_their_deletion(program: Program) -> None:
    def entities() -> list[tuple[str, str, int]]:
        found = program.get(ENTITIES).json()["results"]
        return [(entity["type"], entity["name"], entity["total_memories"]) for entity in found]

    assert entities() == [
        ("agent", "ada", 2), ("app", "a1", 1), ("run", "r1", 1), ("user", "alex", 2),
        ("user", "bea", 1),
    ]  # fmt: skip
    page = program.get(f"{ENTITIES}?page=2&page_size=2").json()
    assert [entity["name"] for entity in page["results"]] == ["r1", "alex"]
    answer = program.request("DELETE", "/mem0/v2/entities/agent/ada/")
    assert answer.json()["count"] == 2
    again = refusal(program.request("DELETE", "/mem0/v2/entities/agent/ada/"), 404)
    assert again == "there are no memories of the agent 'ada' for this key"
    assert refusal(program.request("DELETE", "/mem0/v2/entities/user/*/"), 404)
    assert entities() == [("run", "r1", 1), ("user", "alex", 1), ("user", "bea", 1)]
    assert program.request("DELETE", "/mem0/v2/entities/run/r1/").json()["count"] == 1
    with tenant_scope(program.tenant.id):
        assert Agent.objects.filter(name="ada").exists()


@pytest.mark.parametrize("path", ["v1/memories/search/", "v2/memories/", "v1/entities/run/r1/"])
def test_addresses_of_clients_before_version_2_name_the_remedy(program: Program, path: str) -> None:
    assert "must be upgraded" in refusal(program.post(f"/mem0/{path}", {}), 404)


def test_an_unknown_agent_is_an_error_that_names_the_agents(program: Program) -> None:
    for program_or_bound in (program, program.with_key(user_id="alex")):
        for unknown in ("travel desk", str(program.tenant.id)):
            body = {"messages": "I fly.", "user_id": "alex", "agent_id": unknown}
            error = refusal(program_or_bound.post(ADD, body), 422)
            assert f"No agent has the name or id '{unknown}'" in error
            assert "The agents are: 'ada'" in error
    with tenant_scope(program.tenant.id):
        assert not Agent.objects.exclude(name="ada").exists()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"messages": "a"}, "the memory has no owner"),
        ({"messages": "a", "run_id": "r"}, "a memory of run_id alone would be every user's"),
        ({"messages": "a", "user_id": "a", "filters": {"user_id": "b"}}, "user_id: The request na"),
        ({"messages": "a", "user_id": "a", "metadata": {"run_id": "x"}, "run_id": "y"}, "run_id: "),
        ({"messages": [{}] * 101, "user_id": "a"}, "messages: Give at most 100 items"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}], "user_id": "a"},
         "Only text is remembered here"),
        ({"messages": "a", "user_id": "a", "timestamp": "1899-01-01"}, "from 1970-01-01"),
        ({"messages": "a", "user_id": "a", "expiration_date": "9999-12-31"}, "expiration_date"),
        ({"messages": "a", "user_id": "a", "usr": 1}, "usr: Unknown field."),
        ({"messages": "a", "user_id": "a", "run_id": "é" * 255 + "x"}, "run_id: "),
    ],
)  # fmt: skip
def test_invalid_memory_is_refused(program: Program, body: Any, error: str) -> None:
    before = listed(program, ANY)
    assert error in refusal(program.post(ADD, body))
    assert listed(program, ANY) == before


def test_messages_of_a_conversation_are_stored(program: Program) -> None:
    messages = [
        {"role": "system", "content": "You are kind."},
        {"role": "user", "content": [{"type": "text", "text": "I ski."}]},
        {"role": "assistant", "content": "Where?", "name": "ada"},
        {"role": "user", "content": "  "},
        {"role": "user", "content": None},
    ]
    body = {"messages": messages, "user_id": "carl"}
    inferred = program.post(ADD, body).json()
    assert [(memory["event"], memory["memory"]) for memory in inferred["results"]] == [
        ("ADD", "I ski.")
    ]
    assert "No language model is configured" in inferred["ignored"]["infer"]
    kept = program.post(ADD, {**body, "infer": False}).json()
    assert sorted(kept["ignored"]) == ["messages[0]", "messages[3]", "messages[4]"]
    assert [
        (memory["event"], memory["memory"], memory["metadata"]) for memory in kept["results"]
    ] == [("NONE", "I ski.", {}), ("ADD", "Where?", {"role": "assistant"})]


def test_times_of_a_memory(program: Program) -> None:
    made = add(program, "I skate.", user_id="carl", timestamp=1_700_000_000,
               expiration_date="2100-01-31")  # fmt: skip
    assert (made["timestamp"], made["expiration_date"]) == ("2023-11-14T22:13:20Z", "2100-01-31")
    path = f"{MEMORIES}{made['id']}/"
    answer = program.write("PUT", path, {"expiration_date": "2020-01-31"})
    assert "2020-02-01T00:00:00+00:00 is not after 2023-11-14T22:13:20" in refusal(answer)
    answer = program.write("PUT", path, {"expiration_date": "2024-01-31"})
    assert answer.status_code == 200
    assert listed(program, {"user_id": "carl"}) == []
    assert listed(program, {"user_id": "carl"}, show_expired=True) == ["I skate."]
    assert refusal(program.get(path), 404)
    back = program.write("PUT", path, {"expiration_date": None})
    assert back.json()["expiration_date"] is None
    assert listed(program, {"user_id": "carl"}) == ["I skate."]


def test_a_change_keeps_app_and_run_and_is_in_the_history(program: Program) -> None:
    made = add(program, "I row.", user_id="carl", run_id="r9", metadata={"a": 1})
    path = f"{MEMORIES}{made['id']}/"
    body = {"text": "I row daily.", "metadata": {"b": 2}}
    changed = program.write("PUT", path, body).json()
    assert (changed["id"], changed["run_id"], changed["metadata"]) == (
        made["id"], "r9", {"a": 1, "b": 2},
    )  # fmt: skip
    history = program.get(f"{path}history/").json()
    assert [
        (version["event"], version["old_memory"], version["new_memory"]) for version in history
    ] == [("ADD", None, "I row."), ("UPDATE", "I row.", "I row daily.")]
    add(program, TEA, user_id="carl")
    twice = program.write("PUT", path, {"text": TEA})
    assert refusal(twice, 409)


def test_batch_is_stored_completely_or_not_at_all(program: Program) -> None:
    ids = [add(program, text, user_id="carl")["id"] for text in ("I run.", "I swim.")]
    unknown = str(program.tenant.id)

    def send(method: str, memories: Any) -> Any:
        return program.write(method, BATCH, {"memories": memories})

    changes = [{"memory_id": memory_id, "text": f"I do {n}."} for n, memory_id in enumerate(ids)]
    assert refusal(send("PUT", [*changes, {"memory_id": unknown, "text": "a"}]), 404)
    assert refusal(send("DELETE", [{"memory_id": memory_id} for memory_id in [*ids, unknown]]), 404)
    assert listed(program, {"user_id": "carl"}) == ["I run.", "I swim."]
    assert send("PUT", changes).json() == {"message": "Successfully updated 2 memories"}
    assert listed(program, {"user_id": "carl"}) == ["I do 0.", "I do 1."]
    answer = send("DELETE", [{"memory_id": memory_id} for memory_id in [ids[0], *ids]])
    assert answer.json() == {"message": "Successfully deleted 2 memories"}
    assert listed(program, {"user_id": "carl"}) == []
    for memories in (None, [], "a", [{}], [{"memory_id": "m"}], [{"memory_id": unknown}] * 1001):
        assert refusal(send("DELETE", memories))
    assert "Give at most 100 items" in refusal(send("PUT", [{"memory_id": unknown}] * 101))


def test_the_same_request_with_a_key_is_done_once(program: Program) -> None:
    body = {"messages": "I sail.", "user_id": "carl", "infer": False, "metadata": {"n": 1}}
    headers = {"Idempotency-Key": "sail"}
    first = program.post(ADD, body, headers=headers).json()["results"]
    again = program.post(ADD, body, headers=headers).json()["results"]
    assert ([event["event"] for event in first], [event["event"] for event in again]) == (
        ["ADD"], ["NONE"],
    )  # fmt: skip
    assert first[0]["id"] == again[0]["id"]
    assert program.request("DELETE", f"{MEMORIES}{first[0]['id']}/").status_code == 200
    assert program.post(ADD, body, headers=headers).json()["results"] == []
    other = program.post(ADD, {**body, "messages": "I surf."}, headers=headers)
    assert "You have sent Idempotency-Key 'sail' with another request." in refusal(other, 422)


@pytest.mark.parametrize(
    ("method", "path", "error"),
    [
        ("PUT", "api/v1/webhooks/7/", "webhooks"),
        ("POST", "v1/summary/", "summaries"),
        ("POST", "v1/exports/", "exports"),
        ("GET", "v2/entities/user/alex/profile/", "profiles"),
        ("GET", "api/v1/orgs/organizations/x/projects/y/", "organizations"),
        ("POST", "v2/profiles/jobs/", "profiles"),
    ],
)
def test_unsupported_route_is_501_with_a_remedy(
    program: Program, method: str, path: str, error: str
) -> None:
    answer = program.request(method, f"/mem0/{path}")
    assert refusal(answer, 501).startswith("Konstruct does not offer this: ")
    assert error in refusal(answer, 501)


@pytest.mark.parametrize("path", ["", "v1/memories/m1/", "v3/", "v1/memories/%00/", "%FF/"])
def test_an_unknown_path_is_answered_in_the_same_form(program: Program, path: str) -> None:
    assert refusal(program.get(f"/mem0/{path}"), 404).startswith("Nothing is at this address")


def test_user_key_reads_and_writes_only_memories_of_its_user(program: Program) -> None:
    bound_program = program.with_key(user_id="alex", scopes=["read", "write"])
    assert listed(bound_program, {"user_id": "*"}) == listed(bound_program, {}) == [TEA, ROME]
    assert (
        listed(bound_program, {"user_id": "bea"})
        == listed(bound_program, {"NOT": [{"user_id": "alex"}]})
        == []
    )
    found = bound_program.post(
        SEARCH, {"query": "coffee", "filters": {"OR": [ANY, {"user_id": "bea"}]}}
    )
    assert {memory["user_id"] for memory in found.json()["results"]} == {"alex"}
    assert add(bound_program, "I hum.")["user_id"] == "alex"
    body = {"messages": "I am not bea.", "user_id": "bea"}
    assert "bound to the user 'alex'" in refusal(bound_program.post(ADD, body), 403)
    (coffee,) = program.post(LIST, {"filters": {"user_id": "bea"}}).json()["results"]
    path = f"{MEMORIES}{coffee['id']}/"
    change = {"data": b'{"text": "I drink nothing."}', "content_type": "application/json"}
    for method, address, options in (
        ("GET", path, {}),
        ("GET", f"{path}history/", {}),
        ("PUT", path, change),
        ("DELETE", path, {}),
    ):
        assert refusal(bound_program.request(method, address, **options), 404)
    assert bound_program.request("DELETE", f"{MEMORIES}?user_id=bea").json()["count"] == 0
    assert refusal(bound_program.request("DELETE", "/mem0/v2/entities/user/bea/"), 404)
    names = {entity["name"] for entity in bound_program.get(ENTITIES).json()["results"]}
    assert names == {"ada", "a1", "r1", "alex"}
    assert bound_program.request("DELETE", f"{MEMORIES}?agent_id=ada").json()["count"] == 1
    assert listed(program, ANY) == sorted([TEA, COFFEE, OFFICE, "I hum."])


def test_a_key_of_an_agent_sees_and_writes_only_its_own(program: Program) -> None:
    adas = program.with_key(agent_id=program.agent.id)
    assert listed(adas, ANY) == [ROME, OFFICE]
    assert add(adas, "I hum.", user_id="bea")["agent_id"] == "ada"
    body = {"messages": "a", "user_id": "bea", "agent_id": "bo"}
    error = refusal(adas.post(ADD, body), 422)
    assert "bound to the agent 'ada', and the request names 'bo'" in error
    assert adas.request("DELETE", f"{MEMORIES}?user_id=alex").json()["count"] == 1
    assert listed(program, {"user_id": "alex"}) == [TEA]


def test_scopes_are_needed(program: Program) -> None:
    reader = program.with_key(scopes=["read"])
    assert listed(reader, {"user_id": "bea"}) == [COFFEE]
    assert "needs the scope write" in refusal(reader.post(ADD, {}), 403)
    assert "needs the scope write" in refusal(reader.request("DELETE", MEMORIES), 403)
    assert "needs the scope read" in refusal(program.with_key(scopes=["write"]).get(ENTITIES), 403)


def test_request_requires_a_key_and_accepts_the_token_scheme_of_mem0(program: Program) -> None:
    ping = "/mem0/v1/ping/"
    answer = program.get(ping, headers={"Authorization": f"Token {program.key}"})
    assert answer.json()["project_id"] == str(program.tenant.id)
    refusal(program.get(ping, headers={"Authorization": ""}), 401)
    refusal(program.get(ping, headers={"Authorization": "Token nonsense"}), 401)
    refusal(program.get(ping, headers={"Authorization": f"Token {program.key[:-1]}"}), 401)


ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 10**400, 1e999, "", " ", "\0", "\ud800", "\u202e", "x" * 100_000, [], [[]],
    {}, {"\ud800": "\udfff"}, {"a": {"a": {"a": {}}}}, ["\ud800"], [{"memory_id": "\ud800"}],
    [{"role": "user", "content": "\ud800"}], [{"role": "user", "content": {"type": "text"}}],
)  # fmt: skip
FIELDS = {
    ("POST", ADD): ("messages", "text", "filters", "metadata", "infer", "timestamp", "user_id",
                    "expiration_date", "agent_id", "run_id", "app_id", "custom_categories"),
    ("POST", LIST): ("filters", "fields", "categories", "start_date", "end_date", "show_expired"),
    ("POST", SEARCH): ("query", "filters", "top_k", "threshold", "metadata", "fields",
                       "categories", "show_expired", "rerank"),
    ("PUT", BATCH): ("memories",),
    ("DELETE", BATCH): ("memories",),
}  # fmt: skip
RIGHT = {"query": "a", "messages": "a", "user_id": "zoe", "filters": {"user_id": "zoe"}}


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff", b'{"a": 1, "a": 2}'])
def test_body_that_is_not_json_is_refused(program: Program, body: bytes) -> None:
    assert refusal(program.post(SEARCH, body))


def test_a_body_that_is_too_large_is_refused(program: Program) -> None:
    refusal(program.post(ADD, {"messages": "a" * 3_000_000, "user_id": "a"}), 413)
    assert "max" not in refusal(program.post(ADD, {"messages": "a" * 40_000, "user_id": "a"}))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), sorted(FIELDS))
def test_no_field_is_a_500(program: Program, settings: Any, method: str, path: str) -> None:
    settings.RATE_LIMIT_BURST = settings.KEY_RATE_LIMIT_BURST = 1_000_000
    names = FIELDS[method, path]
    right = {name: value for name, value in RIGHT.items() if name in names}
    turns = cycle(ODD_VALUES)
    for name in names:
        for odd in islice(turns, 2):
            answer = program.write(method, path, right | {name: odd})
            assert answer.status_code in (200, 400, 404, 422), (name, odd, answer.content)
