"""Canaries: words of a person pass every interface, and none is left after the erasure.

The test searches a dump of the whole database, the cache, its append-only file and the log.
Messages of other people stay.
"""

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from django_redis import get_redis_connection

from konstruct.channels.rest import views as rest_views
from konstruct.interfaces.openai import views as openai_views
from konstruct.local import services
from konstruct.logs import RedactingFormatter
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.orchestrator.models import Agent, PendingReply
from konstruct.privacy.erasure.erasing import carry_out
from memory import indexing
from memory.context.recall_events import unpack
from memory.models import Message, RecallEvent
from tenants.audit.access_log import Actor
from tenants.audit.models import AccessEvent, ActorKind
from tenants.audit.people import Person
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests import database
from tests.konstruct.channels.conftest import answer_all, connected, post, slack  # noqa: F401
from tests.konstruct.conftest import Browser, Post, Program
from tests.konstruct.interfaces.mcp.speaking import call
from tests.konstruct.interfaces.mem0.calls import SEARCH, add
from tests.konstruct.orchestrator.extraction.conftest import fact
from tests.konstruct.privacy.conftest import save_session, tool
from tests.memory.recall_traces import trace_of
from tests.servers.llm import Answer, LLMServer
from tests.servers.slack import SlackServer, mention, message_event

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")
# The person, in Slack and in all programs, and another person in the same thread.
P, O = "UCANARY77", "UOTHER1"  # noqa: E741
V1 = "/api/v1/"
INTERFACES = (
    *("rest", "metadata", "stream", "import", "openai", "mcp", "mem0", "slack", "file", "name"),
    *("turn", "turned", "fact", "item", "checkpoint", "task", "tool", "search", "lookup"),
    *("extracted", "value"),
)


def canary(interface: str) -> str:
    """Return a sentence with a unique word."""
    return f"The canary{interface}xq sings in the {interface} cage tonight."


def interfaces_in(text: str | bytes) -> list[str]:
    """Return the interfaces whose word is in the text; bytes may be hexadecimal digits."""
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    words = {interface: f"canary{interface}xq" for interface in INTERFACES}
    return [
        interface
        for interface, word in words.items()
        if word in text or word.encode().hex() in text
    ]


def dump() -> str:
    """Return the whole database, of all tenants, as pg_dump writes it, and what it has packed."""
    packed = []
    for tenant in Tenant.objects.all():
        with tenant_scope(tenant.id):
            packed += [unpack(bytes(event.packed)) for event in RecallEvent.objects.all()]
    return tool("pg_dump", "--dbname", connections["default"].settings_dict["NAME"]) + str(packed)


