"""Deliveries: the posts in Slack follow the message, each once, after any fault."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from konstruct.channels import delivery as deliveries
from konstruct.channels.delivery import APOLOGY, DELIVERIES, PLACEHOLDER, View
from konstruct.channels.models import Delivery
from konstruct.channels.slack.installations import disconnect
from konstruct.orchestrator import pipeline, replies
from konstruct.orchestrator.messages import KonstructMessage, konstruct_message
from konstruct.orchestrator.models import PendingReply
from memory.models import Message
from tenants.context import connection
from tests.jobs import expire_leases
from tests.konstruct.channels.conftest import answer_all, make_due, show_all
from tests.konstruct.channels.delivery.conftest import Post
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer, streamed
from tests.servers.slack import SlackServer, Trouble, message_event


def test_a_placeholder_is_posted_and_becomes_the_reply(
    program_with_message: Program, slack: SlackServer
) -> None:
    show_all(program_with_message)
    assert slack.posts("T1") == [PLACEHOLDER.text]
    answer_all(program_with_message)
    (posted,) = slack.workspaces["T1"].posts
    assert posted["shown"] == [PLACEHOLDER.text, "Noted."]
    assert (posted["channel"], posted["thread_ts"]) == ("C1", "17.1")
    assert (posted["unfurl_links"], posted["unfurl_media"]) == (False, False)
    delivery = Delivery.objects.get()
    assert delivery.intent is None
    assert not DELIVERIES.jobs().exists()
    assert delivery.delivered_at is not None
    show_all(program_with_message)
    assert slack.methods() == ["chat.postMessage", "chat.update"]


def test_direct_message_is_answered_at_once_outside_of_a_thread(
    connected: Program, slack: SlackServer, post: Post
) -> None:
    post(message_event("T1", "Hello", channel="D1", channel_type="im"))
    answer_all(connected)
    (posted,) = slack.workspaces["T1"].posts
    assert (posted["channel"], posted.get("thread_ts")) == ("D1", None)
    assert posted["shown"] == ["Noted."]


def test_a_long_reply_is_split_and_each_part_is_posted_once(
    program_with_message: Program, slack: SlackServer, llm_server: LLMServer
) -> None:
    llm_server.default = Answer({"content": "\n".join(f"{n} " + "x" * 990 for n in range(10))})
    show_all(program_with_message)
    slack.trouble("chat.postMessage", Trouble(503))
    answer_all(program_with_message)
    assert [text[:1] for text in slack.posts("T1")] == ["0"]
    make_due(program_with_message)
    show_all(program_with_message)
    assert [text[:1] for text in slack.posts("T1")] == ["0", "3", "6", "9"]
    assert {post.get("thread_ts") for post in slack.workspaces["T1"].posts} == {"17.1"}
    assert slack.methods().count("chat.update") == 1


def test_failed_reply_shows_an_apology_until_retried(
    program_with_message: Program, slack: SlackServer, llm_server: LLMServer
) -> None:
    llm_server.answers = [Answer({}, status=401)]
    answer_all(program_with_message)
    assert slack.posts("T1") == [APOLOGY.text]
    from konstruct.orchestrator.pipeline.accept import retry_reply

    retry_reply(PendingReply.objects.get().pk, tenant_id=program_with_message.tenant.id)
    show_all(program_with_message)
    answer_all(program_with_message)
    assert slack.workspaces["T1"].posts[0]["shown"] == [APOLOGY.text, PLACEHOLDER.text, "Noted."]


def test_post_before_a_kill_is_found_and_not_repeated(
    program_with_message: Program, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(deliveries, "record_post", die)
        with pytest.raises(Killed):
            show_all(program_with_message)
    assert slack.posts("T1") == [PLACEHOLDER.text]
    answer_all(program_with_message)
    (posted,) = slack.workspaces["T1"].posts
    assert posted["shown"] == [PLACEHOLDER.text, "Noted."]
    assert slack.methods() == ["chat.postMessage", "conversations.replies", "chat.update"]


@pytest.mark.parametrize("channel", ["C1", "D1"])
def test_lost_response_does_not_cause_a_second_post(
    connected: Program, slack: SlackServer, post: Post, channel: str
) -> None:
    direct = {"channel_type": "im"} if channel == "D1" else {}
    post(message_event("T1", "<@UBOT> Hello", channel=channel, **direct))
    slack.trouble("chat.postMessage", Trouble(502, done=True))
    answer_all(connected)
    # So many messages of others arrive meanwhile that there are several pages.
    slack.workspaces["T1"].posts[:0] = [
        {**slack.workspaces["T1"].posts[0], "metadata": None, "ts": f"9999999999.{number:06}"}
        for number in range(450)
    ]
    make_due(connected)
    show_all(connected)
    assert len(slack.posts("T1")) == 451
    assert slack.methods().count("chat.postMessage") == 1
    read = "conversations.history" if channel == "D1" else "conversations.replies"
    assert slack.methods().count(read) == 3


@pytest.fixture
def streaming_program(
    program_with_message: Program, llm_server: LLMServer, settings: Any
) -> Iterator[Program]:
    """A streaming language model, and a worker that shows each piece as soon as it is queued."""
    settings.LLM_POOL_URL = f"{llm_server.url}/v1"
    llm_server.default = streamed("At ", "*last*, ", "done.")
    show_all(program_with_message)
    mark = deliveries.HOOK.on_partial_reply

    def mark_and_show(message: KonstructMessage) -> None:
        mark(message)
        show_all(program_with_message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replies, "PROGRESS_SECONDS", 0)
        patch.setattr(replies, "MIN_PAUSE_SECONDS", 0)
        patch.setattr(replies, "PAUSE_SECONDS_PER_STREAM", 0)
        patch.setattr(deliveries.HOOK, "on_partial_reply", mark_and_show, raising=False)
        yield program_with_message


def test_the_placeholder_fills_while_the_reply_is_written(
    streaming_program: Program, slack: SlackServer
) -> None:
    answer_all(streaming_program)
    (posted,) = slack.workspaces["T1"].posts
    assert posted["shown"] == [
        PLACEHOLDER.text,
        "At …",
        "At _last_, …",
        "At _last_, done. …",
        "At _last_, done.",
    ]


def test_placeholder_updates_keep_to_the_rate_of_slack_and_end_with_the_reply(
    streaming_program: Program, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "PARTIAL_RATE", (1, 0.001))
    answer_all(streaming_program)
    (posted,) = slack.workspaces["T1"].posts
    assert posted["shown"] == [PLACEHOLDER.text, "At …", "At _last_, done."]


def test_delivery_rate_limited_while_streaming_waits_and_then_posts_the_reply(
    streaming_program: Program, slack: SlackServer
) -> None:
    slack.trouble("chat.update", Trouble(429, "ratelimited", {"Retry-After": "30"}))
    before = timezone.now()
    answer_all(streaming_program)
    (posted,) = slack.workspaces["T1"].posts
    assert posted["shown"] == [PLACEHOLDER.text]
    assert DELIVERIES.jobs().get().due_at > before + timedelta(seconds=29)
    make_due(streaming_program)
    show_all(streaming_program)
    assert posted["shown"] == [PLACEHOLDER.text, "At _last_, done."]


def test_change_during_a_delivery_is_delivered(
    program_with_message: Program, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (message_id,) = PendingReply.objects.values_list("pk", flat=True)
    usual = deliveries.show_part

    def answered_meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(deliveries, "show_part", usual)
        usual(*arguments)
        pipeline.handle(tenant_id=program_with_message.tenant.id, message_id=message_id)

    monkeypatch.setattr(deliveries, "show_part", answered_meanwhile)
    show_all(program_with_message)
    assert slack.workspaces["T1"].posts[0]["shown"] == [PLACEHOLDER.text, "Noted."]


def test_failed_update_of_an_old_reply_does_not_fail_the_current_one(
    program_with_message: Program, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (message_id,) = PendingReply.objects.values_list("pk", flat=True)
    slack.trouble("chat.postMessage", Trouble(error="restricted_action"))
    usual = deliveries.view_of

    def answered_meanwhile(*arguments: Any, **options: Any) -> View | None:
        monkeypatch.setattr(deliveries, "view_of", usual)
        stale = usual(*arguments, **options)
        pipeline.handle(tenant_id=program_with_message.tenant.id, message_id=message_id)
        return stale

    monkeypatch.setattr(deliveries, "view_of", answered_meanwhile)
    lease = DELIVERIES.lease(message_id)
    assert lease is not None
    deliveries.deliver(lease)
    assert slack.posts("T1") == []
    assert DELIVERIES.jobs().due().exists()
    show_all(program_with_message)
    assert slack.posts("T1") == ["Noted."]


def test_worker_with_a_lost_lease_posts_and_records_nothing(
    program_with_message: Program, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped while it read the text to show. Another worker has shown it since."""
    view_of = deliveries.view_of

    def late(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(deliveries, "view_of", view_of)
        expire_leases()
        show_all(program_with_message)
        return view_of(*args, **options)

    monkeypatch.setattr(deliveries, "view_of", late)
    lease = DELIVERIES.lease(Delivery.objects.get().pk)
    assert lease is not None
    deliveries.deliver(lease)
    assert slack.posts("T1") == [PLACEHOLDER.text]
    assert not DELIVERIES.jobs().exists()


def test_a_change_of_a_message_locks_the_job_before_the_delivery(
    program_with_message: Program,
) -> None:
    """As a worker does, which delivers the message and holds the lease of the job."""
    message = konstruct_message(Message.objects.get(role="user"))
    with CaptureQueriesContext(connection) as queries:
        deliveries.HOOK.on_change(message)
    written = [
        table
        for query in queries
        for table in ("tenants_job", "channels_delivery")
        if re.match(
            rf'\s*(UPDATE|INSERT INTO|WITH .* (UPDATE|INTO)) "?{table}"?', query["sql"], re.S
        )
    ]
    assert written[0] == "tenants_job"


def test_delivery_fails_after_max_attempts_until_retried(
    program_with_message: Program, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(DELIVERIES), "max_attempts", 2)
    slack.trouble("chat.postMessage", Trouble(error="internal_error"), Trouble(500))
    for _ in range(3):
        show_all(program_with_message)
        make_due(program_with_message)
    job = DELIVERIES.jobs().failed().get()
    assert (job.attempts, job.last_error) == (
        2, "Slack answered chat.postMessage with 500 internal_error.",
    )  # fmt: skip
    assert DELIVERIES.retry(job.key)
    answer_all(program_with_message)
    assert slack.posts("T1") == ["Noted."]
    assert not DELIVERIES.retry(job.key)


def test_refusal_of_slack_is_undelivered_with_the_reason(
    program_with_message: Program, slack: SlackServer
) -> None:
    slack.workspaces["T1"].archived.add("C1")
    show_all(program_with_message)
    assert DELIVERIES.jobs().failed().get().last_error == (
        "Slack refused chat.postMessage: is_archived. The conversation is archived."
    )
    slack.workspaces["T1"].archived.clear()
    answer_all(program_with_message)  # the reply is a change, and causes a retry
    assert slack.posts("T1") == ["Noted."]


def test_a_workspace_that_was_disconnected_is_not_written_to(
    program_with_message: Program, slack: SlackServer
) -> None:
    from konstruct.channels.models import SlackInstallation

    assert disconnect(SlackInstallation.objects.get(), by="eva") == ""
    assert slack.workspaces["T1"].revoked
    answer_all(program_with_message)
    assert DELIVERIES.jobs().failed().get().last_error == (
        "The Slack workspace T1 is not connected any more."
    )


def test_token_and_sealed_text_are_in_no_error(
    program_with_message: Program, slack: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    token = slack.workspaces["T1"].token
    slack.workspaces["T1"].revoked = True
    answer_all(program_with_message)
    assert "connect the workspace again" in DELIVERIES.jobs().get().last_error
    assert token not in caplog.text + DELIVERIES.jobs().get().last_error
