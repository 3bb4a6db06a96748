"""Connecting workspaces in the admin by Slack's OAuth; and failed deliveries."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core import signing
from django.test import Client
from django_redis import get_redis_connection

from konstruct.channels.inbox import ARRIVALS as ARRIVALS_QUEUE
from konstruct.channels.models import Arrival, Delivery, SlackInstallation
from konstruct.channels.slack.installations import token_of
from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.channels.conftest import answer_all, install, messages, show_all
from tests.konstruct.conftest import Browser, Post, Program
from tests.servers.slack import SlackServer, Trouble, mention
from tests.stored import tenant_of_workspace

CONNECT = "/admin/slack/connect/"
INSTALLATIONS = "/admin/channels/slackinstallation/"
ARRIVALS = "/admin/channels/arrival/"
DELIVERIES = "/admin/channels/delivery/"


def begin(admin: Client, program: Program) -> dict[str, str]:
    """Choose the agent. Return the parameters for Slack."""
    page = admin.post(CONNECT, {"agent": str(program.agent.pk)})
    (address,) = re.findall(r'href="(https://slack.com/oauth/v2/authorize\?[^"]+)"', page.text)
    query = parse_qs(urlsplit(address.replace("&amp;", "&")).query)
    return {name: value for name, (value,) in query.items()}


def come_back(**query: str) -> Any:
    """Return from Slack to the neutral host. Return the address of its redirect."""
    return Client(headers={"Host": "localhost"}).get("/channels/slack/oauth/", query)


def finish(admin: Client, answer: Any) -> Any:
    """Follow the redirect to the tenant's host."""
    where = urlsplit(answer.headers["Location"])
    assert (answer.status_code, where.netloc) == (302, "tenant-a.localhost")
    return admin.get(f"{where.path}?{where.query}", follow=True)


def test_a_workspace_is_connected_by_way_of_slack(
    program_a: Program, admin: Client, slack: SlackServer
) -> None:
    assert admin.get(f"{INSTALLATIONS}add/").headers["Location"] == CONNECT
    parameters = begin(admin, program_a)
    assert (parameters["client_id"], parameters["redirect_uri"]) == (
        "1234.5678",
        "http://localhost/channels/slack/oauth/",
    )
    assert "chat:write" in parameters["scope"].split(",")
    slack.codes["c1"] = "T1"
    page = finish(admin, come_back(code="c1", state=parameters["state"]))
    assert "Team T1 is connected" in page.text
    with tenant_scope(program_a.tenant.id):
        installation = SlackInstallation.objects.get()
        assert token_of(installation) == slack.workspaces["T1"].token
        assert AccessEvent.objects.filter(
            subject="Slack workspace", subject_id=str(installation.pk)
        ).exists()
    assert (installation.agent_id, installation.bot_user_id) == (program_a.agent.pk, "UBOT")
    assert installation.scopes == ["app_mentions:read", "chat:write"]
    assert tenant_of_workspace("slack", "T1") == program_a.tenant.id
    assert slack.calls[-1].arguments["redirect_uri"] == parameters["redirect_uri"]
    # Once only.
    slack.codes["c2"] = "T2"
    again = finish(admin, come_back(code="c2", state=parameters["state"]))
    assert "it was done already" in again.text
    assert tenant_of_workspace("slack", "T2") is None


def test_a_state_is_good_for_its_person_and_for_ten_minutes(
    program_a: Program,
    admin: Client,
    browser: Browser,
    slack: SlackServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parameters = begin(admin, program_a)
    slack.codes["c1"] = "T1"
    answer = come_back(code="c1", state=parameters["state"])
    somebody = browser(program_a.tenant)
    assert "Another person has begun this" in finish(somebody, answer).text
    for forged in (
        "",
        "x",
        parameters["state"] + "x",
        signing.dumps({"tenant": 1}),
        parameters["state"][1:],
    ):
        assert come_back(code="c1", state=forged).status_code == 400
        direct = admin.get("/admin/slack/finish/", {"code": "c1", "state": forged}, follow=True)
        assert "This address is invalid" in direct.text
    monkeypatch.setattr("konstruct.channels.slack.installations.STATE_SECONDS", -1)
    late = come_back(code="c1", state=parameters["state"])
    assert (late.status_code, "more than ten minutes" in late.text) == (400, True)
    assert tenant_of_workspace("slack", "T1") is None


def test_a_state_of_one_tenant_is_no_good_in_another(
    program_a: Program, program_b: Program, admin: Client, browser: Browser, slack: SlackServer
) -> None:
    parameters = begin(admin, program_a)
    query = {"code": "c1", "state": parameters["state"]}
    page = browser(program_b.tenant).get("/admin/slack/finish/", query, follow=True)
    assert "Another person has begun this" in page.text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"error": "access_denied"}, "the request was declined in Slack"),
        ({}, "the request was declined in Slack"),
        ({"code": "unknown"}, "Slack refused oauth.v2.access: invalid_code."),
    ],
)
def test_failed_connection_shows_the_reason(
    program_a: Program, admin: Client, slack: SlackServer, query: dict[str, str], words: str
) -> None:
    parameters = begin(admin, program_a)
    assert words in finish(admin, come_back(**query, state=parameters["state"])).text


