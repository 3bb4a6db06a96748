"""The clients. Locust runs them in its own process, because gevent patches all of its modules.

`traffic.py` starts this module with the plan in the file LOAD_PLAN, and reads the file `report` of
the plan. Each client is one end user of one tenant. Each text that it sends contains a token of
tenant and user. An answer with the token of another tenant or user is a violation.
"""

import itertools
import json
import os
import random
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import gevent
from locust import FastHttpUser, between, events, task

from tests.servers.slack import message_event, signed

PLAN = json.loads(Path(os.environ["LOAD_PLAN"]).read_text())
TOKEN = re.compile(PLAN["token"])
# A complete event of a stream.
EVENT = re.compile(r"^data: (.*)\n\n", re.MULTILINE)
ADMIN_PAGES = (
    "/admin/",
    "/admin/memory/message/",
    "/admin/memory/memoryentry/",
    "/admin/memory/scope/",
)
QUESTIONS = ("Where does she live?", "What did I buy at the market?", "When is the visit?")
# Maximum wait of a client, whatever Retry-After says.
MAX_PAUSE_SECONDS = 5.0
# Maximum tries of a request without an answer, until the deployment is back.
MAX_TRIES = 120
MAX_VIOLATIONS = 200

_numbers = itertools.count(PLAN["first_number"])
_turns = itertools.count()
_accepted: dict[str, str] = {}
_uncertain: set[str] = set()
"""Tokens of messages that may have been accepted: no answer came."""
_erased: list[str] = []
_in_slack: list[str] = []
"""Accepted tokens that were said in Slack."""
_violations: Counter[str] = Counter()
_resent = itertools.count()


def violation(text: str) -> None:
    """Record a violation."""
    if len(_violations) < MAX_VIOLATIONS or text in _violations:
        _violations[text] += 1


