"""One request through each interface, with the client's view of the answer."""

import itertools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx

from tests.end_to_end.deployment import Tenant
from tests.servers.slack import mention, signed

_numbers = itertools.count(1)


@dataclass
class Caller:
    """All clients of a tenant: programs, a person in the admin, and Slack."""

    tenant: Tenant
    workspace: str = ""
    accepted: list[str] = field(default_factory=list)
    """What was said in messages that were accepted."""
    remembered: list[str] = field(default_factory=list)
    """What was stored as a fact."""

    def __post_init__(self) -> None:
        self.programs = self.tenant.client()
        host = f"{self.tenant.slug}.localhost:{self.tenant.deployment.port}"
        url = self.tenant.deployment.url
        self.browser = httpx.Client(base_url=url, headers={"Host": host}, timeout=90)
        self.operator = httpx.Client(base_url=url, headers={"Host": "localhost"}, timeout=90)

    def close(self) -> None:
        """Close the clients."""
        for client in (self.programs, self.browser, self.operator):
            client.close()

    def log_in(self) -> None:
        """Log the person in."""
        page = self.browser.get("/admin/login/")
        token = page.text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
        form = {"csrfmiddlewaretoken": token, "username": "eva", "password": "pw"}
        answer = self.browser.post("/admin/login/", data=form, headers={"Referer": str(page.url)})
        assert answer.status_code == 302, answer.text

    def say(self) -> str:
        """Return a unique text."""
        return f"{self.tenant.slug}-maria-{next(_numbers)}"

    def note_if(self, answer: httpx.Response, notes: list[str], text: str) -> httpx.Response:
        """Record the text if the answer accepts it."""
        if answer.is_success:
            notes.append(text)
        return answer


def send(caller: Caller) -> httpx.Response:
    """POST a message."""
    text = caller.say()
    body = {"agent": "ada", "user_id": "maria", "content": f"I say {text}.", "thread_id": text}
    answer = caller.programs.post("/api/v1/messages/", json=body)
    return caller.note_if(answer, caller.accepted, text)


def listing(caller: Caller) -> httpx.Response:
    """GET a list."""
    return caller.programs.get("/api/v1/conversations/")


def searching(caller: Caller) -> httpx.Response:
    """Search the messages."""
    body = {"agent": "ada", "user_id": "maria", "query": "What did I say?"}
    return caller.programs.post("/api/v1/memories/search/", json=body)


def remember(caller: Caller) -> httpx.Response:
    """POST a fact."""
    text = f"Fact {caller.say()}"
    answer = caller.programs.post("/api/v1/facts/", json={"content": text, "user_id": "maria"})
    return caller.note_if(answer, caller.remembered, text)


def streaming(caller: Caller) -> httpx.Response:
    """POST a message, and read its reply as a stream."""
    text = caller.say()
    body = {"agent": "ada", "user_id": "maria", "content": f"I say {text}.", "thread_id": text}
    with caller.programs.stream(
        "POST", "/api/v1/messages/?wait=3", json=body, headers={"Accept": "text/event-stream"}
    ) as answer:
        caller.note_if(answer, caller.accepted, text)
        answer.read()
    return answer


def completing(caller: Caller) -> httpx.Response:
    """Ask OpenAI's interface for a completion."""
    text = caller.say()
    body = {
        "model": "ada",
        "user": "maria",
        "messages": [{"role": "user", "content": f"I say {text}."}],
        "metadata": {"thread_id": text},
    }
    answer = caller.programs.post("/v1/chat/completions", json=body)
    return caller.note_if(answer, caller.accepted, text)


def adding(caller: Caller) -> httpx.Response:
    """Add a memory like mem0's clients."""
    text = f"Memory {caller.say()}"
    body = {"messages": text, "infer": False, "user_id": "maria"}
    answer = caller.programs.post("/mem0/v3/memories/add/", json=body)
    return caller.note_if(answer, caller.remembered, text)


def calling(caller: Caller) -> httpx.Response:
    """Call a tool like an MCP host."""
    text = f"Told {caller.say()}"
    params = {"name": "remember", "arguments": {"content": text, "user_id": "maria"}}
    answer = caller.programs.post(
        "/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
        },
    )
    return caller.note_if(answer, caller.remembered, text)


def browsing(caller: Caller) -> httpx.Response:
    """Open a page of the tenant's admin."""
    return caller.browser.get("/admin/")


def operating(caller: Caller) -> httpx.Response:
    """Log in to the operators' admin with an unknown name."""
    page = caller.operator.get("/admin/login/")
    if not page.is_success:
        return page
    token = page.text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    form = {"csrfmiddlewaretoken": token, "username": "nobody", "password": "pw"}
    return caller.operator.post("/admin/login/", data=form, headers={"Referer": str(page.url)})


def posting(caller: Caller) -> httpx.Response:
    """Send a mention like Slack."""
    text = caller.say()
    body = json.dumps(mention(caller.workspace, f"I say {text}.")).encode()
    answer = caller.operator.post("/channels/slack/events/", content=body, headers=signed(body))
    return caller.note_if(answer, caller.accepted, text)


INTERFACES: Mapping[str, Callable[[Caller], httpx.Response]] = {
    "REST send": send,
    "REST list": listing,
    "REST search": searching,
    "REST fact": remember,
    "stream": streaming,
    "OpenAI": completing,
    "mem0": adding,
    "MCP": calling,
    "admin": browsing,
    "operators": operating,
    "Slack": posting,
}


@dataclass(frozen=True)
class Outcome:
    """An answer, and the log lines of its request."""

    answer: httpx.Response
    lines: list[str]


def try_interface(name: str, caller: Caller) -> Outcome:
    """Send one request through the interface."""
    log = caller.tenant.deployment.home / "web.log"
    before = log.stat().st_size
    request_id = f"try-{next(_numbers)}"
    for client in (caller.programs, caller.browser, caller.operator):
        client.headers["X-Request-ID"] = request_id
    answer = INTERFACES[name](caller)
    time.sleep(0.1)  # the line of a request is written after its answer
    with log.open("rb") as file:
        file.seek(before)
        written = file.read().decode(errors="replace")
    assert "Traceback" not in written, written
    return Outcome(answer, [line for line in written.splitlines() if request_id in line])