def test_workspace_of_another_tenant_cannot_be_connected(
    program_a: Program, program_b: Program, admin: Client, slack: SlackServer
) -> None:
    install(program_b, slack, "T1")
    parameters = begin(admin, program_a)
    slack.codes["c1"] = "T1"
    page = finish(admin, come_back(code="c1", state=parameters["state"]))
    assert "The slack workspace T1 is connected elsewhere" in page.text
    assert tenant_of_workspace("slack", "T1") == program_b.tenant.id


def test_page_without_a_slack_app_shows_a_notice(
    program_a: Program, admin: Client, settings: Any
) -> None:
    settings.SLACK_CLIENT_ID = ""
    assert "Slack is not configured" in admin.get(CONNECT).text
    assert "ask its operator" in admin.post(CONNECT, {"agent": str(program_a.agent.pk)}).text


def test_disconnecting_revokes_the_token_and_lets_others_connect(
    connected: Program, program_b: Program, admin: Client, slack: SlackServer
) -> None:
    with tenant_scope(connected.tenant.id):
        row = SlackInstallation.objects.get()
    form = {"action": "disconnect", "_selected_action": [str(row.pk)]}
    assert "1 disconnected" in admin.post(INSTALLATIONS, form, follow=True).text
    assert slack.workspaces["T1"].revoked
    slack.workspaces["T1"].revoked = False
    install(program_b, slack, "T1")
    assert tenant_of_workspace("slack", "T1") == program_b.tenant.id
    assert "0 disconnected" not in admin.post(INSTALLATIONS, form, follow=True).text


def test_disconnecting_works_with_any_answer_of_slack(
    connected: Program, admin: Client, slack: SlackServer
) -> None:
    with tenant_scope(connected.tenant.id):
        row = SlackInstallation.objects.get()
    slack.trouble("auth.revoke", Trouble(503))
    form = {"action": "disconnect", "_selected_action": [str(row.pk)]}
    assert "its token was not revoked at Slack" in admin.post(INSTALLATIONS, form, follow=True).text
    assert tenant_of_workspace("slack", "T1") is None


def test_a_token_is_on_no_page_and_in_no_repr(
    connected: Program, admin: Client, slack: SlackServer
) -> None:
    token = slack.workspaces["T1"].token
    with tenant_scope(connected.tenant.id):
        row = SlackInstallation.objects.get()
        assert token not in repr(row.__dict__) + repr(row)
    for address in (INSTALLATIONS, f"{INSTALLATIONS}{row.pk}/change/"):
        page = admin.get(address).text
        assert token not in page
        assert row.encrypted_token not in page
    cached = [get_redis_connection("default").dump(key) for key in
              get_redis_connection("default").scan_iter()]  # fmt: skip
    assert token.encode() not in b"".join(filter(None, cached))


def test_undelivered_reply_is_shown_and_retried(
    connected: Program, admin: Client, slack: SlackServer, post: Post
) -> None:
    slack.workspaces["T1"].archived.add("C1")
    post(mention("T1", "Hello"))
    answer_all(connected)
    page = admin.get(DELIVERIES, {"state": "failed"})
    assert "is_archived" in page.text
    slack.workspaces["T1"].archived.clear()
    with tenant_scope(connected.tenant.id):
        (key,) = Delivery.objects.values_list("pk", flat=True)
    conversation = f"/admin/conversations/{key}/"
    assert "It could not be shown in slack." in admin.get(conversation).text
    form = {"action": "retry", "_selected_action": [str(key)]}
    assert "1 retried" in admin.post(DELIVERIES, form, follow=True).text
    assert "not shown in slack yet" in admin.get(conversation).text
    show_all(connected)
    assert slack.posts("T1") == ["Noted."]
    assert ">shown in slack<" in admin.get(conversation).text
    assert "1 had not failed" in admin.post(DELIVERIES, form, follow=True).text
    counts = {
        state: admin.get(DELIVERIES, {"state": state}).context["cl"].result_count
        for state in ("failed", "queued", "delivered")
    }
    assert counts == {"failed": 0, "queued": 0, "delivered": 1}


def test_failed_inbox_entry_is_shown_and_retried(
    connected: Program, admin: Client, post: Post
) -> None:
    post(mention("T1", "Hello", ts="17.1"))
    with tenant_scope(connected.tenant.id):
        ARRIVALS_QUEUE.jobs().update(failed_at="2000-01-01T00:00:00Z", last_error="It is broken.")
        (key,) = Arrival.objects.values_list("pk", flat=True)
    assert "It is broken." in admin.get(ARRIVALS).text
    assert messages(connected) == []
    form = {"action": "retry", "_selected_action": [str(key)]}
    assert "1 retried" in admin.post(ARRIVALS, form, follow=True).text
    assert len(messages(connected)) == 1
