"""Workspaces and their tokens: encrypted with rotated keys, for one tenant; the commands."""

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.db import IntegrityError, ProgrammingError

from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack.inbound import learn_name
from konstruct.channels.slack.installations import InstallationInvalid, connect, token_of
from konstruct.channels.slack.web_api import call_slack
from konstruct.orchestrator.models import ChannelIdentity
from konstruct.settings.environment import fernet_keys
from tenants import transaction
from tenants.context import public_scope, tenant_scope
from tenants.models import Tenant
from tenants.secret_keys import SecretUnreadable, decrypt, encrypt
from tenants.servers import MAIN
from tests import database
from tests.konstruct.channels.conftest import install, messages, take_in_all
from tests.konstruct.conftest import Post, Program
from tests.servers.slack import SlackServer, Trouble, mention

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def test_a_token_is_encrypted_for_one_place(tenant_a: Tenant, tenant_b: Tenant) -> None:
    encrypted = encrypt("xoxb-1", tenant_id=tenant_a.id, place="T1")
    assert "xoxb" not in encrypted
    assert decrypt(encrypted, tenant_id=tenant_a.id, place="T1") == "xoxb-1"
    with pytest.raises(SecretUnreadable, match="encrypted for another place"):
        decrypt(encrypted, tenant_id=tenant_b.id, place="T1")
    with pytest.raises(SecretUnreadable, match="encrypted for another place"):
        decrypt(encrypted, tenant_id=tenant_a.id, place="T2")


def test_keys_are_rotated_without_loss_of_data(
    connected: Program, slack: SlackServer, settings: Any, run: Callable[..., str]
) -> None:
    settings.CHANNEL_TOKEN_KEYS = [OLD]
    install(connected, slack, "T1")
    settings.CHANNEL_TOKEN_KEYS = [NEW, OLD]
    assert run("reseal_channel_tokens") == "1 encrypted with the first key\n"
    settings.CHANNEL_TOKEN_KEYS = [NEW]
    with tenant_scope(connected.tenant.id):
        assert token_of(SlackInstallation.objects.get()) == slack.workspaces["T1"].token
    settings.CHANNEL_TOKEN_KEYS = [OLD]
    with pytest.raises(CommandError, match=r"Keep the other keys. tenant-a: .*space T1 cannot be"):
        run("reseal_channel_tokens")


def test_missing_keys_are_named(tenant_a: Tenant, settings: Any) -> None:
    settings.CHANNEL_TOKEN_KEYS = []
    with pytest.raises(ImproperlyConfigured, match="is not set"):
        encrypt("x", tenant_id=tenant_a.id, place="T1")


def test_invalid_key_stops_the_process_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHANNEL_TOKEN_KEYS", f"{NEW}, {OLD}")
    assert fernet_keys("CHANNEL_TOKEN_KEYS") == [NEW, OLD]
    monkeypatch.setenv("CHANNEL_TOKEN_KEYS", f"{NEW},secret")
    with pytest.raises(SystemExit, match="in place 2 is not a Fernet key") as caught:
        fernet_keys("CHANNEL_TOKEN_KEYS")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [{"workspace": "T:1"}, {"workspace": ""}, {"bot_user_id": ""}, {"token": " "}, {"token": "ü"}],
)
def test_invalid_oauth_response_is_refused(program_a: Program, fields: dict[str, str]) -> None:
    options = {"workspace": "T1", "bot_user_id": "UBOT", "token": "xoxb-1", **fields}
    with pytest.raises(InstallationInvalid):
        connect(tenant_id=program_a.tenant.id, agent_id=program_a.agent.pk, by="eva", **options)


def test_disconnected_installation_has_no_token_in_postgres(connected: Program) -> None:
    with tenant_scope(connected.tenant.id):
        rows = SlackInstallation.objects.all()
        with pytest.raises(IntegrityError, match="slack_token_while"), transaction.atomic():
            rows.update(state="disconnected")
        with pytest.raises(IntegrityError, match="slack_token_while"), transaction.atomic():
            rows.update(encrypted_token="")


