"""History import by REST, and its result."""

from pathlib import Path
from typing import Any

import pytest

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.history_import.lines import FIELDS, OWNER_FIELDS, REQUIRED
from konstruct.orchestrator.models import Agent
from memory import indexing
from memory.conversations import short_term
from memory.models import Message, PendingEmbedding
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program
from tests.openapi import described

IMPORT = "/api/v1/messages/import/"
ROOT = Path(__file__).resolve().parents[4]


def line(number: int, **fields: Any) -> dict[str, Any]:
    """Return one turn of a history."""
    return {
        "external_id": f"crm-{number}",
        "agent": "ada",
        "user_id": "maria",
        "thread_id": "march",
        "role": "user" if number % 2 else "assistant",
        "content": f"Sentence number {number} of the history.",
        "created_at": f"2026-03-14T09:{number:02}:00Z",
        **fields,
    }


def contents(program: Program) -> list[str]:
    """Return the contents of the transcript in the order of insertion."""
    with tenant_scope(program.tenant.id):
        return list(Message.objects.order_by("number").values_list("content", flat=True))


def test_history_is_written_in_its_own_order_and_waits_for_embeddings(program_a: Program) -> None:
    response = program_a.post(IMPORT, {"messages": [line(2), line(1, name="Maria"), line(3)]})
    document = response.json()
    assert response.status_code == 200
    assert (document["created"], document["exists"], document["invalid"]) == (3, 0, 0)
    assert [message["external_id"] for message in document["results"]] == [
        "crm-2",
        "crm-1",
        "crm-3",
    ]
    assert contents(program_a) == [f"Sentence number {n} of the history." for n in (1, 2, 3)]
    with tenant_scope(program_a.tenant.id):
        first = Message.objects.order_by("number").first()
        assert first is not None
        assert (first.name, first.channel, first.role) == ("Maria", "import", "user")
        assert first.created_at.isoformat() == "2026-03-14T09:01:00+00:00"
        assert str(first.pk) == document["results"][1]["message_id"]
        assert PendingEmbedding.objects.count() == 3
        assert indexing.drain(program_a.tenant.id).stored == 3


def test_repeated_import_stores_no_duplicates(program_a: Program) -> None:
    first = program_a.post(IMPORT, {"messages": [line(1), line(2)]}).json()
    again = program_a.post(
        IMPORT, {"messages": [line(1, content="Changed."), line(2), line(3), line(3)]}
    ).json()
    assert [message["status"] for message in again["results"]] == [
        "exists",
        "exists",
        "created",
        "exists",
    ]
    assert [message["message_id"] for message in again["results"][:2]] == [
        message["message_id"] for message in first["results"]
    ]
    assert again["results"][2]["message_id"] == again["results"][3]["message_id"]
    assert contents(program_a) == [f"Sentence number {n} of the history." for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"role": "system"}, "role='system' is not one of user, assistant"),
        ({"content": " \n "}, "is blank"),
        ({"content": "a\0b"}, "U+0000 (NUL) at 1"),
        ({"content": "\u200b\u3164"}, "is blank"),
        ({"user_id": "le\u00ada"}, "U+00AD (SOFT HYPHEN) at 2"),
        ({"name": "Le\u200ba"}, "U+200B (ZERO WIDTH SPACE) at 2"),
        ({"thread_id": ".."}, "use another id"),
        ({"created_at": "2931-01-01T00:00:00Z"}, "give one from 1970-01-01T00:00:00Z to now"),
        ({"created_at": "1899-12-31T00:00:00Z"}, "give one from 1970-01-01T00:00:00Z to now"),
        ({"content": "x" * 40_000}, "40000 characters"),
        ({"created_at": "yesterday"}, "created_at='yesterday' is not a time"),
        ({"created_at": "2026-13-45T00:00:00Z"}, "is not a time"),
        ({"created_at": "2026-03-14T09:30:00"}, "no time zone"),
        ({"agent": "nobody"}, "'nobody'"),
        ({"external_id": ""}, "external_id='' is empty"),
        ({"external_id": "x" * 300}, "longer than 255"),
        ({"user_id": 7}, "user_id=7 is not text"),
        ({"mood": "fine"}, "unknown: mood"),
    ],
)
def test_invalid_line_is_reported_and_other_lines_are_imported(
    program_a: Program, change: dict[str, Any], words: str
) -> None:
    document = program_a.post(IMPORT, {"messages": [line(1), line(2, **change)]}).json()
    assert [message["status"] for message in document["results"]] == ["created", "invalid"]
    assert words in document["results"][1]["error"]
    assert document["results"][1]["message_id"] is None
    assert contents(program_a) == ["Sentence number 1 of the history."]


