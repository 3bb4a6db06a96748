"""Attacks by HTTP, through the whole of the web: REST and MCP with the attacker's key, the admin
with its cookie, at its own host, the victim's and the neutral one."""

import json
import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from django.test import Client

from konstruct.isolation.fixtures import THREAD, USER, Party, public_host
from konstruct.isolation.records import NOT_TRIED, Attempt, Wall
from memory.context import SessionStore
from tenants.context import public_scope

API = "/api/v1"
NO_LOGIN = f"{NOT_TRIED}we cannot log in there (is the host in ALLOWED_HOSTS?)"
NO_ANSWER = f"{NOT_TRIED}our own key is refused there (is the host in ALLOWED_HOSTS?)"
LISTS = (
    "agents",
    "checkpoints",
    "conversations",
    "facts",
    "sessions",
    "recall-events",
    "usage",
    "users",
)

# Of the admin's index, the addresses of its lists.
_LIST_LINK = re.compile(r'href="(/admin/[a-z_]+/[a-z_]+/)"')


def attack(attacker: Party, victim: Party) -> Iterator[Attempt]:
    """All attacks by HTTP."""
    log = logging.getLogger("django.request")
    level = log.level
    # Every refusal would be a line.
    log.setLevel(logging.CRITICAL)
    try:
        with public_scope():
            yield from _by_key(attacker, victim)
            yield from _by_cookie(attacker, victim)
    finally:
        log.setLevel(level)


def _by_key(attacker: Party, victim: Party) -> Iterator[Attempt]:
    neutral = _Browser(attacker, public_host(), key=attacker.key)
    strange = _Browser(attacker, victim.host, key=attacker.key)
    if neutral.fetch(f"{API}/agents/").status_code != 200:
        yield Attempt(Wall.DOOR, "REST", f"be served at {public_host()}", False, NO_ANSWER)
    for browser, where in ((neutral, "neutral host"), (strange, "the victim's host")):
        for name in LISTS:
            yield browser.get(f"{API}/{name}/", victim, f"list {name} at the {where}")
        for path in (
            f"messages/{victim.message_id}/",
            f"facts/{victim.fact_id}/",
            f"facts/{victim.fact_id}/history/",
            f"agents/{victim.agent_id}/",
            f"sessions/{quote(THREAD)}/",
            f"conversations/transcript/?agent={victim.agent_id}&user_id={USER}&thread_id={THREAD}",
            f"conversations/items/?agent={victim.agent_id}&user_id={USER}&thread_id={THREAD}",
            f"conversations/items/?agent=ada&user_id={USER}&thread_id={THREAD}",
            f"checkpoints/?thread_id={quote(THREAD)}",
            f"windows/?agent={victim.agent_id}&user_id={USER}",
        ):
            yield browser.get(f"{API}/{path}", victim, f"read {path.split('/')[0]} at {where}")
    yield neutral.get(
        f"{API}/facts/?tenant_id={victim.tenant.id}", victim, "name the victim in a query"
    )
    yield neutral.change(
        "POST", f"{API}/messages/", victim, "send to the victim's agent",
        {"agent": str(victim.agent_id), "user_id": USER, "content": "x"},
    )  # fmt: skip
    yield neutral.change(
        "POST", f"{API}/facts/", victim, "store a fact in the victim's name",
        {"content": "x", "tenant_id": str(victim.tenant.id)},
    )  # fmt: skip
    yield neutral.change(
        "DELETE", f"{API}/facts/{victim.fact_id}/", victim, "delete the victim's fact", None
    )
    yield neutral.change(
        "DELETE", f"{API}/conversations/items/{victim.item_id}/", victim,
        "take the victim's item back", None,
    )  # fmt: skip
    yield neutral.change(
        "POST", f"{API}/conversations/items/", victim, "add to the victim's items",
        {"agent": str(victim.agent_id), "user_id": USER, "thread_id": THREAD,
         "items": [{"item": {}}]},
    )  # fmt: skip
    yield neutral.change(
        "POST", "/channels/slack/events/", victim, "speak in the victim's Slack in Slack's name",
        {"type": "event_callback", "event_id": "Ev1", "team_id": victim.workspace, "event": {
            "type": "app_mention", "user": USER, "channel": "C1", "ts": "1.1", "text": "x",
        }},
    )  # fmt: skip
    yield from _session_of_the_same_name(neutral, victim)
    for tool, arguments in (
        ("search", {"user_id": USER, "query": "What was said?", "agent": str(victim.agent_id)}),
        ("list", {"user_id": USER}),
        ("get", {"id": str(victim.fact_id)}),
        ("get", {"id": str(victim.message_id)}),
        ("correct", {"id": str(victim.fact_id), "content": "x"}),
        ("forget", {"id": str(victim.fact_id)}),
    ):
        for browser, where in ((neutral, "neutral host"), (strange, "the victim's host")):
            yield browser.call(tool, arguments, victim, f"{tool} by MCP at {where}")
    forged = attacker.key.replace(attacker.tenant.id.hex, victim.tenant.id.hex)
    yield _Browser(attacker, public_host(), key=forged).get(
        f"{API}/facts/", victim, "a key with the victim's tenant put in"
    )