def test_connect_slack_reads_the_workspace_of_the_token(
    program_a: Program, slack: SlackServer, run: Callable[..., str], monkeypatch: Any
) -> None:
    command = ("connect_slack", "--tenant", "tenant-a", "--agent", "ada", "--workspace")
    monkeypatch.setenv("SLACK_BOT_TOKEN", slack.workspaces["T1"].token)
    assert run(*command, "T1") == "connected Slack workspace Team T1 with ada of tenant-a\n"
    with pytest.raises(CommandError, match="The token is of the workspace T1, not of T2"):
        run(*command, "T2")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-unknown")
    with pytest.raises(CommandError, match="invalid_auth"):
        run(*command, "T1")
    monkeypatch.delenv("SLACK_BOT_TOKEN")
    monkeypatch.setattr(sys, "stdin", io.StringIO("xoxb-by-hand\n"))
    assert "connected" in run(*command, "T3", "--bot-user", "U3")
    with tenant_scope(program_a.tenant.id):
        assert token_of(SlackInstallation.objects.get(workspace="T3")) == "xoxb-by-hand"
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    for arguments, words in (
        ((*command, "T1"), "no token"),
        (("connect_slack", "--tenant", "tenant-a", "--agent", "ada"), "--workspace"),
        (("connect_slack", "--tenant", "x", "--agent", "ada", "--workspace", "T1"), "no tenant"),
    ):
        with pytest.raises(CommandError, match=words):
            run(*arguments)


def test_speakers_are_called_by_their_names_once_slack_was_asked(
    connected: Program,
    slack: SlackServer,
    post: Post,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    names: list[Any] = []
    monkeypatch.setattr(
        "konstruct.channels.slack.inbound.enqueue_task", lambda task, *call: names.append(call)
    )
    slack.workspaces["T1"].users["U1"] = "Maria"
    with django_capture_on_commit_callbacks(execute=True):
        post(mention("T1", "First"))
        take_in_all(connected)
    ((tenant_id, *call),) = names
    with tenant_scope(connected.tenant.id):
        learn_name.run(tenant_id, *call)
    with django_capture_on_commit_callbacks(execute=True):
        post(mention("T1", "Again, says <@U1>"))
        texts = messages(connected)
    assert len(names) == 1
    assert [(content, name) for _, _, content, name in texts] == [
        ("First", ""),
        ("Again, says @Maria", "Maria"),
    ]
    with tenant_scope(connected.tenant.id):
        ChannelIdentity.objects.update(looked_up_at="2000-01-01T00:00:00Z")
        slack.trouble("users.info", Trouble(503))
        learn_name.run(tenant_id, *call)
        assert ChannelIdentity.objects.get().name == "Maria"
        del slack.workspaces["T1"].users["U1"]
        learn_name.run(tenant_id, *call)
        assert ChannelIdentity.objects.get().name == ""
        learn_name.run(tenant_id, "T9", *call[1:])


def test_name_of_a_user_erased_during_its_request_is_not_stored(
    connected: Program, slack: SlackServer
) -> None:
    slack.workspaces["T1"].users["U1"] = "Maria"
    with tenant_scope(connected.tenant.id):
        learn_name.run(str(connected.tenant.id), "T1", "T1", "U1")
        assert not ChannelIdentity.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_slack_is_waited_for_without_a_database_connection(slack: SlackServer) -> None:
    slack.add("T9")
    held: list[int] = []
    answer = slack.answer

    def answer_and_look(*request: Any) -> Any:
        stats = pools[MAIN].get_stats()
        held.append(stats["pool_size"] - stats["pool_available"])
        return answer(*request)

    with database.pools(1) as pools, pytest.MonkeyPatch.context() as patch:
        patch.setattr(slack, "answer", answer_and_look)
        with public_scope():
            Tenant.objects.count()
            assert call_slack("auth_test", token=slack.workspaces["T9"].token)["ok"]
            assert held == [0]
            with transaction.atomic(), pytest.raises(ProgrammingError, match="is open"):
                call_slack("auth_test", token=slack.workspaces["T9"].token)
    assert held == [0]
