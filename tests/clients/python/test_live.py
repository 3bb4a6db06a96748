"""The Python client against the server as deployed."""

import asyncio
import json
import time

import httpx
import pytest
from konstruct_client import AsyncClient, Client, errors

from konstruct.orchestrator.identities.person_export import PART_BYTES
from tests.clients.python.conftest import bound_key
from tests.konstruct.conftest import Program

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def line(number: int, content: str, **fields: str) -> dict[str, str]:
    return {
        "external_id": f"crm-{number}", "agent": "ada", "user_id": "maria", "role": "user",
        "thread_id": "2025", "content": content, "created_at": "2025-11-02T10:00:00Z", **fields,
    }  # fmt: skip


def searchable(konstruct: Client) -> None:
    """Wait until the message can be found."""
    while konstruct.users.usage()["pending_embeddings"]:
        time.sleep(0.05)


def test_client_sends_messages_and_reads_memory(url: str, program_a: Program) -> None:
    with Client(url, program_a.key) as konstruct:
        scope = {"agent": "ada", "user_id": "maria"}
        order = {"order": 17}
        sent = konstruct.messages.send(
            "My sister lives in Porto.", **scope, metadata=order, wait=30
        )
        assert (sent["status"], sent["thread_id"]) == ("answered", "maria")
        assert sent["reply"] == konstruct.messages.get(sent["id"])["reply"]
        stream = konstruct.messages.stream("Where does my sister live?", **scope)
        assert stream.message is None
        pieces = [*stream]
        assert stream.message
        assert "".join(pieces) == (stream.message["reply"] or {})["content"]
        assert [message["id"] for message in konstruct.messages.list(filters=order)] == [sent["id"]]
        (turn,) = konstruct.conversations.transcript(**scope, filters=order)
        assert turn["metadata"] == order
        imported = konstruct.messages.import_history(
            [
                {"role": "user", "content": "I sold the piano."},
                {"role": "assistant", "content": "To whom?"},
                {"role": "user"},
            ],
            **scope,
            thread_id="2025",
        )
        assert (imported["created"], imported["invalid"]) == (2, 1)
        again = [
            konstruct.messages.send("Once.", **scope, idempotency_key="k")["id"] for _ in range(2)
        ]
        assert again[0] == again[1]
        turns = [
            turn["content"]
            for turn in konstruct.conversations.transcript(**scope, thread_id="2025", limit=1)
        ]
        assert turns == ["I sold the piano.", "To whom?"]
        searchable(konstruct)
        found = konstruct.memories.search("Where does my sister live?", **scope)
        assert found["results"][0]["content"] == "My sister lives in Porto."

        hours = {"content": "The library closes at six."}
        many = konstruct.facts.create_many([hours, {"content": "Maria reads.", **scope}, hours])
        assert [message["created"] for message in many["results"]] == [True, True, False]
        assert [message["user_id"] for message in many["results"]] == [None, "maria", None]
        for message in many["results"][:2]:
            konstruct.facts.delete(message["memory_id"])

        nuts = konstruct.facts.create("Maria is allergic to walnuts.", **scope, metadata={"n": 1})
        _, etag = konstruct.facts.get_tagged(nuts["memory_id"])
        changed = konstruct.facts.change(nuts["memory_id"], content="She may.", if_match=etag)
        with pytest.raises(errors.ChangedSince):
            konstruct.facts.change(nuts["memory_id"], content="She might.", if_match=etag)
        assert [version["content"] for version in konstruct.facts.history(nuts["memory_id"])] == [
            "She may.", "Maria is allergic to walnuts.",
        ]  # fmt: skip
        assert [*konstruct.facts.list(**scope, filters={"n": {"gte": 1}})] == [
            {name: changed[name] for name in changed if name != "evidence"}  # type: ignore[literal-required]
        ]
        assert konstruct.facts.search("What may she eat?", **scope)["results"][0]["score"] > 0
        both = konstruct.memories.search(
            "Where does my sister live?", **scope, include=["messages", "facts"], filters=order
        )
        assert [fact["content"] for fact in both["results"]] == ["My sister lives in Porto."]
        assert both["facts"] == []
        prompt = konstruct.context.compile("Bake a cake.", **scope)["prompt"]
        assert prompt[-1] == {"role": "user", "content": "Bake a cake."}
        konstruct.facts.delete(nuts["memory_id"])
        with pytest.raises(errors.NotFound):
            konstruct.facts.get(nuts["memory_id"])

        assert [agent["name"] for agent in konstruct.agents.list()] == ["ada"]
        with pytest.raises(errors.NameTaken, match="ada"):
            konstruct.agents.create(name="ada")
        with pytest.raises(errors.UnknownAgent):
            konstruct.messages.send("Hi", agent="nobody", user_id="maria")
        erased = konstruct.messages.erase(sent["id"], reason="a password")
        assert konstruct.erasures.get(erased["id"])["reason"] == "a password"
        talk = konstruct.conversations.erase(**scope, thread_id="2025")
        assert talk["state"] == "requested"
        requested = konstruct.erasures.request("maria")
        assert requested["user_ids"] == ["maria"]
        assert konstruct.erasures.request("maria") == requested
        assert [*konstruct.erasures.list(user_id="maria", state="open")] == [requested]
        with pytest.raises(errors.BeingErased):
            konstruct.messages.send("Hi", agent="ada", user_id="maria")