def cache() -> bytes:
    """Return keys and values of the cache."""
    client = get_redis_connection("default")
    return b"\n".join(key + (client.dump(key) or b"") for key in client.scan_iter())


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Return the log file, as processes write it."""
    handler = logging.FileHandler(tmp_path / "konstruct.log")
    handler.setFormatter(RedactingFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    yield tmp_path / "konstruct.log"
    logging.getLogger().removeHandler(handler)
    handler.close()


def erase(program: Program) -> dict[str, Any]:
    """Erase the person as the owner. Return the receipt."""
    with database.as_owner(), tenant_scope(program.tenant.id):
        receipt = carry_out(request_erasure(P, by=EVA)).receipt
    assert receipt is not None
    return receipt


@pytest.fixture
def send_in_slack(
    connected: Program,  # noqa: F811
    post: Post,  # noqa: F811
    slack: SlackServer,  # noqa: F811
    llm_server: LLMServer,
) -> Callable[[], Program]:
    """Send messages of P and O in one thread of Slack: P with a file and a display name."""
    slack.workspaces["T1"].users |= {P: "The canarynamexq", O: "Otto"}

    def send() -> Program:
        files = [{"name": f"{canary('file')}.pdf"}]
        event = mention("T1", canary("slack"), user=P, files=files)
        event["event"]["user_profile"] = {"display_name": "The canarynamexq"}
        post(event)
        answer_all(connected)
        thread = event["event"]["ts"]
        post(message_event("T1", "Is Otto's boat green?", user=O, thread_ts=thread))
        answer_all(connected)
        indexing.drain(connected.tenant.id)
        return connected

    return send


def test_others_recall_events_keep_all_but_the_words_of_the_person(
    send_in_slack: Callable[[], Program],
) -> None:
    program = send_in_slack()
    with tenant_scope(program.tenant.id):
        event = RecallEvent.objects.get(user_id=O)
    content = program.get(f"{V1}recall-events/{event.pk}/").content
    assert {"slack", "file", "name"} <= {*interfaces_in(content)}
    receipt = erase(program)
    assert receipt["tables"]["memory_recallevent"]["changed"] == 1
    content = program.get(f"{V1}recall-events/{event.pk}/").json()
    assert interfaces_in(json.dumps(content)) == []
    assert P not in json.dumps(content)
    assert content["query"] == "Is Otto's boat green?"
    assert "[erased]" in json.dumps(content["prompt"])
    assert "Is Otto's boat green?" in json.dumps(content["prompt"])


def test_reply_in_progress_to_another_person_is_rewritten_without_the_erased_words(
    send_in_slack: Callable[[], Program],
    llm_server: LLMServer,
    post: Post,  # noqa: F811
) -> None:
    """The model gets the person's words, and answers after their erasure."""
    program = send_in_slack()
    post(message_event("T1", "And is it fast?", user=O, thread_ts=thread_of_slack(program)))
    llm_server.answers = [Answer({"content": "late"}, wait=True), Answer({"content": "It is."})]
    before = len(llm_server.requests)
    with ThreadPoolExecutor(1) as threads:
        answering = threads.submit(_answer_all_and_close, program)
        llm_server.wait_for_requests(before + 1, seconds=60)
        assert {"slack", "file", "name"} <= {
            *interfaces_in(json.dumps(llm_server.requests[-1].body))
        }
        erase(program)
        llm_server.release()
        answering.result()
    answer_all(program)
    assert interfaces_in(json.dumps(llm_server.requests[-1].body)) == []
    indexing.drain(program.tenant.id)
    with tenant_scope(program.tenant.id):
        message = Message.objects.get(content="And is it fast?")
        assert message.reply.content == "It is."
        assert (
            interfaces_in(json.dumps(trace_of(RecallEvent.objects.get(reply=message.reply)))) == []
        )
        assert not PendingReply.objects.exists()


def thread_of_slack(program: Program) -> str:
    """Return Slack's id of the thread."""
    with tenant_scope(program.tenant.id):
        return Message.objects.filter(user_id=O).first().thread_id.split("/")[-1]


def _answer_all_and_close(program: Program) -> None:
    try:
        answer_all(program)
    finally:
        connections.close_all()


def send_everywhere(program: Program, llm_server: LLMServer, admin: Client) -> None:
    """Send the person's words through every interface."""
    person = {"agent": program.agent.name, "user_id": P}
    thread = {**person, "thread_id": "cage"}

    def send(path: str, body: dict[str, Any], **headers: str) -> Any:
        answer = program.post(f"{V1}{path}", body, headers=headers)
        assert answer.status_code < 300, (path, answer.content)
        return answer

    with tenant_scope(program.tenant.id):
        Agent.objects.update(tools=["remember_fact"])
    send(
        "messages/",
        {**thread, "content": canary("rest"), "metadata": {canary("metadata"): canary("metadata")}},
    )
    send("messages/?wait=0.01", {**thread, "content": canary("stream")}, Accept="text/event-stream")
    line = {**thread, "role": "user", "content": canary("import")}
    line |= {"external_id": "e1", "created_at": "2025-03-15T09:00:00Z"}
    send("messages/import/", {"messages": [line]})
    texts = {"user": canary("turn"), "assistant": canary("turned")}
    messages = [{"role": role, "content": text} for role, text in texts.items()]
    messages += [{"role": "user", "content": canary("openai")}]
    completion = {"model": program.agent.name, "user": P, "messages": messages, "stream": True}
    assert program.post("/v1/chat/completions", completion).status_code == 200
    call(program, "remember", **person, content=canary("mcp"))
    add(program, canary("mem0"), user_id=P, metadata={"canarymem0xq": 1})
    send("facts/", {**person, "content": canary("fact")})
    send("conversations/items/", {**thread, "items": [{"item": {"text": canary("item")}}]})
    save_session(program.tenant, "session of P", canary("checkpoint"), user_id=P)
    send("context/compile/", {**thread, "thread_id": "session of P", "task": canary("task")})
    send("memories/search/", {**person, "query": canary("search"), "include": ["messages"]})
    tool_call = {"name": "remember_fact", "arguments": json.dumps({"fact": canary("tool")})}
    llm_server.answers = [Answer({"tool_calls": [{"function": tool_call}]})]
    send("messages/", {**thread, "thread_id": "tools", "content": "Remember it."})
    answer_all(program)
    extract_a_fact(program, llm_server)
    page = {"q": canary("lookup"), "user": P}
    assert admin.get("/admin/audit/accessevent/", page).status_code == 200
    indexing.drain(program.tenant.id)