def _session_of_the_same_name(browser: "_Browser", victim: Party) -> Iterator[Attempt]:
    """Write and clear a thread that is called as the victim's: it is our own that is changed."""
    theirs = SessionStore(victim.tenant.id)
    state = {"v": 4, "id": "0", "ts": "2026-03-14T09:30:00Z", "channel_versions": {"messages": "1"}}
    value = {"channel": "messages", "type": "null", "value": ""}
    for method, path, body in (
        ("POST", "checkpoints/", {
            "thread_id": THREAD, "checkpoint": {**state, "versions_seen": {}}, "values": [value],
            "metadata": {},
        }),
        ("POST", "checkpoints/writes/", {
            "thread_id": THREAD, "checkpoint_id": "0", "task_id": "t", "writes": [value],
        }),
        ("DELETE", f"sessions/{quote(THREAD)}/", None),
    ):  # fmt: skip
        before = theirs.get_session(THREAD), theirs.get_session_messages(THREAD)
        response = browser.send(method, f"{API}/{path}", body)
        after = theirs.get_session(THREAD), theirs.get_session_messages(THREAD)
        what = f"{method} {path.split('/')[0]} of the victim's thread"
        outcome = f"HTTP {response.status_code}"
        yield Attempt(Wall.DOOR, "REST", what, before != after, outcome)


def _by_cookie(attacker: Party, victim: Party) -> Iterator[Attempt]:
    browser = _Browser(attacker, attacker.host)
    if not browser.log_in():
        yield Attempt(Wall.DOOR, "admin", "log in at our own host", False, NO_LOGIN)
        return
    index = browser.fetch("/admin/")
    for address in sorted(set(_LIST_LINK.findall(index.text))):
        yield browser.get(address, victim, f"list {address}")
    for address in (
        f"/admin/memory/message/{victim.message_id}/change/",
        f"/admin/memory/memoryentry/{victim.fact_id}/change/",
        f"/admin/orchestrator/agent/{victim.agent_id}/change/",
    ):
        yield browser.get(address, victim, f"open {address.rsplit('/', 3)[0]} of the victim")
    browser.host = victim.host
    for address in ("/admin/", "/admin/memory/message/", f"{API}/facts/"):
        yield browser.get(address, victim, f"our cookie at the victim's {address}")
    browser.host = public_host()
    yield browser.get("/admin/", victim, "our cookie at the operators' admin")


class _Browser:
    """A client of the web in this process, with a key or with cookies."""

    def __init__(self, party: Party, host: str, key: str = "") -> None:
        self.party = party
        self.host = host
        self._via = "REST" if key else "admin"
        self._client = Client(raise_request_exception=False)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def fetch(self, address: str, method: str = "GET", **options: Any) -> Any:
        """Send a request and return the response, with its `text`."""
        response: Any = self._client.generic(
            method, address, headers={"Host": self.host, **self._headers}, secure=True, **options
        )
        body = b"".join(response.streaming_content) if response.streaming else response.content
        response.text_of_body = body.decode(errors="replace")
        return response

    def get(self, address: str, victim: Party, what: str) -> Attempt:
        """It gets through if the answer holds the victim's secret."""
        response = self.fetch(address)
        through = victim.secret in response.text_of_body
        return Attempt(Wall.DOOR, self._via, what, through, f"HTTP {response.status_code}")

    def send(self, method: str, address: str, body: Any) -> Any:
        """Send a request with a body, if there is one."""
        options = {"data": json.dumps(body), "content_type": "application/json"} if body else {}
        return self.fetch(address, method, **options)

    def change(self, method: str, address: str, victim: Party, what: str, body: Any) -> Attempt:
        """It gets through if it is done."""
        response = self.send(method, address, body)
        through = response.status_code < 300 or victim.secret in response.text_of_body
        return Attempt(Wall.DOOR, self._via, what, through, f"HTTP {response.status_code}")

    def call(self, tool: str, arguments: dict[str, str], victim: Party, what: str) -> Attempt:
        """It gets through if a tool changes what is the victim's, or tells the victim's secret."""
        params = {"name": tool, "arguments": arguments}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        response = self.fetch(
            "/mcp", "POST", data=json.dumps(asked), content_type="application/json"
        )
        told = response.text_of_body
        changed = tool in ("correct", "forget") and '"isError": false' in told
        return Attempt(
            Wall.DOOR, "MCP", what, changed or victim.secret in told, f"HTTP {response.status_code}"
        )

    def log_in(self) -> bool:
        """Log in to the admin of the host as its superuser."""
        form = f"username=eva&password={quote(self.party.password)}"
        response = self.fetch(
            "/admin/login/?next=/admin/",
            "POST",
            data=form,
            content_type="application/x-www-form-urlencoded",
        )
        return response.status_code == 302 and "sessionid" in self._client.cookies