def test_the_same_from_an_event_loop(url: str, program_a: Program) -> None:
    async def talk() -> tuple[str, list[str]]:
        async with AsyncClient(url, program_a.key) as konstruct:
            send = konstruct.messages.send
            answers = await asyncio.gather(
                *[send(f"I am {n}.", agent="ada", user_id=n, wait=30) for n in ("alex", "bea")]
            )
            stream = konstruct.messages.stream("And I?", agent="ada", user_id="carl")
            assert [piece async for piece in stream]
            assert stream.message
            assert stream.message["status"] == "answered"
            listed = [message["content"] async for message in konstruct.messages.list(limit=1)]
            return {message["status"] for message in answers}.pop(), sorted(listed)

    assert asyncio.run(talk()) == ("answered", ["And I?", "I am alex.", "I am bea."])


def test_the_export_of_a_person_is_sent_in_parts(url: str, program_a: Program) -> None:
    texts = [f"{number}: {'x' * 8_000}" for number in range(2 * PART_BYTES // 8_000 + 1)]
    with Client(url, program_a.key) as konstruct:
        konstruct.messages.import_history([line(n, text) for n, text in enumerate(texts)])
        konstruct.messages.import_history([line(1, "Of bea.", user_id="bea")])
        exported = konstruct.users.export("maria")
    assert [message["content"] for message in exported["messages"]] == texts
    headers = {"Authorization": f"Bearer {program_a.key}"}
    with httpx.stream("GET", f"{url}/api/v1/users/maria/export/", headers=headers) as response:
        assert "Content-Length" not in response.headers
        assert json.loads(response.read())["messages"] == exported["messages"]


def test_tenants_and_users_are_separate(url: str, program_a: Program, program_b: Program) -> None:
    with (
        Client(url, program_a.key) as a,
        Client(url, program_b.key) as b,
        Client(url, bound_key(program_a, "maria")) as marias,
        Client(url, "ks_nonsense") as nobody,
    ):
        for client, text in ((a, "Of a."), (b, "Of b.")):
            client.facts.create(text, agent="ada", user_id="maria")
            client.facts.create(f"{text} Of bea.", agent="ada", user_id="bea")
            client.messages.import_history([line(1, text), line(1, "Bea's.", user_id="bea")])
        for client, text in ((a, "Of a."), (b, "Of b."), (marias, "Of a.")):
            assert [fact["content"] for fact in client.facts.list(user_id="maria")] == [text]
            turns = client.conversations.transcript(agent="ada", user_id="maria")
            assert [turn["content"] for turn in turns] == [text]
        (of_b,) = b.facts.list(user_id="maria")
        (of_bea,) = a.facts.list(user_id="bea")
        for client, fact in ((a, of_b), (marias, of_b), (marias, of_bea)):
            with pytest.raises(errors.NotFound):
                client.facts.delete(fact["memory_id"])
        with pytest.raises(errors.OutsideOfKey):
            marias.memories.search("Who?", agent="ada", user_id="bea")
        assert [fact["content"] for fact in marias.facts.list()] == ["Of a."]
        with pytest.raises(errors.Unauthenticated):
            nobody.users.usage()
