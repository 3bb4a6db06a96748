"""Metrics: bounded for any callers and tenants, without content, and as documented."""

import ast
import importlib
import os
import re
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from prometheus_client.exposition import generate_latest

from konstruct import metrics
from konstruct.orchestrator.pipeline.accept import ACCEPTED
from konstruct.orchestrator.tasks import handle_message
from konstruct.orchestrator.usage import measure
from konstruct.settings.environment import address
from konstruct.web.application import REQUESTS, interface_of
from memory.indexing import drain
from memory.recall.service import recall
from tenants.context import public_scope, tenant_scope
from tenants.limits.quotas import Limit, Quota, set_limits
from tenants.metrics import METRICS, AllocatedFile, registry, remove_dead_processes
from tenants.models import Job, Tenant
from tests.konstruct.conftest import Program
from tests.konstruct.running import PROJECT
from tests.servers.llm import LLMServer
from tests.servers.valkey import free_port

# Of all processes of one container, with any tenants.
MAX_SERIES = 2_000


def declare_all() -> None:
    """Import each module that declares a metric."""
    for package in ("konstruct", "memory", "tenants"):
        for path in (PROJECT / package).rglob("*.py"):
            if "tenants.metrics import" in path.read_text():
                importlib.import_module(".".join(path.relative_to(PROJECT).with_suffix("").parts))


def given() -> str:
    return generate_latest(registry(metrics.States())).decode()


def test_the_page_has_each_metric_as_it_is_declared() -> None:
    declare_all()
    rows = [
        f"| `{metric.name}` | {metric.kind} |"
        f" {', '.join(f'`{label}`' for label in metric.labels)} | {metric.text} |"
        for metric in sorted(METRICS.values(), key=lambda metric: metric.name)
    ]
    page = (PROJECT / "docs" / "metrics.md").read_text()
    found = re.findall(r"^\| `konstruct_.*$", page, re.M)
    assert found == rows


def test_every_metric_is_in_the_registry() -> None:
    for package in ("konstruct", "memory", "tenants"):
        for path in (PROJECT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "prometheus_client":
                    names = {alias.name for alias in node.names}
                    is_allowed = path == PROJECT / "tenants" / "metrics.py"
                    assert is_allowed or not names & {"Counter", "Gauge", "Histogram"}, path


@pytest.mark.slow
def test_a_thousand_tenants_have_few_series(tenant_a: Tenant) -> None:
    new = [
        Tenant(slug=f"many-{n}", name="Many", id=(pk := uuid4()), schema_name=f"t_{pk.hex}",
               server="default")
        for n in range(1000)
    ]  # fmt: skip
    Tenant.objects.bulk_create(new)
    now = timezone.now()
    for number, tenant in enumerate(new):
        with tenant_scope(tenant.id):
            Job.objects.create(kind="reply", key=uuid4(), due_at=now - timedelta(minutes=number))
    text = given()
    waiting = re.search(r'^konstruct_jobs_waiting{kind="reply",.*} (.*)$', text, re.M)
    assert waiting is not None
    assert float(waiting[1]) == 1000
    declare_all()
    assert text.count("\n") < MAX_SERIES


HOSTILE = ["a" * 100_000, '"} 1\nforged 1', "\x00", "maria@example.com", "‮admin", ""]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_input_of_callers_is_no_label(value: str) -> None:
    ACCEPTED.of(channel=value).inc()
    REQUESTS.of(interface=interface_of(f"/{value}/x"), method=value, status=value).inc()
    text = generate_latest(registry()).decode()
    assert ACCEPTED.bound_labels({"channel": value}) == {"channel": "other"}
    assert not value or value not in text
    assert "forged" not in text


def test_metrics_contain_no_message_text_and_no_ids(
    program_a: Program,
    settings: Any,
    llm_server: LLMServer,
    django_capture_on_commit_callbacks: Any,
) -> None:
    settings.LLM_POOL_URL = f"{llm_server.url}/v1"
    with django_capture_on_commit_callbacks(execute=True):
        sent = program_a.send(
            "canary-content", user_id="canary-user", thread_id="canary-thread", name="canary-name"
        )
        handle_message(str(program_a.tenant.id), sent.json()["id"])
        drain(program_a.tenant.id)
    recall(program_a.tenant.id, program_a.agent.id, "canary-user", "canary-question")
    text = given()
    assert 'konstruct_jobs_total{kind="reply",outcome="done"}' in text
    assert 'konstruct_messages_accepted_total{channel="rest"}' in text
    assert 'konstruct_model_calls_total{endpoint="other",outcome="done"}' in text
    assert 'konstruct_recalls_total{outcome="' in text
    assert "konstruct_embedded_messages_total" in text
    ids = (program_a.tenant.id, program_a.agent.id, sent.json()["id"])
    for word in ("canary", program_a.key, "ada", *map(str, ids)):
        assert word not in text


def test_tenants_at_a_limit_are_counted_by_their_highest(
    program_a: Program, program_b: Program
) -> None:
    limits = {
        Quota.MESSAGES: Limit(soft=Decimal(1), hard=Decimal(1)),
        Quota.API_KEYS: Limit(soft=Decimal(1)),
    }
    with public_scope():
        for program in (program_a, program_b):
            set_limits(program.tenant.id, limits)
            program.send("One")
            measure(Tenant.objects.get(pk=program.tenant.id))
        Tenant.objects.filter(pk=program_b.tenant.id).update(state=Tenant.State.SUSPENDED)
    found = dict(re.findall(r"konstruct_quotas_reached{(.*?)} (\d+)", given()))
    assert len(found) == 2 * len(Quota)
    assert {labels: number for labels, number in found.items() if number != "0"} == {
        'level="hard",quota="messages"': "1",
        'level="soft",quota="api_keys"': "1",
    }


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "tenant-a.localhost"])
@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "/api/metrics", "/admin/metrics"])
def test_no_host_of_the_web_serves_them(tenant_a: Tenant, host: str, path: str) -> None:
    answer = Client(headers={"host": host}).get(path)
    assert answer.status_code in (302, 404)  # of the admin: to the login
    assert b"konstruct_" not in answer.content


