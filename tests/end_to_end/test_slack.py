"""Slack end to end: real web, real workers, and Slack's Web API on loopback."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from konstruct.channels.delivery import PLACEHOLDER
from tests.end_to_end.deployment import Deployment, Tenant, eventually
from tests.servers.llm import Answer
from tests.servers.slack import SlackServer, mention, message_event, signed

EVENTS = "/channels/slack/events/"


class World:
    """The deployment, with a workspace for each of two tenants."""

    def __init__(self, deployment: Deployment) -> None:
        assert deployment.slack is not None
        self.deployment = deployment
        self.slack: SlackServer = deployment.slack
        self.web = httpx.Client(
            base_url=deployment.url,
            headers={"Host": "localhost"},
            timeout=60,
            # Of too many idle connections, httpcore 1.0 closes one that a thread already uses.
            limits=httpx.Limits(max_keepalive_connections=None),
        )

    def connect(self, tenant: Tenant, workspace: str) -> None:
        self.deployment.manage(
            "connect_slack", "--tenant", tenant.slug, "--agent", "ada", "--workspace", workspace,
            SLACK_BOT_TOKEN=self.slack.workspaces[workspace].token,
        )  # fmt: skip

    def send_event(self, event: dict[str, Any], **headers: str) -> int:
        """Send an event of Slack."""
        body = json.dumps(event).encode()
        answer = self.web.post(EVENTS, content=body, headers={**signed(body), **headers})
        return answer.status_code

    def shown_texts(self, workspace: str, channel: str) -> list[list[str]]:
        """Return the successive texts of each of our posts in a channel."""
        posts = self.slack.workspaces[workspace].posts
        return [post["shown"] for post in posts if post["channel"] == channel]

    def wait(self, workspace: str, channel: str, texts: list[str]) -> None:
        """Wait until our posts show this."""
        self.slack.wait_for(lambda: self.slack.posts(workspace, channel) == texts, seconds=60)


@pytest.fixture
def world(deployment: Deployment) -> Iterator[World]:
    made = World(deployment)
    with made.web:
        yield made


def test_slack_from_one_end_to_the_other(world: World, deployment: Deployment) -> None:
    oak, elm = deployment.tenants[:2]
    world.connect(oak, "T1")
    world.connect(elm, "T2")
    answers_and_threads(world)
    retries_and_forgeries(world, oak)
    killed_worker(world)
    slack_down(world, oak)
    two_tenants(world)
    waiting = "SELECT count(*) FROM tenants_job WHERE kind = 'delivery' AND failed_at IS NULL"
    for tenant in (oak, elm):
        eventually(tenant.is_settled, "something still waits")
        assert tenant.rows(waiting) == [(0,)]


def answers_and_threads(world: World) -> None:
    """A mention is answered in its thread. The post is created first, and changed later."""
    llm = world.deployment.llm
    llm.answers.append(Answer({"content": "Hello **Maria**."}, wait=True))
    assert world.send_event(mention("T1", "Hello", channel="C1", ts="1700000001.1")) == 200
    world.wait("T1", "C1", [PLACEHOLDER.text])
    llm.release()
    world.wait("T1", "C1", ["Hello *Maria*."])
    assert world.shown_texts("T1", "C1") == [[PLACEHOLDER.text, "Hello *Maria*."]]
    in_thread = {"channel": "C1", "thread_ts": "1700000001.1"}
    assert world.send_event(message_event("T1", "And you?", **in_thread)) == 200
    assert world.send_event(message_event("T1", "Not for you", channel="C1")) == 200
    direct = message_event("T1", "Between us", channel="D1", channel_type="im")
    assert world.send_event(direct) == 200
    world.wait("T1", "D1", ["Noted."])
    world.wait("T1", "C1", ["Hello *Maria*.", "Noted."])
    threads = [post.get("thread_ts") for post in world.slack.workspaces["T1"].posts]
    assert sorted(map(str, threads)) == ["1700000001.1", "1700000001.1", "None"]


def retries_and_forgeries(world: World, tenant: Tenant) -> None:
    """A hundred deliveries of one event, with a lost cache, are one reply."""
    event = mention("T1", "Only once", channel="C2")

    def deliver(number: int) -> int:
        if number == 50:
            world.deployment.lose_cache_and_broker()
        return world.send_event(event, **{"X-Slack-Retry-Num": str(number)})

    with ThreadPoolExecutor(20) as threads:
        assert set(threads.map(deliver, range(100))) == {200}
    world.wait("T1", "C2", ["Noted."])
    body = json.dumps(mention("T1", "Forged", channel="C2")).encode()
    good = signed(body)
    for headers in (
        {},
        signed(body, secret="guessed"),
        signed(b"{}"),
        signed(body, at=time.time() - 400),
        {**good, "X-Slack-Request-Timestamp": str(int(time.time()) + 1)},
    ):
        assert world.web.post(EVENTS, content=body, headers=headers).status_code == 401
    count = "SELECT count(*) FROM memory_message WHERE content = ANY(%s)"
    assert tenant.rows(count, ["Only once", "Forged"]) == [(1,)]


def killed_worker(world: World) -> None:
    """The worker dies after Slack has created the post, before it is recorded."""
    llm = world.deployment.llm
    llm.forget()
    # The worker may have asked the language model already when it dies; it is then asked again.
    answer = {"content": "Still here."}
    llm.answers.extend([Answer(answer, wait=True), Answer(answer)])
    calls = len(world.slack.calls)
    world.deployment.order_deaths(["before record_post"])
    assert world.send_event(mention("T1", "Are you there?", channel="C3")) == 200
    world.wait("T1", "C3", [PLACEHOLDER.text])
    llm.release()
    world.wait("T1", "C3", ["Still here."])
    assert world.deployment.open_orders() == []
    made = [call.method for call in world.slack.calls[calls:] if call.arguments.get("channel")]
    assert made.count("chat.postMessage") == 1
    assert "conversations.replies" in made
    llm.forget()


def slack_down(world: World, tenant: Tenant) -> None:
    """Slack is down for a while: replies of this time are delivered once."""
    world.slack.down = True
    assert world.send_event(mention("T1", "Can you hear me?", channel="C4")) == 200
    failed = (
        "SELECT count(*) FROM channels_delivery JOIN tenants_job ON key = message_id"
        " WHERE kind = 'delivery' AND attempts > 1 AND address ->> 'channel' = 'C4'"
    )
    eventually(lambda: tenant.rows(failed) == [(1,)], "it was not tried twice")
    world.slack.down = False
    world.wait("T1", "C4", ["Noted."])


def two_tenants(world: World) -> None:
    """The same ids in two workspaces of two tenants: both are isolated."""
    llm = world.deployment.llm
    llm.forget()
    same = {"channel": "C5", "user": "U5", "ts": "1700000005.5"}
    assert world.send_event(mention("T1", "My code word is xylophone.", **same)) == 200
    world.wait("T1", "C5", ["Noted."])
    assert world.shown_texts("T2", "C5") == []
    assert world.send_event(mention("T2", "What is my code word?", **same)) == 200
    world.wait("T2", "C5", ["Noted."])
    requests = json.dumps([request.body for request in llm.requests[-1:]])
    assert "What is my code word?" in requests
    assert "xylophone" not in requests
    assert len(world.shown_texts("T1", "C5")) == 1
