"""Deliveries that Slack refuses or does not answer are retried, or given up with the reason."""

import pytest
from django.utils import timezone

from konstruct.channels.delivery.queue import DELIVERIES
from konstruct.channels.slack.installations import disconnect
from tests.konstruct.channels.conftest import answer_all, make_due, show_all
from tests.konstruct.conftest import Program
from tests.servers.slack import SlackServer, Trouble


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [Trouble(500), Trouble(503), Trouble(error="internal_error")])
def test_temporary_error_is_retried_with_growing_delays(
    program_with_message: Program, slack: SlackServer, trouble: Trouble
) -> None:
    slack.trouble("chat.postMessage", *[trouble] * 3)
    pauses = []
    for _ in range(3):
        show_all(program_with_message)
        job = DELIVERIES.jobs().get()
        pauses.append(round((job.due_at - timezone.now()).total_seconds() + 0.4))
        make_due(program_with_message)
    assert (job.attempts, pauses) == (3, [1, 2, 4])
    answer_all(program_with_message)
    assert slack.posts("T1") == ["Noted."]


def test_delivery_fails_after_max_attempts_until_retried(
    program_with_message: Program, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(DELIVERIES), "max_attempts", 2)
    slack.trouble("chat.postMessage", *[Trouble(500)] * 2)
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