@pytest.mark.parametrize("field", [*REQUIRED, *OWNER_FIELDS])
def test_missing_fields_are_named_for_each_line(program_a: Program, field: str) -> None:
    create_agent(tenant_id=program_a.tenant.id, name="bo")
    lacking = {name: value for name, value in line(1).items() if name != field}
    document = program_a.post(IMPORT, {"messages": [lacking, line(2), lacking]}).json()
    assert (document["created"], document["invalid"]) == (1, 2)
    for index in (0, 2):
        result = document["results"][index]
        assert (result["index"], result["status"]) == (index, "invalid")
        (error,) = result["errors"]
        assert error["field"] == field
        assert error["detail"] == f"missing: {field}, which is required"
        assert result["error"].startswith(f"{error['detail']} (a line has role and content; agent")


def test_all_errors_of_a_line_are_reported_together(program_a: Program) -> None:
    wrong = {"agent": "nobody", "role": "bot", "created_at": 7, "content": " ", "mood": "fine"}
    (result,) = program_a.post(IMPORT, {"messages": [wrong]}).json()["results"]
    assert [error["field"] for error in result["errors"]] == [
        "user_id", "mood", "role", "content", "created_at", "agent",
    ]  # fmt: skip


BARE = [
    {"role": "user", "content": "Is it on Monday?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "And mine?"},
    {"role": "assistant", "content": "Yes."},
]


def bare(program: Program, *lines: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return the results of maria's lines with only a speaker."""
    response = program.post(IMPORT, {"user_id": "maria", "messages": list(lines)}, **options)
    assert response.status_code == 200, response.content
    document: dict[str, Any] = response.json()
    return document


def statuses(document: dict[str, Any]) -> str:
    return "".join(message["status"][0] for message in document["results"])


def test_role_and_content_suffice_with_defaults(program_a: Program) -> None:
    document = bare(program_a, *BARE)
    assert statuses(document) == "cccc"
    assert contents(program_a) == [message["content"] for message in BARE]
    results = document["results"]
    assert {message["thread_id"] for message in results} == {
        message["user_id"] for message in results
    }
    assert {message["agent_id"] for message in results} == {str(program_a.agent.id)}
    assert len({message["external_id"] for message in results}) == 4
    assert len({message["created_at"] for message in results}) == 1
    window = short_term.get_recent_messages(program_a.tenant.id, program_a.agent.id, "maria")
    assert [turn["message_id"] for turn in window] == [message["message_id"] for message in results]


def test_an_inactive_agent_has_to_be_named(program_a: Program) -> None:
    other = create_agent(tenant_id=program_a.tenant.id, name="bo")
    with tenant_scope(program_a.tenant.id):
        Agent.objects.filter(pk=other.pk).update(is_active=False)
    (of_none,) = bare(program_a, BARE[0])["results"]
    assert of_none["agent_id"] == str(program_a.agent.id)
    (of_other,) = bare(program_a, {**BARE[0], "agent": "bo"})["results"]
    assert of_other["agent_id"] == str(other.pk)


def test_repeated_or_longer_body_stores_no_duplicates(program_a: Program) -> None:
    first = bare(program_a, *BARE)
    again = bare(program_a, *BARE)
    assert statuses(again) == "eeee"
    assert [message | {"status": "created"} for message in again["results"]] == first["results"]
    more = {"role": "user", "content": "Thanks."}
    assert statuses(bare(program_a, *BARE, more, more)) == "eeeecc"
    assert statuses(bare(program_a, *BARE, more, more)) == "eeeeee"
    assert len(contents(program_a)) == 6


def test_same_text_at_another_place_is_another_message(program_a: Program) -> None:
    yes = {"role": "user", "content": "Yes."}
    assert statuses(bare(program_a, yes)) == statuses(bare(program_a, BARE[1])) == "c"
    assert statuses(bare(program_a, yes)) == "c"
    assert statuses(bare(program_a, yes)) == "e"  # sent again
    for key in ("k1", "k2"):
        for status in "ce":
            assert statuses(bare(program_a, yes, headers={"Idempotency-Key": key})) == status
    assert len(contents(program_a)) == 5


def test_time_distinguishes_turns(program_a: Program) -> None:
    at = {"created_at": "2026-03-14T09:30:00Z"}
    same = {"created_at": "2026-03-14T10:30:00+01:00"}
    assert statuses(bare(program_a, BARE[1] | at, BARE[1] | at)) == "cc"
    assert statuses(bare(program_a, BARE[1] | same)) == "e"
    assert statuses(bare(program_a, BARE[1] | {"created_at": "2026-03-15T09:30:00Z"})) == "c"


def test_lines_override_fields_of_the_request(program_a: Program) -> None:
    create_agent(tenant_id=program_a.tenant.id, name="bo")
    lines = [BARE[0], BARE[0] | {"user_id": "theo", "thread_id": "t"}, BARE[0] | {"agent": "bo"}]
    body = {"agent": "ada", "user_id": "maria", "thread_id": "common", "messages": lines}
    document = program_a.post(IMPORT, body).json()
    keys = [(message["user_id"], message["thread_id"]) for message in document["results"]]
    assert keys == [("maria", "common"), ("theo", "t"), ("maria", "common")]
    assert document["results"][2]["agent_id"] != document["results"][0]["agent_id"]
    (nobodys,) = program_a.post(IMPORT, {"messages": BARE[:1]}).json()["results"]
    assert [message["field"] for message in nobodys["errors"]] == ["agent", "user_id"]
    assert program_a.post(IMPORT, body | {"agent": "nobody"}).status_code == 422


def test_bound_key_imports_only_messages_of_its_user(program_a: Program) -> None:
    bound = program_a.with_key(user_id="maria", agent_id=program_a.agent.id)
    create_agent(tenant_id=program_a.tenant.id, name="bo")
    (result,) = bound.post(IMPORT, {"messages": BARE[:1]}).json()["results"]
    assert (result["status"], result["user_id"]) == ("created", "maria")
    for body, status in (
        ({"user_id": "theo", "messages": BARE}, 403),
        ({"messages": [*BARE, line(1, user_id="theo")]}, 403),
        ({"messages": [*BARE, BARE[1] | {"agent": "bo"}]}, 422),
        ({"agent": "bo", "messages": BARE}, 422),
    ):
        assert bound.post(IMPORT, body).status_code == status
    assert contents(program_a) == ["Is it on Monday?"]


def test_api_description_lists_the_required_fields() -> None:
    items = described()["components"]["schemas"]["Import"]["properties"]["messages"]["items"]
    assert items["required"] == list(REQUIRED)
    documented = (ROOT / "docs" / "api.md").read_text()
    assert all(f"`{name}`" in documented for name in FIELDS)


@pytest.mark.parametrize("odd", [None, 7, "text", [], {}])
def test_line_that_is_not_an_object_is_reported(program_a: Program, odd: Any) -> None:
    document = program_a.post(IMPORT, {"messages": [odd]}).json()
    assert (document["created"], document["invalid"]) == (0, 1)
    assert "role and content" in document["results"][0]["error"]


@pytest.mark.parametrize(
    "body", [{}, {"messages": []}, {"messages": "x"}, {"messages": [{}] * 1001}, {"turns": []}]
)
def test_invalid_history_is_refused_and_stores_nothing(
    program_a: Program, body: dict[str, Any]
) -> None:
    response = program_a.post(IMPORT, body)
    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"
    assert contents(program_a) == []


def test_history_of_one_tenant_is_not_the_others(program_a: Program, program_b: Program) -> None:
    program_a.post(IMPORT, {"messages": [line(1)]})
    document = program_b.post(IMPORT, {"messages": [line(1, content="Said to B.")]}).json()
    assert document["created"] == 1
    assert contents(program_a) == ["Sentence number 1 of the history."]
    assert contents(program_b) == ["Said to B."]
