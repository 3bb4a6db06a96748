"""The doctor: a healthy deployment, the command, and problems of settings and stores."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from konstruct.doctor import stores, work
from konstruct.doctor.answers import Status
from konstruct.doctor.machine import check_disk, check_hosts, check_settings
from konstruct.heartbeats import BEAT
from memory.embedding.model_files import model_files
from tenants.context import tenant_scope
from tenants.models import Job, Tenant, WorkspaceClaim
from tests.konstruct.doctor.conftest import (
    PATIENT,
    Examine,
    cache_at,
    silent_server,
    texts_of_check,
)
from tests.konstruct.running import PROJECT, forget_heartbeats
from tests.servers.valkey import free_port, own_valkey

NO_BACKUP = ["No backup is recorded."]


def test_healthy_deployment_has_no_findings(
    tenant_a: Tenant, examine: Examine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [answer["text"] for answer in examine()] == NO_BACKUP
    call_command("doctor", f"--timeout={PATIENT}")
    lines = capsys.readouterr().out.splitlines()
    assert "ok       Postgres default: migrations: The public schema has all migrations." in lines
    assert any(line.startswith("ok       embedding model: all-MiniLM-L6-v2@") for line in lines)
    assert "384 dimensions." in str(lines)
    (warned,) = (line for line in lines if not line.startswith("ok "))
    assert warned.startswith(
        "warning  Postgres default: backups: No backup is recorded. -> Run manage.py backup"
    )


def test_the_status_that_fails_can_be_chosen() -> None:
    with pytest.raises(CommandError, match="1 warning, in ") as error:
        call_command("doctor", "--fail-on", "warning", f"--timeout={PATIENT}")
    assert error.value.returncode == 1


@pytest.mark.parametrize("seconds", ["0", "-1", "301", "nan"])
def test_time_limit_must_be_a_number_of_seconds(seconds: str) -> None:
    with pytest.raises(CommandError, match="--timeout: give seconds") as error:
        call_command("doctor", f"--timeout={seconds}")
    assert error.value.returncode == 2


def test_each_answer_that_is_not_ok_has_a_remedy_in_one_line(
    settings: Any, examine: Examine
) -> None:
    settings.CACHES = cache_at(f"redis://127.0.0.1:{free_port()}/0")
    settings.APPLICATION_DATABASE_URL = f"postgresql://konstruct_app@127.0.0.1:{free_port()}/x"
    settings.PUBLIC_HOSTS = ["operators.example.com"]
    answers = examine()
    assert len(answers) >= 3
    for answer in answers:
        assert answer["remedy"], answer
        assert "\n" not in answer["text"] + answer["remedy"]


@pytest.mark.slow
def test_stopped_or_hanging_valkey_is_reported(
    settings: Any, examine: Examine, tmp_path: Path
) -> None:
    with own_valkey(tmp_path, "--appendonly", "yes") as (process, url):
        settings.CELERY_BROKER_URL = url
        assert texts_of_check(examine(status="ok"), "policies")[-1].endswith(
            "noeviction, appendonly."
        )
        process.send_signal(signal.SIGSTOP)
        (hangs,) = examine("--timeout=3", status="wrong")
        assert (hangs["subject"], hangs["check"]) == ("broker", "connection")
        assert hangs["text"] == "No answer in time. Not checked: policies."
        process.send_signal(signal.SIGCONT)
    (stopped,) = examine(status="wrong")
    assert (stopped["subject"], stopped["check"]) == ("broker", "connection")
    assert "Connection refused" in stopped["text"]
    assert stopped["remedy"].startswith("Start the server, or correct CELERY_BROKER_URL")


@pytest.mark.slow
def test_valkey_with_other_policies_is_reported(
    settings: Any, examine: Examine, tmp_path: Path
) -> None:
    options = ["--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru", "--save", ""]
    with own_valkey(tmp_path, *options) as (_, url):
        settings.CELERY_BROKER_URL = url
        found = texts_of_check(examine(), "policies")
    assert found[0].startswith("maxmemory-policy is allkeys-lru: ")
    assert found[1].startswith("appendonly is off: ")


def test_process_without_a_heartbeat_is_reported(examine: Examine) -> None:
    forget_heartbeats()
    found = texts_of_check(examine(status="wrong"), "processes")
    assert len(found) == 7
    assert found[0] == "No worker of replies has been at work for 30 seconds."
    assert found[-2:] == [
        f"No {name} has been at work for 30 seconds." for name in (BEAT, "owner worker")
    ]


@pytest.mark.parametrize(
    ("server_time", "status"),
    [(100.0, "ok"), (98.5, "ok"), (97.0, "warning"), (105.0, "warning"), (200.0, "wrong")],
)
def test_clocks_are_compared(server_time: float, status: str) -> None:
    """The clock is replaced, because that of this machine cannot be set."""
    assert stores.compare_clocks(99.9, server_time, 100.1).status == status


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")
def test_full_disk_is_reported(settings: Any, tmp_path: Path) -> None:
    settings.METRICS_DIR = tmp_path / "small"
    settings.METRICS_DIR.mkdir()
    subprocess.run(
        ["/usr/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", settings.METRICS_DIR],
        check=True,
    )
    try:
        statuses = []
        for kilobytes in (100, 950, 1024):
            (settings.METRICS_DIR / "file").write_bytes(b"x" * 1024 * kilobytes)
            (found,) = (answer for answer in check_disk() if "METRICS_DIR" in answer.text)
            statuses.append(found.status)
        assert statuses == [Status.OK, Status.WARNING, Status.WRONG]
        assert found.text.startswith(f"{settings.METRICS_DIR} (METRICS_DIR): 0 bytes of 1.0 MB are")
    finally:
        subprocess.run(["/usr/bin/umount", settings.METRICS_DIR], check=True)


def test_unwritable_directory_is_reported(settings: Any) -> None:
    settings.HEARTBEAT_FILE = Path("/proc/none/heartbeat")
    (found,) = (answer for answer in check_disk() if "HEARTBEAT_FILE" in answer.text)
    assert found.status == Status.WARNING


def test_refused_hosts_are_reported(settings: Any, tenant_a: Tenant, examine: Examine) -> None:
    settings.ALLOWED_HOSTS = [".example.com", "testserver"]
    settings.PUBLIC_HOSTS = ["operators.example.com", "127.0.0.1"]
    settings.TENANT_DOMAIN_SUFFIX = "example.org"
    assert [(answer.status, answer.text) for answer in check_hosts()] == [
        ("warning", "ALLOWED_HOSTS refuses 127.0.0.1 of PUBLIC_HOSTS."),
        ("wrong", "ALLOWED_HOSTS refuses the domains of new tenants, SLUG.example.org."),
    ]
    assert texts_of_check(examine(), "tenants") == [
        "ALLOWED_HOSTS refuses 2 domains of tenants: tenant-a.localhost, tenant-b.localhost."
    ]


def test_risky_settings_are_reported(settings: Any) -> None:
    settings.DATABASE_URL, settings.DEBUG = "postgresql://x", True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert [answer.text.split()[0] for answer in check_settings()] == ["DEBUG", "TRUSTED_PROXIES"]


def test_missing_embedding_model_is_reported(
    settings: Any, examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.embedding.embedder._embedder", None)
    settings.EMBEDDING_MODEL = "/no/such/model"
    (found,) = examine(status="wrong")
    assert found["check"] == "embedding model"
    assert "/no/such/model" in found["text"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("model.safetensors", None, "holds no weights"),
        ("model.safetensors", b"\0" * 4096, "cannot be loaded: "),
        ("tokenizer.json", b"{", "cannot be loaded: "),
        ("sentence_bert_config.json", None, "cannot be loaded: "),
    ],
)
def test_missing_or_damaged_files_of_the_embedding_model_are_reported(
    settings: Any,
    examine: Examine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    content: bytes | None,
    reason: str,
) -> None:
    """The remedy, to copy the files again, is sufficient."""
    sound = model_files("").path
    folder = shutil.copytree(sound, tmp_path / "model")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    monkeypatch.setattr("memory.embedding.embedder._embedder", None)
    settings.EMBEDDING_MODEL = str(folder)
    (found,) = (
        answer for answer in examine(status="wrong") if answer["check"] == "embedding model"
    )
    assert str(folder) in found["text"]
    assert reason in found["text"]
    assert found["remedy"].endswith("or copy its files again.")
    shutil.copyfile(sound / name, folder / name)
    assert texts_of_check(examine(status="wrong"), "embedding model") == []


@pytest.fixture
def mute() -> Iterator[int]:
    with silent_server() as port:
        yield port


def test_servers_that_refuse_connections_are_reported(
    settings: Any, examine: Examine, mute: int
) -> None:
    settings.LLM_POOL_URL = f"http://127.0.0.1:{mute}/v1"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    assert texts_of_check(examine(status="ok"), "language model") == [
        f"The language model at 127.0.0.1:{mute} takes connections."
    ]
    (found,) = texts_of_check(examine(status="wrong"), "mail")
    assert found.startswith(f"The mail server at 127.0.0.1:{settings.EMAIL_PORT} takes no connect")


def test_no_password_is_shown(settings: Any, examine: Examine, mute: int) -> None:
    secret = "s3cret-of-the-test"
    settings.CACHES = cache_at(f"redis://:{secret}@127.0.0.1:{free_port()}/0")
    settings.CELERY_BROKER_URL = f"redis://:{secret}@127.0.0.1:{mute}/0"
    settings.APPLICATION_DATABASE_URL = f"postgresql://u:{secret}@127.0.0.1:{free_port()}/x"
    host = settings.OWNER_DATABASE_URL.partition("@")[2].partition("?")[0]
    settings.OWNER_DATABASE_URL = f"postgresql://konstruct_owner:{secret}@{host}"
    settings.LLM_POOL_URL = f"http://u:{secret}@127.0.0.1:{free_port()}/v1"
    answers = examine("--timeout=8")
    assert {answer["subject"] for answer in answers if answer["check"] == "connection"} == {
        "cache", "broker", "Postgres default", "Postgres default as owner",
    }  # fmt: skip
    assert secret not in str(answers)


@pytest.fixture
def overdue(tenant_a: Tenant) -> None:
    now = timezone.now()
    for kind, minutes in (("reply", 2), ("delivery", 20), ("erasure", 90), ("retention", 5000)):
        with tenant_scope(tenant_a.id):
            at = now - timedelta(minutes=minutes)
            Job.objects.create(kind=kind, key=tenant_a.id, due_at=at, sweep_at=at)
            Job.objects.create(kind=kind, key=Tenant().id, due_at=at, failed_at=at)


def test_jobs_that_wait_too_long_are_reported(
    tenant_a: Tenant, examine: Examine, overdue: None
) -> None:
    found = {
        answer["text"].split()[4].rstrip(":"): answer["status"]
        for answer in examine()
        if answer["text"].startswith("Jobs of the kind")
    }
    assert found == {"reply": "wrong", "delivery": "warning", "erasure": "wrong"}
    assert "4 jobs of 1 tenants are given up." in texts_of_check(examine(), "queues")


def test_job_is_late_by_the_threshold_of_the_alert() -> None:
    rules = (PROJECT / "deploy" / "prometheus" / "alerts.yml").read_text()
    limits = [int(number) for number in re.findall(r"oldest_seconds\{kind.*\) > (\d+)", rules)]
    assert limits == [work.LATE_REPLY_SECONDS, work.LATE_JOB_SECONDS, work.LATE_ERASURE_SECONDS]


def test_workspaces_without_a_signing_secret_are_reported(
    settings: Any, tenant_a: Tenant, examine: Examine
) -> None:
    with tenant_scope(tenant_a.id):
        WorkspaceClaim.objects.create(channel="slack", workspace="T1", tenant_id=tenant_a.id)
    settings.SLACK_SIGNING_SECRET = ""
    assert texts_of_check(examine(status="wrong"), "slack") == [
        "1 workspaces are connected, and every request of Slack's is refused."
    ]
    settings.SLACK_SIGNING_SECRET = "of-slack"
    assert texts_of_check(examine(status="ok"), "slack") == ["1 workspaces are connected."]