def extract_a_fact(program: Program, llm_server: LLMServer) -> None:
    """Extract a fact whose sentence and value are not in the message."""
    found = fact(
        canary("value"), canary("rest"), fact=canary("extracted"), subject="Bird", speaker="user"
    )
    llm_server.answers = [Answer({"content": json.dumps({"facts": [found]})})]
    with tenant_scope(program.tenant.id):
        message = Message.objects.filter(user_id=P, content=canary("rest"))
        runs.apply(runs.preview(messages=[*message], requested_by="person:1").pk)


def search_person(program: Program, admin: Client) -> None:
    """Name the person in links, searches and lists, as others may after the erasure."""
    admin.get("/admin/audit/accessevent/", {"user": P})
    admin.get("/admin/memory/message/", {"q": P})
    admin.get("/admin/people/", {"q": P})
    for path in ("conversations/", "messages/", "facts/", "users/"):
        program.get(f"{V1}{path}?agent={program.agent.name}&user_id={P}")
    program.get(f"{V1}agents/", headers={"X-Request-ID": P})
    program.get(f"/mem0/v1/entities/user/{P}/")
    program.request("DELETE", f"/mem0/v2/entities/user/{P}/")
    for filters in (
        {"user_id": {"in": [P, O]}},
        {"OR": [{"user_id": P}, {"user_id": O}]},
        {"AND": [{"user_id": O}, {"metadata": {P: 1}}]},
    ):
        program.post(SEARCH, {"query": f"What does {P} like?", "filters": filters})


def test_no_data_of_the_person_remain(
    send_in_slack: Callable[[], Program],
    llm_server: LLMServer,
    browser: Browser,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(openai_views, "WAIT_SECONDS", 0)  # no worker answers while it waits
    monkeypatch.setattr(rest_views, "STREAM_SECONDS", 0)
    program = send_in_slack()
    admin = browser(program.tenant)
    send_everywhere(program, llm_server, admin)
    # Searches and tasks are stored nowhere.
    assert set(INTERFACES) - set(interfaces_in(dump())) == {"lookup", "search", "task"}
    with tenant_scope(program.tenant.id):
        of_person = Person.objects.get(user_id=P).pseudonym
    receipt = erase(program)
    after = dump()
    assert [line[:500] for line in after.splitlines() if interfaces_in(line) or P in line] == []
    assert "Otto's boat" in after
    assert interfaces_in(cache()) == []
    assert interfaces_in(log.read_bytes()) == []
    if settings.EMBEDDED_DATABASE:
        files = [file for file in (services.home() / "valkey").rglob("*") if file.is_file()]
        assert files
        assert [file.name for file in files if interfaces_in(file.read_bytes())] == []
    assert receipt["left"] == 0

    search_person(program, admin)
    assert [line[:500] for line in dump().splitlines() if P in line] == []
    with tenant_scope(program.tenant.id):
        assert AccessEvent.objects.filter(pseudonym=of_person).count() > 5
        assert not Message.objects.filter(user_id=P).exists()
