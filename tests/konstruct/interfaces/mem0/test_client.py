"""mem0's own Python client, unmodified, against the server as deployed."""

import contextlib
import inspect
import logging
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from konstruct.api.auth.keys import issue_key
from tests.konstruct.conftest import Program

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def mem0(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Import the package without its telemetry and without files in the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEM0_TELEMETRY", "False")
        patch.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("mem0")))
        import mem0

        yield mem0


@pytest.fixture
def host(served_url: str) -> str:
    return f"{served_url}/mem0"


@contextlib.contextmanager
def client_of(mem0: Any, host: str, key: str) -> Iterator[Any]:
    client = mem0.MemoryClient(api_key=key, host=host)
    try:
        yield client
    finally:
        client.client.close()


def refused(client: Any) -> Iterator[partial[Any]]:
    """Yield a call of each refused method."""
    options = {"filters": {"user_id": "alex"}}
    yield partial(client.get_summary, **options)
    yield partial(client.create_memory_export, schema=SCHEMA, **options)
    yield partial(client.get_memory_export, **options)
    yield partial(client.get_profile, "alex")
    yield partial(client.get_profile_settings)
    yield partial(client.feedback, "m", "POSITIVE")
    yield partial(client.get_webhooks, "p")
    yield partial(client.get_project)
    yield partial(client.project.get)
    yield partial(client.generate_profile, ["alex"])
    yield partial(client.sample_profiles)
    yield partial(client.get_profile_job, "j")
    yield partial(client.update_profile_settings, enabled=True)
    yield partial(client.create_webhook, "http://a.test", "n", "p", ["memory_add"])
    yield partial(client.update_webhook, 1, name="n")
    yield partial(client.delete_webhook, 1)
    yield partial(client.update_project, custom_instructions="x")
    yield partial(client.project.update, custom_instructions="x")


def documented() -> dict[str, bool]:
    """Return each method that docs/mem0.md names, and whether it is refused."""
    page = Path(settings.BASE_DIR, "docs", "mem0.md").read_text()
    table = page.partition("## Every method of the client")[2]
    rows = (row.split("|")[1:3] for row in table.splitlines() if row.startswith("| `"))
    return {
        name: method.strip().startswith("refused")
        for methods, method in rows
        for name in re.findall(r"`(\w+)`", methods)
    }


def test_every_method_of_both_clients_is_documented(mem0: Any) -> None:
    for client in (mem0.MemoryClient, mem0.AsyncMemoryClient):
        methods = inspect.getmembers(client, inspect.isfunction)
        assert {name for name, _ in methods if not name.startswith("_")} == documented().keys()


SCHEMA = {"type": "object", "properties": {"memory": {}, "user_id": {"type": "string"}}}


def texts(answer: dict[str, Any]) -> list[str]:
    return [memory["memory"] for memory in answer["results"]]


def test_everything_that_the_client_does(
    mem0: Any, host: str, program_a: Program, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="mem0")
    from mem0.client.types import DeleteAllMemoryOptions, SearchMemoryOptions
    from mem0.exceptions import MemoryError, MemoryNotFoundError, ValidationError as Invalid

    with client_of(mem0, host, program_a.key) as client:
        messages = [
            {"role": "user", "content": "I am allergic to walnuts."},
            {"role": "assistant", "content": "I will remember that."},
        ]
        added = client.add(messages, user_id="alex", metadata={"topic": "health"})
        assert texts(added) == ["I am allergic to walnuts."]
        (walnuts,) = (memory["id"] for memory in added["results"])
        client.add("I live in Rome.", user_id="alex", run_id="r1", infer=False)
        client.add("I speak as a guide.", agent_id="ada", filters={"app_id": "tours"})

        found = client.search("What must I not eat?", filters={"user_id": "alex"}, top_k=1)
        assert texts(found) == ["I am allergic to walnuts."]
        options = SearchMemoryOptions(
            filters={"AND": [{"user_id": "alex"}, {"metadata": {"topic": "health"}}]}, rerank=True
        )
        assert texts(client.search("Where?", options)) == ["I am allergic to walnuts."]
        page = client.get_all(filters={"user_id": "alex"}, page=2, page_size=1)
        assert (texts(page), page["count"]) == (["I am allergic to walnuts."], 2)
        assert client.get(walnuts)["memory"] == "I am allergic to walnuts."

        assert client.get(walnuts)["metadata"] == {"topic": "health"}
        client.update(walnuts, text="I may eat walnuts.")
        assert [memory["new_memory"] for memory in client.history(walnuts)] == [
            "I am allergic to walnuts.", "I may eat walnuts.",
        ]  # fmt: skip
        client.batch_update([{"memory_id": walnuts, "text": "I love walnuts."}])
        assert client.get(walnuts)["memory"] == "I love walnuts."
        named = {(entity["type"], entity["name"]) for entity in client.users()["results"]}
        assert named == {("user", "alex"), ("run", "r1"), ("agent", "ada"), ("app", "tours")}

        assert client.delete(walnuts)["message"]
        for use in (client.get, client.history, client.delete):
            with pytest.raises(MemoryNotFoundError):
                use(walnuts)
        assert texts(client.search("walnuts", filters={"user_id": "alex"})) == ["I live in Rome."]
        with pytest.raises(Invalid, match="Nothing was deleted"):
            client.delete_all()
        with pytest.raises(Invalid, match="The filters name no owner"):
            client.get_all()
        client.delete_all(options=DeleteAllMemoryOptions(filters={"run_id": "r1"}))
        assert texts(client.get_all(filters={"user_id": "alex"})) == []
        (guide,) = client.get_all(filters={"agent_id": "ada"})["results"]
        assert "1" in client.batch_delete([{"memory_id": guide["id"]}])["message"]
        called = {call.func.__name__ for call in refused(client)} - {"update", "get"}
        assert called == {name for name, is_refused in documented().items() if is_refused}
        for call in refused(client):
            with pytest.raises(MemoryError, match="Konstruct does not offer this: "):
                call()

        client.add("I ski.", user_id="bea", infer=False)
        client.add("I ski, too.", user_id="carl", infer=False)
        client.delete_users(user_id="bea")
        assert [entity["name"] for entity in client.users()["results"]] == ["carl"]
        client.reset()
        assert client.users()["results"] == []
        with (
            httpx.Client() as connection,
            pytest.raises(ValueError, match="The API key is not valid here"),
        ):
            mem0.MemoryClient(api_key="nonsense", host=host, client=connection)


def test_bound_keys_and_two_tenants_that_share_ids(
    mem0: Any, host: str, program_a: Program, program_b: Program
) -> None:
    _, alexs = issue_key(tenant_id=program_a.tenant.id, name="alex", user_id="alex")
    with contextlib.ExitStack() as open_:
        a, b, bound = (
            open_.enter_context(client_of(mem0, host, key))
            for key in (program_a.key, program_b.key, str(alexs))
        )
        for client, text in ((a, "I am of a."), (b, "I am of b.")):
            client.add(text, user_id="alex", agent_id="ada", infer=False)
            client.add(f"{text} My name is bea.", user_id="bea", agent_id="ada", infer=False)
        for client, text in ((a, "I am of a."), (b, "I am of b."), (bound, "I am of a.")):
            assert texts(client.get_all(filters={"user_id": "alex"})) == [text]
            found = client.search("Who am I?", filters={"agent_id": "ada"})
            expected = {text} if client is bound else {text, f"{text} My name is bea."}
            assert {*texts(found)} == expected
        a.delete_all(agent_id="ada")
        assert len(texts(b.get_all(filters={"agent_id": "ada"}))) == 2