class EndUser(FastHttpUser):
    """One end user that sends one request after the other."""

    wait_time = between(0.1, 0.5)
    network_timeout = 100.0

    def on_start(self) -> None:
        """Take the next end user of the plan."""
        tenant, self.user_id = PLAN["users"][next(_turns) % len(PLAN["users"])]
        self.tenant = PLAN["tenants"][tenant]
        self.slug = tenant
        self.key = {"Authorization": f"Bearer {self.tenant['key']}", "Host": PLAN["host"]}
        self.site = {"Host": f"{tenant}.{PLAN['host']}"}
        self.has_session = False

    # --- Messages ---------------------------------------------------------------------------------

    @task(6)
    def send_and_wait(self) -> None:
        """Send a message, and wait for the reply within the same request."""
        token, body = self.message()
        answer = self.send("send, wait", token, body, "?wait=60")
        if answer is not None:
            self.check_reply(token, answer.json())

    @task(4)
    def send_and_stream(self) -> None:
        """Send a message, and read the reply as a stream."""
        token, body = self.message()
        answer = self.send("send, stream", token, body, "", Accept="text/event-stream")
        if answer is None:
            return
        events_of_stream = EVENT.findall(answer.text)
        last = json.loads(events_of_stream[-1]) if events_of_stream else {}
        if not {"status", "type"} & set(last) and 0 in PLAN["may_answer"]:
            return  # The stream ended with its web process. The outcome is counted at the end.
        self.check_reply(token, last)

    @task(4)
    def send_and_poll(self) -> None:
        """Send a message, and poll for its reply."""
        token, body = self.message()
        answer = self.send("send", token, body)
        if answer is None:
            return
        for _ in range(MAX_TRIES):
            path = f"/api/v1/messages/{_accepted[token]}/?wait=10"
            polled = self.call("poll", "GET", path)
            if polled is not None and polled.json()["status"] != "queued":
                self.check_reply(token, polled.json())
                return

    @task(3)
    def complete(self) -> None:
        """Request a completion from OpenAI's interface."""
        token = self.token()
        body = {
            "model": "ada",
            "user": self.user_id,
            "messages": [{"role": "user", "content": f"I say {token}."}],
        }
        answer = self.call("OpenAI", "POST", "/v1/chat/completions", json=body, token=token)
        if answer is not None:
            _accepted[token] = ""
            text = answer.json()["choices"][0]["message"]["content"]
            if text != f"Heard {token}.":
                violation(f"OpenAI: {text!r} is no reply to {token}")

    @task(2)
    def say_in_slack(self) -> None:
        """Send a direct message in Slack. Slack repeats the event until it is accepted."""
        if self.tenant["workspace"] is None:
            return
        token = self.token()
        number = token.rpartition("-")[2]
        event = message_event(
            self.tenant["workspace"], f"I say {token}.", user=f"U{self.user_id.upper()}",
            channel=f"D{self.user_id.upper()}", channel_type="im",
            ts=f"{int(time.time())}.{int(number) % 1_000_000:06}",
        )  # fmt: skip
        body = json.dumps({**event, "event_id": f"Ev{number}"}).encode()
        headers = {
            **signed(body), "Content-Type": "application/json", "Host": PLAN["host"],
            "Idempotency-Key": token,
        }  # fmt: skip
        path = "/channels/slack/events/"
        answer = self.call("Slack event", "POST", path, data=body, token=token, headers=headers)
        if answer is not None:
            _accepted[token] = ""
            _in_slack.append(token)

    # --- Reads ------------------------------------------------------------------------------------

    @task(5)
    def recall(self) -> None:
        """Search the messages of this user."""
        body = {"agent": "ada", "user_id": self.user_id, "query": random.choice(QUESTIONS)}
        self.call("recall", "POST", "/api/v1/memories/search/", json=body)

    @task(3)
    def mcp(self) -> None:
        """Search as an MCP host does."""
        arguments = {"query": random.choice(QUESTIONS), "user_id": self.user_id}
        params = {"name": "search", "arguments": arguments}
        self.call(
            "MCP search",
            "POST",
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
            headers=self.key
            | {
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2025-06-18",
            },
        )

    @task(3)
    def conversations(self) -> None:
        """List conversations of the tenant, and read one of this user."""
        self.call("conversations", "GET", "/api/v1/conversations/?limit=50", of_all=True)
        path = f"/api/v1/conversations/transcript/?agent=ada&user_id={self.user_id}"
        self.call("transcript", "GET", path)

    @task(2)
    def facts(self) -> None:
        """Store a fact now and then, and list those of this user."""
        if random.random() < 0.3:
            body = {"agent": "ada", "user_id": self.user_id, "content": f"Fact {self.token()}"}
            self.call("fact", "POST", "/api/v1/facts/", json=body)
        self.call("facts", "GET", f"/api/v1/facts/?user_id={self.user_id}")

    @task(2)
    def timeline(self) -> None:
        """Read the timeline of this user."""
        self.call("timeline", "GET", f"/api/v1/users/{self.user_id}/timeline/?limit=50")

    @task(1)
    def search(self) -> None:
        """Search the messages of all users."""
        self.call("search", "GET", "/api/v1/search/?q=market&limit=10", of_all=True)

    @task(1)
    def admin(self) -> None:
        """Open a page of the tenant's admin."""
        if not self.has_session:
            page = self.call("admin login", "GET", "/admin/login/", of_all=True, headers=self.site)
            if page is None:
                return
            token = page.text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
            form = {"csrfmiddlewaretoken": token, "username": "eva", "password": "pw"}
            headers = {**self.site, "Referer": f"{PLAN['scheme']}://{self.site['Host']}/"}
            answer = self.call(
                "admin login", "POST", "/admin/login/", of_all=True, headers=headers, data=form,
                allow_redirects=False,
            )  # fmt: skip
            self.has_session = answer is not None and answer.status_code == 302
        elif random.random() < 0.9:
            path = random.choice(ADMIN_PAGES)
            self.call("admin page", "GET", path, of_all=True, headers=self.site)

    @task(1)
    def erase(self) -> None:
        """Now and then, become another user, send a message, and erase this user."""
        if random.random() > PLAN["erasures"]:
            return
        token, body = self.message()
        body["user_id"] = f"gone {token}"
        answer = self.send("send, wait", token, body, "?wait=60")
        if answer is None:
            return
        headers = {**self.key, "Authorization": f"Bearer {self.tenant['eraser']}"}
        sent_answer = self.call(
            "erasure", "POST", "/api/v1/erasures/", headers=headers,
            json={"user_id": body["user_id"]},
        )  # fmt: skip
        _accepted.pop(token, None)
        _uncertain.add(token)  # until it is done
        if sent_answer is None:
            return
        path = "/" + sent_answer.json()["url"].split("/", 3)[3]
        for _ in range(MAX_TRIES):
            gevent.sleep(1)
            receipt = self.call("erasure receipt", "GET", path, headers=headers)
            if receipt is not None and receipt.json()["state"] == "done":
                _uncertain.remove(token)
                _erased.append(token)
                return

    # --- One request ------------------------------------------------------------------------------

    def token(self) -> str:
        """Return a new token of this tenant and user."""
        return f"{self.slug}-{self.user_id}-{next(_numbers)}"

    def message(self) -> tuple[str, dict[str, Any]]:
        """Return a token, and a message with it."""
        token = self.token()
        body = {"agent": "ada", "user_id": self.user_id, "content": f"I say {token}."}
        return token, body

    def send(
        self, name: str, token: str, body: dict[str, Any], query: str = "", **headers: str
    ) -> Any:
        """Send a message; repeat it with the same key without an answer. None if it is refused."""
        path = f"/api/v1/messages/{query}"
        headers = {**self.key, **headers, "Idempotency-Key": token}
        answer = self.call(name, "POST", path, json=body, token=token, headers=headers)
        if answer is not None:
            text = answer.text
            found = re.search(r'"id": ?"([0-9a-f-]{36})"', text)
            if found is None:
                violation(f"{name}: no id in {text[:200]!r}")
                return None
            _accepted[token] = found[1]
        return answer

    def check_reply(self, token: str, document: dict[str, Any]) -> None:
        """Record a wrong reply to this token. A missing reply is counted at the end."""
        if document.get("status") == "queued" or document.get("type") in PLAN["interruptions"]:
            return
        reply = document.get("reply") or {}
        if reply.get("content") != f"Heard {token}.":
            violation(f"{str(document)[:300]} is no answer to a message")

    def call(
        self,
        name: str,
        method: str,
        path: str,
        *,
        of_all: bool = False,
        token: str = "",
        headers: dict[str, str] | None = None,
        json: Any = None,
        data: Any = None,
        allow_redirects: bool = True,
    ) -> Any:
        """Send a request and return its answer, or None if it is refused.

        Args:
            of_all: the answer may have texts of other users of the tenant.
            token: of a message that the request sends: whether it is accepted is uncertain if no
                answer comes, and a request with an Idempotency-Key is sent again.
        """  # fmt: skip
        headers = headers or self.key
        is_first = token not in _uncertain
        if token:
            _uncertain.add(token)
        for _ in range(MAX_TRIES if "Idempotency-Key" in headers else 1):
            with self.client.request(
                method, path, name=name, headers=headers, json=json, data=data,
                allow_redirects=allow_redirects, catch_response=True,
            ) as response:  # fmt: skip
                status = response.status_code
                if status in (429, 503):
                    self.be_refused(response, status)
                    if not is_first:
                        continue  # an earlier try may have been accepted
                    if status == 429:  # a 503 can follow a commit whose connection was lost
                        _uncertain.discard(token)
                    return None
                if status in (200, 201, 202, 204, 302):
                    response.success()
                    self.check_tokens(name, response.text or "", of_all=of_all)
                    _uncertain.discard(token)
                    return response
                response.request_meta["name"] = f"broken {status}"
                response.failure(str(status))
                if status not in PLAN["may_answer"]:
                    violation(f"{name}: {status} {(response.text or '')[:300]}")
            is_first = False
            next(_resent)
            gevent.sleep(0.5)
        return None

    def be_refused(self, response: Any, status: int) -> None:
        """Wait for the Retry-After of the answer."""
        response.request_meta["name"] = f"refused {status}"
        response.success()
        seconds = response.headers.get("Retry-After")
        if seconds is None:
            violation(f"{response.url}: {status} without Retry-After: {response.text[:200]}")
        gevent.sleep(min(float(seconds or 1), MAX_PAUSE_SECONDS))

    def check_tokens(self, name: str, text: str, *, of_all: bool) -> None:
        """Record tokens of another tenant, or of another user where the answer belongs to one."""
        for slug, user_id, number in TOKEN.findall(text):
            if slug not in PLAN["tenants"]:
                continue  # a CSS class, or a part of an id
            if slug != self.slug or not (of_all or user_id == self.user_id):
                violation(f"{name} of {self.slug}-{self.user_id} has {slug}-{user_id}-{number}")


@events.user_error.add_listener
def note_error(exception: Exception, **_: Any) -> None:
    """Record an answer that this program cannot parse."""
    violation(repr(exception))


@events.quitting.add_listener
def write_report(environment: Any, **_: Any) -> None:
    """Write the measurements and the accepted messages."""
    calls = {
        entry.name: {
            "count": entry.num_requests,
            **{f"p{p}": entry.get_response_time_percentile(p / 100) for p in (50, 95, 99)},
        }
        for entry in environment.stats.entries.values()
        if entry.num_requests
    }
    total = environment.stats.total
    seconds = max(1.0, (total.last_request_timestamp or 0) - total.start_time)
    report = {
        "calls": calls,
        "seconds": seconds,
        "accepted": _accepted,
        "uncertain": sorted(_uncertain),
        "erased": _erased,
        "in_slack": _in_slack,
        "violations": dict(_violations),
        "resent": next(_resent),
    }
    Path(PLAN["report"]).write_text(json.dumps(report))
    environment.process_exit_code = 0
