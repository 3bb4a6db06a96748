"""POST /channels/slack/events/: answered and ignored events, each answered once."""

import json
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError
from django.utils import timezone
from django_redis import get_redis_connection

from konstruct.channels import inbox
from konstruct.channels.models import Arrival, Delivery, SlackInstallation
from konstruct.channels.slack import inbound
from memory.models import Message
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.limits.quotas import UNLIMITED, Limit, Quota, next_month, set_limits
from tenants.models import Tenant
from tests.jobs import work
from tests.konstruct.channels.conftest import install, messages
from tests.konstruct.conftest import Post, Program
from tests.servers.slack import (
    SIGNING_SECRET,
    SlackServer,
    Trouble,
    event,
    mention,
    message_event,
    signed,
)
from tests.stored import tenant_of_workspace


def test_the_url_is_verified(slack: SlackServer, post: Post, db: None) -> None:
    answer = post({"type": "url_verification", "challenge": "3eZbrw1a", "token": "x"})
    assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw1a"})


def test_mention_is_accepted_with_the_address_of_its_reply(connected: Program, post: Post) -> None:
    assert post(mention("T1", "Where is &lt;x&gt; &amp; y?", ts="17.1")).status_code == 200
    assert messages(connected) == [("U1", "T1/C1/17.1", "Where is <x> & y?", "")]
    with tenant_scope(connected.tenant.id):
        delivery = Delivery.objects.get()
        assert delivery.message.channel == "slack"
    assert delivery.address == {
        "workspace": "T1", "channel": "C1", "thread_ts": "17.1", "ts": "17.1",
    }  # fmt: skip


def test_mention_that_arrives_as_two_events_is_handled_once(connected: Program, post: Post) -> None:
    profile = {"display_name": "Maria"}
    for payload in (
        mention("T1", "Hello", ts="17.1"),
        message_event("T1", "<@UBOT> Hello", ts="17.1"),
        mention("T1", "Hello", ts="17.1"),
        message_event("T1", "<@UBOT> Hello", ts="17.1", user_profile=profile),
    ):
        assert post(payload).status_code == 200
    assert len(messages(connected)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["kept", "lost"])
def test_a_storm_of_retries_is_one_message(connected: Program, post: Post, cache: str) -> None:
    payload = mention("T1", "Hello")
    for number in range(20):
        if cache == "lost":
            get_redis_connection("default").flushdb()
        body = json.dumps(payload).encode()
        retry = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": "http_timeout"}
        assert post(payload, headers={**signed(body), **retry}).status_code == 200
    assert len(messages(connected)) == 1


def test_a_direct_message_needs_no_mention(connected: Program, post: Post) -> None:
    direct = {"channel": "D1", "channel_type": "im"}
    post(message_event("T1", "Hello", ts="17.1", **direct, user_profile={"real_name": "Maria"}))
    post(message_event("T1", "In a thread", ts="17.3", thread_ts="17.1", **direct))
    assert messages(connected) == [
        ("U1", "T1/D1", "Hello", "Maria"),
        ("U1", "T1/D1/17.1", "In a thread", "Maria"),
    ]


@pytest.mark.parametrize("cache", ["kept", "lost"])
def test_messages_of_all_users_are_handled_in_an_engaged_thread(
    connected: Program, post: Post, cache: str
) -> None:
    post(message_event("T1", "Before anybody asked", ts="17.0", thread_ts="17.1"))
    post(mention("T1", "Hello", ts="17.1"))
    if cache == "lost":
        get_redis_connection("default").flushdb()
    post(message_event("T1", "And then?", ts="17.2", thread_ts="17.1", user="U2"))
    post(message_event("T1", "Elsewhere", ts="17.3", thread_ts="16.0"))
    post(message_event("T1", "At the top", ts="17.4"))
    assert messages(connected) == [
        ("U1", "T1/C1/17.1", "Hello", ""),
        ("U2", "T1/C1/17.1", "And then?", ""),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "UBOT"},
        {"bot_id": "B9"},
        {"subtype": "bot_message"},
        {"subtype": "message_changed", "message": {"text": "<@UBOT> x"}},
        {"user": None},
        {"ts": None},
        {"channel": {}},
        {"channel": "C" * 51},
        {"user": "U1\0"},
        {"type": "reaction_added"},
        {"type": None},
    ],
)
def test_events_without_a_message_to_the_app_are_ignored(
    connected: Program, post: Post, fields: dict[str, Any]
) -> None:
    assert post(message_event("T1", "<@UBOT> Hello", **fields)).status_code == 200
    assert messages(connected) == []


