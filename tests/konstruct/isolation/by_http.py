"""Attacks by HTTP: with the attacker's key by REST and MCP, and with its cookie.

Each runs at the attacker's own host, the victim's and the neutral one.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.test import Client
from psycopg.errors import InsufficientPrivilege

from memory.context import SessionStore
from tenants.context import public_scope
from tests.konstruct.isolation.attempts import NOT_TRIED, Attempt, Layer
from tests.konstruct.isolation.fixtures import THREAD, USER, TenantFixture
from tests.konstruct.privacy.conftest import save_session

NO_LOGIN = f"{NOT_TRIED}the log-in failed (is the host in ALLOWED_HOSTS?)"
API = "/api/v1"
LISTS = ("agents", "conversations", "facts", "users", "sessions", "recall-events", "usage")

# Addresses of lists in the admin's index.
_LIST_LINK = re.compile(r'href="(/admin/[a-z_]+/[a-z_]+/)"')


def attack(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    """Run all attacks by HTTP that the command does not run."""
    with public_scope():
        yield from _by_key(attacker, victim)
        yield from _by_cookie(attacker, victim)


def _by_key(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    neutral = Browser(attacker, str(settings.PUBLIC_HOSTS[0]), attacker.key)
    strange = Browser(attacker, victim.host, attacker.key)
    for browser, where in ((neutral, "the neutral host"), (strange, "the victim's host")):
        for name in LISTS:
            yield browser.get(f"{API}/{name}/", victim, f"list {name} at {where}")
        for path in (
            f"messages/{victim.message_id}/",
            f"facts/{victim.fact_id}/",
            f"agents/{victim.agent_id}/",
            f"facts/{victim.fact_id}/history/",
            f"sessions/{quote(THREAD)}/",
            f"conversations/transcript/?agent={victim.agent_id}&user_id={USER}&thread_id={THREAD}",
            f"conversations/items/?agent={victim.agent_id}&user_id={USER}&thread_id={THREAD}",
            f"conversations/items/?agent=ada&user_id={USER}&thread_id={THREAD}",
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
        {"type": "event_callback", "event_id": "Ev1", "team_id": victim.workspace,
         "event": {"type": "app_mention", "user": USER, "channel": "C1", "ts": "1.1", "text": "x"}},
    )  # fmt: skip
    yield from _session_of_the_same_name(neutral, attacker, victim)
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


def _session_of_the_same_name(
    browser: "Browser", attacker: TenantFixture, victim: TenantFixture
) -> Iterator[Attempt]:
    """Clear a thread with the name of the victim's: only our own may change."""
    with suppress(InsufficientPrivilege):  # with the victim's schema, policies refuse our own row
        save_session(attacker.tenant, THREAD, "ours")
    store = SessionStore(victim.tenant.id)
    before = store.get_session(THREAD), store.get_session_messages(THREAD)
    response = browser.send("DELETE", f"{API}/sessions/{quote(THREAD)}/", None)
    after = store.get_session(THREAD), store.get_session_messages(THREAD)
    outcome = f"HTTP {response.status_code}"
    yield Attempt(
        Layer.HTTP, "REST", "DELETE sessions of the victim's thread", before != after, outcome
    )


def _by_cookie(attacker: TenantFixture, victim: TenantFixture) -> Iterator[Attempt]:
    browser = Browser(attacker, attacker.host)
    if not browser.log_in():
        yield Attempt(Layer.HTTP, "admin", "log in at our own host", False, NO_LOGIN)
        return
    index = browser.fetch("/admin/")
    for path in sorted(set(_LIST_LINK.findall(index.text))):
        yield browser.get(path, victim, f"list {path}")
    for model, key in (
        ("memory/message", victim.message_id),
        ("memory/memoryentry", victim.fact_id),
        ("orchestrator/agent", victim.agent_id),
    ):
        path = f"/admin/{model}/{key}/change/"
        yield browser.get(path, victim, f"open /admin/{model} of the victim")
    browser.host = victim.host
    for path in ("/admin/", "/admin/memory/message/", f"{API}/facts/"):
        yield browser.get(path, victim, f"our cookie at the victim's {path}")
    browser.host = str(settings.PUBLIC_HOSTS[0])
    yield browser.get("/admin/", victim, "our cookie at the operators' admin")


class Browser:
    """A client of the web process, with an API key or with cookies."""

    def __init__(self, attacker: TenantFixture, host: str, key: str = "") -> None:
        self.attacker = attacker
        self.host = host
        self.via = "REST" if key else "admin"
        self._client = Client(raise_request_exception=False)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def fetch(self, path: str, method: str = "GET", **options: Any) -> Any:
        """Send a request. Return the response, with its body in `text_of_body`."""
        response: Any = self._client.generic(
            method, path, headers={"Host": self.host, **self._headers}, secure=True, **options
        )
        body = b"".join(response.streaming_content) if response.streaming else response.content
        response.text_of_body = body.decode(errors="replace")
        return response

    def get(self, path: str, victim: TenantFixture, what: str) -> Attempt:
        """Read a page. The attempt succeeds if the page contains the victim's secret."""
        response = self.fetch(path)
        found = victim.secret in response.text_of_body
        return Attempt(Layer.HTTP, self.via, what, found, f"HTTP {response.status_code}")

    def log_in(self) -> bool:
        """Log in to the admin of the host as the attacker's superuser."""
        response = self.fetch(
            "/admin/login/?next=/admin/",
            "POST",
            data=urlencode({"username": "eva", "password": self.attacker.password}),
            content_type="application/x-www-form-urlencoded",
        )
        return response.status_code == 302 and "sessionid" in self._client.cookies

    def send(self, method: str, path: str, body: Any) -> Any:
        """Send a request with a JSON body, if there is one."""
        options = {"data": json.dumps(body), "content_type": "application/json"} if body else {}
        return self.fetch(path, method, **options)

    def change(
        self, method: str, path: str, victim: TenantFixture, what: str, body: Any
    ) -> Attempt:
        """Send a request. The attempt succeeds if the request is carried out."""
        response = self.send(method, path, body)
        through = response.status_code < 300 or victim.secret in response.text_of_body
        return Attempt(Layer.HTTP, self.via, what, through, f"HTTP {response.status_code}")

    def call(
        self, tool: str, arguments: dict[str, str], victim: TenantFixture, what: str
    ) -> Attempt:
        """Call a tool of MCP. Succeeds if it changes the victim's rows or returns the secret."""
        params = {"name": tool, "arguments": arguments}
        response = self.send(
            "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        )
        body = response.text_of_body
        changed = tool in ("correct", "forget") and '"isError": false' in body
        through = changed or victim.secret in body
        return Attempt(Layer.HTTP, "MCP", what, through, f"HTTP {response.status_code}")