def test_processes_share_a_metrics_address_and_another_one_ends_no_process(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.METRICS_ADDRESS = ("127.0.0.1", free_port())
    for _ in range(2):
        metrics.serve()
    assert httpx.get("http://{}:{}/metrics".format(*settings.METRICS_ADDRESS)).is_success
    assert caplog.messages == []
    settings.METRICS_ADDRESS = ("203.0.113.1", 9464)  # not ours
    metrics.serve()
    assert caplog.messages[0].startswith("No metrics at METRICS_ADDRESS")


def test_a_path_belongs_to_an_interface_or_to_none() -> None:
    paths = ("/api/v1/messages/", "/v1/chat/completions", "/mcp", "/mem0/x", "/admin/", "/x", "/")
    assert [interface_of(path) for path in paths] == [
        "rest", "openai", "mcp", "mem0", "admin", "", "",
    ]  # fmt: skip


# Greater than every process id of the kernel.
DEAD = 2**22 + 1


def test_files_of_dead_processes_are_removed_and_their_counts_stay(
    settings: Any, tmp_path: Path
) -> None:
    settings.METRICS_DIR = tmp_path
    kept = {f"counter_{os.getppid()}.db", f"counter_{os.getpid()}.db", "counter_0.db", "lock"}
    for name in (*kept, f"histogram_{DEAD + 2}.db"):
        (tmp_path / name).touch()
    for pid, count in ((DEAD, 2.0), (DEAD + 1, 3.0)):
        file = AllocatedFile(str(tmp_path / f"counter_{pid}.db"))
        file.write_value("sent", count, 0.0)
        file.close()
    remove_dead_processes()
    assert set(os.listdir(tmp_path)) == kept
    values = AllocatedFile.read_all_values_from_file(str(tmp_path / "counter_0.db"))
    assert [value[:2] for value in values] == [("sent", 5.0)]


_ON_A_FULL_DISK = """
mount -t tmpfs -o size=64k tmpfs "$1" && dd if=/dev/zero of="$1/full" 2>/dev/null
exec "$2" -c 'import django; django.setup(); from konstruct.worker import metrics; print("counts")'
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk")
def test_process_with_metrics_on_a_full_disk_counts_in_its_memory(
    process_environment: dict[str, str], tmp_path: Path
) -> None:
    command = ["unshare", "--mount", "sh", "-c", _ON_A_FULL_DISK, "sh", tmp_path, sys.executable]
    environment = {**process_environment, "METRICS_DIR": str(tmp_path)}
    ran = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, b"counts\n"), ran.stderr


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", None), ("127.0.0.1:9464", ("127.0.0.1", 9464)), ("[::1]:9464", ("::1", 9464))],
)
def test_an_address_is_a_host_and_a_port(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: tuple[str, int] | None
) -> None:
    monkeypatch.setenv("METRICS_ADDRESS", value)
    assert address("METRICS_ADDRESS") == expected


@pytest.mark.parametrize("value", ["9464", ":9464", "localhost", "localhost:0", "a:65536", "a:b"])
def test_invalid_address_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("METRICS_ADDRESS", value)
    with pytest.raises(SystemExit, match=r"is not like 127\.0\.0\.1:9464"):
        address("METRICS_ADDRESS")