def test_files_are_named_and_a_bare_mention_is_a_message(connected: Program, post: Post) -> None:
    files = [{"name": "a.pdf", "title": "Plan"}, {"name": "b.png"}, "odd"]
    post(message_event("T1", "<@UBOT> See here", ts="1.1", subtype="file_share", files=files))
    post(message_event("T1", "", ts="1.2", channel_type="im", channel="D1", files=files[:1]))
    post(mention("T1", "", ts="1.3"))
    assert [content for _, _, content, _ in messages(connected)] == [
        "See here\n[Attached, and not to be read here: Plan, b.png]",
        "[Attached, and not to be read here: Plan]",
        "@ada",
    ]


def test_unusual_text_is_stored_and_long_text_is_cut(
    connected: Program, post: Post, settings: Any
) -> None:
    settings.MAX_MESSAGE_CHARACTERS = 20
    body = json.dumps(mention("T1", "NUL \0 half \ud800 " + "x" * 50)).encode()
    assert post(body).status_code == 200
    assert [content for _, _, content, _ in messages(connected)] == ["NUL  half ? xxxx […]"]


def test_unsigned_forged_and_stale_requests_are_refused_unread(
    connected: Program, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps(mention("T1", "Hello")).encode()
    good = signed(body)
    a_second_before = str(int(good["X-Slack-Request-Timestamp"]) - 1)
    refused = [
        {"X-Nothing": ""},
        signed(body, secret="another"),
        signed(body + b" "),
        signed(body, at=time.time() - 301),
        signed(body, at=time.time() + 400),
        {**good, "X-Slack-Request-Timestamp": a_second_before},
        {**good, "X-Slack-Request-Timestamp": "soon"},
        {**good, "X-Slack-Signature": "v0=ü"},
        {**good, "X-Slack-Signature": ""},
        {"X-Slack-Signature": good["X-Slack-Signature"]},
    ]
    with monkeypatch.context() as patch:
        patch.setattr(json, "loads", lambda *_: pytest.fail("it was read"))
        assert [post(body, headers=headers).status_code for headers in refused] == [401] * 10
        assert post(b"\xff", headers=signed(b"\xff")).status_code == 401
    assert messages(connected) == []


def test_request_without_a_signature_of_slack_is_refused(
    connected: Program, post: Post, settings: Any, client: Any
) -> None:
    assert client.get("/channels/slack/events/", headers={"Host": "localhost"}).status_code == 405
    assert post(b"[]").status_code == 400
    assert post(b"{" * 100_000).status_code == 400
    for odd in (
        {},
        {"type": 1},
        {"type": "event_callback"},
        {"type": "event_callback", "event": 1},
    ):
        assert post(odd).status_code == 200
    for odd in ({"event_id": None}, {"team_id": "T\0", "authorizations": None}):
        assert post({**mention("T1", "x"), **odd}).status_code == 200
    settings.SLACK_SIGNING_SECRET = ""
    assert post(mention("T1", "x")).status_code == 404
    assert messages(connected) == []


def test_a_signing_secret_is_rotated_while_slack_signs_with_either(
    slack: SlackServer, post: Post, settings: Any, db: None
) -> None:
    body, new = (
        b'{"type": "url_verification", "challenge": "x"}',
        "7d0ad2a4cc0d1b90d02c7c9e85c6b3a1",
    )

    def statuses() -> list[int]:
        secrets = (SIGNING_SECRET, new)
        return [post(body, headers=signed(body, secret=secret)).status_code for secret in secrets]

    assert statuses() == [200, 401]
    settings.SLACK_SIGNING_SECRET = new
    settings.SLACK_SIGNING_SECRET_FALLBACKS = [SIGNING_SECRET]
    assert statuses() == [200, 200]
    settings.SLACK_SIGNING_SECRET_FALLBACKS = []
    assert statuses() == [401, 200]


def test_slack_events_on_the_host_of_a_tenant_are_not_found(connected: Program, post: Post) -> None:
    body = json.dumps(mention("T1", "x")).encode()
    answer = post(body, headers={**signed(body), "Host": "tenant-a.localhost"})
    assert answer.status_code == 404


def test_an_unknown_workspace_is_ignored_with_a_line(
    connected: Program, post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    assert post(mention("T9", "Hello")).status_code == 200
    assert "unknown Slack workspace T9" in caplog.text


def test_a_suspended_tenant_and_an_inactive_agent_are_not_spoken_to(
    connected: Program, post: Post
) -> None:
    connected.agent.is_active = False
    with tenant_scope(connected.tenant.id):
        connected.agent.save()
    assert post(mention("T1", "Hello")).status_code == 200
    assert messages(connected) == []
    Tenant.objects.filter(pk=connected.tenant.pk).update(state="suspended")
    assert post(mention("T1", "Hello")).status_code == 200
    with tenant_scope(connected.tenant.id):
        assert not Arrival.objects.exists()


def test_the_installation_that_an_event_is_for_is_named_by_its_authorization(
    connected: Program, post: Post
) -> None:
    # In a channel that T1 shares with T7, a user of T7 writes.
    payload = {**mention("T7", "Hello", ts="1.1"), "authorizations": [{"team_id": "T1"}]}
    post(payload)
    # Without the bot user and the authorizations.
    post({**message_event("T1", "<@UBOT> Hi", ts="1.2"), "authorizations": None})
    assert messages(connected) == [("U1", "T1/C1/1.1", "Hello", ""), ("U1", "T1/C1/1.2", "Hi", "")]


def test_equal_user_and_channel_ids_of_two_tenants_are_separate(
    connected: Program, program_b: Program, slack: SlackServer, post: Post
) -> None:
    install(program_b, slack, "T2")
    payload = {"ts": "17.1", "user": "U1", "channel": "C1"}
    post({**mention("T1", "Of A", **payload), "event_id": "Ev1"})
    post({**mention("T2", "Of B", **payload), "event_id": "Ev1"})
    assert messages(connected) == [("U1", "T1/C1/17.1", "Of A", "")]
    assert messages(program_b) == [("U1", "T2/C1/17.1", "Of B", "")]


def test_slack_over_the_limit_gets_retry_after(
    connected: Program, post: Post, settings: Any
) -> None:
    settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND = 1, 0.1
    post(mention("T1", "First"))
    payload = mention("T1", "Second")
    answer = post(payload)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "10")
    settings.RATE_LIMIT_BURST = 10
    get_redis_connection("default").delete(f"{connected.tenant.id}:ratelimit:slack")
    assert post(payload).status_code == 200
    assert [content for _, _, content, _ in messages(connected)] == ["First", "Second"]


def test_event_is_accepted_without_the_cache_and_retried_without_postgres(
    connected: Program, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OperationalError("the database system is shutting down")

    payload = mention("T1", "Hello")
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "enqueue", broken)
        answer = post(payload)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    from redis.exceptions import ConnectionError as Unreachable

    class Down:
        def __getattr__(self, name: str) -> Any:
            raise Unreachable("refused")

    with monkeypatch.context() as patch:
        patch.setattr(inbound, "get_redis_connection", lambda *_: Down())
        assert post(payload).status_code == 200
        assert post(payload).status_code == 200
    assert len(messages(connected)) == 1


@pytest.mark.parametrize(
    "ends", [{"type": "app_uninstalled"}, {"type": "tokens_revoked", "tokens": {"bot": ["UBOT"]}}]
)
def test_workspace_is_disconnected_by_slack(
    connected: Program, post: Post, ends: dict[str, Any]
) -> None:
    assert post(event("T1", type="tokens_revoked", tokens={"oauth": ["U1"]})).status_code == 200
    assert post({**event("T1", **ends), "event_time": 1_000_000_000}).status_code == 200
    assert tenant_of_workspace("slack", "T1") == connected.tenant.id
    assert post({**event("T1", **ends), "event_time": int(time.time()) + 5}).status_code == 200
    assert tenant_of_workspace("slack", "T1") is None
    with tenant_scope(connected.tenant.id):
        ended = SlackInstallation.objects.get()
    assert (ended.state, ended.encrypted_token) == ("disconnected", "")
    assert ended.ended_because == f"Slack says: {ends['type']}"
    assert post(mention("T1", "Hello")).status_code == 200
    assert messages(connected) == []


def test_the_query_budget_of_a_mention(
    connected: Program, post: Post, django_assert_num_queries: Callable[..., Any]
) -> None:
    with django_assert_num_queries(5):  # with a savepoint
        post(mention("T1", "Hello"))
    with tenant_scope(connected.tenant.id):
        assert Arrival.objects.count() == 1
    with django_assert_num_queries(33):  # with savepoints
        work("arrival")
    with tenant_scope(connected.tenant.id):
        assert (Arrival.objects.count(), Message.objects.count()) == (0, 1)


def test_failed_entry_is_retried_and_blocks_no_other(
    connected: Program, post: Post, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    usual = inbound.handle

    def handle(tenant_id: UUID, payload: Any) -> None:
        if "broken" in payload["text"]:
            raise KonstructError("It does not go in.")
        usual(tenant_id, payload)

    monkeypatch.setitem(inbox.HANDLERS, "slack", handle)
    monkeypatch.setitem(vars(inbox.ARRIVALS), "max_attempts", 2)
    post(mention("T1", "broken"))
    post(mention("T1", "whole"))
    assert [content for _, _, content, _ in messages(connected)] == ["whole"]
    with tenant_scope(connected.tenant.id):
        job = inbox.ARRIVALS.jobs().get()
        assert (job.attempts, job.last_error) == (1, "It does not go in.")
        assert job.key == Arrival.objects.get().pk
        inbox.ARRIVALS.jobs().update(sweep_at="2000-01-01T00:00:00Z")
        messages(connected)
        assert inbox.ARRIVALS.jobs().failed().exists()
        monkeypatch.undo()
        assert inbox.ARRIVALS.retry(job.key)
        assert not inbox.ARRIVALS.retry(job.key)
    assert len(messages(connected)) == 2


def test_a_thread_reads_once_that_messages_are_refused(
    connected: Program,
    slack: SlackServer,
    post: Post,
    django_capture_on_commit_callbacks: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbound, "enqueue_task", lambda task, *given: task(*given))
    set_limits(connected.tenant.id, {Quota.MESSAGES: Limit(hard=Decimal(0))})
    with django_capture_on_commit_callbacks(execute=True):
        for payload in (
            mention("T1", "Hello", ts="17.1"),
            mention("T1", "Hello?", ts="17.2", thread_ts="17.1"),
            message_event("T1", "Hi", ts="18.1", channel="D1", channel_type="im"),
        ):
            assert post(payload).status_code == 200
        assert messages(connected) == []
    resets_at = f"{next_month(timezone.now()):%Y-%m-%d}"
    text = (
        "No more messages can be taken this month, and this one was not kept. Please write again"
        f" from {resets_at} on, or ask the people who run this service."
    )
    posts = slack.workspaces["T1"].posts
    assert [(post["channel"], post.get("thread_ts"), post["text"]) for post in posts] == [
        ("C1", "17.1", text),
        ("D1", None, text),
    ]
    set_limits(connected.tenant.id, {Quota.MESSAGES: UNLIMITED})
    post(mention("T1", "And now?", ts="17.3", thread_ts="17.1"))
    assert [content for _, _, content, _ in messages(connected)] == ["And now?"]


def test_a_refusal_that_slack_does_not_take_is_logged(
    connected: Program, slack: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    where = (str(connected.tenant.id), "T1", "C1", "17.1")
    slack.trouble("chat.postMessage", Trouble(error="is_archived"))
    for _ in range(2):
        inbound.tell_refused(*where, "Not now.")
    assert "is_archived" in caplog.text
    assert slack.workspaces["T1"].posts == []
