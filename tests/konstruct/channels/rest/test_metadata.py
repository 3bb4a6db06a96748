"""Metadata of messages: sent, returned, and used as a filter of lists and searches."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from memory import indexing
from memory.conf import MAX_MESSAGE_METADATA_BYTES
from memory.models import Message, MessageAttribute
from tenants.context import tenant_scope
from tests.konstruct.conftest import MESSAGES, Program

IMPORT = f"{MESSAGES}import/"
SEARCH = "/api/v1/memories/search/"
TRANSCRIPT = "/api/v1/conversations/transcript/"
ORDER = {"order": 17, "shop": {"city": "Porto"}, "tags": ["gift", "late"]}

pytestmark = pytest.mark.django_db


def import_messages(program: Program, *metadata: Any) -> Any:
    """Import a message of maria for each. Return the answer."""
    lines = [
        {"role": "user", "content": f"Walnuts of parcel {number}.", "metadata": value}
        for number, value in enumerate(metadata)
    ]
    response = program.post(IMPORT, {"user_id": "maria", "messages": lines})
    indexing.drain(program.tenant.id)
    return response.json()


def search(program: Program, **fields: Any) -> Any:
    body = {"agent": "ada", "user_id": "maria", "query": "Which walnuts?", "gate": False}
    return program.post(SEARCH, body | fields)


def test_metadata_of_a_message_is_returned_and_filters_the_list(program_a: Program) -> None:
    sent = program_a.send("Where is it?", metadata=ORDER)
    assert sent.json()["metadata"] == ORDER
    assert program_a.get(f"{MESSAGES}{sent.json()['id']}/").json()["metadata"] == ORDER
    assert program_a.send("Hello?").json()["metadata"] == {}
    for filters, found in (
        ({"order": 17}, 1),
        ({"order": {"gte": 18}}, 0),
        ({"shop.city": "Porto", "tags": {"in": ["late", "x"]}}, 1),
        ({"order": {"exists": False}}, 1),
    ):
        address = f"{MESSAGES}?{urlencode({'filters': json.dumps(filters)})}"
        assert (filters, len(program_a.get(address).json()["results"])) == (filters, found)


def test_search_with_filters_considers_only_matching_messages(program_a: Program) -> None:
    long = {"order": 19, "note": "".join(map(str, range(500)))}  # too long for an answer with text
    assert import_messages(program_a, ORDER, {"order": 18}, None, long)["created"] == 4
    everything = search(program_a).json()["results"]
    metadata = {message["content"]: message["metadata"] for message in everything}
    assert metadata == {
        f"Walnuts of parcel {number}.": value
        for number, value in enumerate([ORDER, {"order": 18}, {}, long])
    }
    (found,) = search(program_a, filters={"order": 18}).json()["results"]
    assert (found["content"], found["metadata"]) == ("Walnuts of parcel 1.", {"order": 18})
    assert len(search(program_a, filters={"order": {"exists": True}}).json()["results"]) == 3
    answer = search(program_a, filters={"order": 99}).json()
    assert (answer["results"], answer["abstained"]) == ([], True)
    address = {"agent": "ada", "user_id": "maria", "filters": json.dumps({"order": 17})}
    (turn,) = program_a.get(f"{TRANSCRIPT}?{urlencode(address)}").json()["results"]
    assert turn["metadata"] == ORDER


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ("text", "is not an object"),
        ({"a": "\0"}, "NUL"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": "x" * MAX_MESSAGE_METADATA_BYTES}, f"more than {MAX_MESSAGE_METADATA_BYTES}"),
        ({f"k{n}": n for n in range(300)}, "more than 256 values"),
        (json.loads('{"a":' * 20 + "1" + "}" * 20), "deeper than 16"),
    ],
)
def test_invalid_metadata_is_refused_with_the_reason(
    program_a: Program, metadata: Any, words: str
) -> None:
    assert program_a.send("Hello", metadata=metadata).status_code == 400
    (result,) = import_messages(program_a, metadata)["results"]
    assert result["status"] == "invalid"
    assert words in result["error"]
    with tenant_scope(program_a.tenant.id):
        assert not Message.objects.exists()
        assert not MessageAttribute.objects.exists()


def test_one_search_returns_messages_and_facts_with_separate_scores(program_a: Program) -> None:
    import_messages(program_a, {"order": 17})
    for user in ("maria", "theo"):
        body = {"agent": "ada", "user_id": user, "content": f"{user} hates walnuts."}
        assert (
            program_a.post("/api/v1/facts/", body | {"metadata": {"order": 17}}).status_code == 201
        )
    program_a.post("/api/v1/facts/", {"content": "Walnuts are sold out."})
    both = search(program_a, include=["messages", "facts"]).json()
    assert [memory["content"] for memory in both["results"]] == ["Walnuts of parcel 0."]
    known = {"maria hates walnuts.", "Walnuts are sold out."}
    assert {fact["content"] for fact in both["facts"]} == known
    assert both["results"] == search(program_a).json()["results"]
    assert "facts" not in search(program_a).json()
    only = search(program_a, include=["facts"], top_k=1).json()
    assert (only["results"], len(only["facts"])) == ([], 1)
    (fact,) = search(program_a, include=["facts"], filters={"order": 17}).json()["facts"]
    assert (fact["user_id"], fact["content"]) == ("maria", "maria hates walnuts.")
    bound = program_a.with_key(user_id="maria")
    (own,) = search(bound, include=["facts"]).json()["facts"]
    assert own["content"] == "maria hates walnuts."
    assert search(bound, include=["facts"], user_id="theo").status_code == 403
    assert search(program_a, include=["rumours"]).status_code == 400
