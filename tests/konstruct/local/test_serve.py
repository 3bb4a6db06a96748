"""`manage.py serve` as real processes: killed ones restart, and all end with it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import promql_parser
import psutil
import psycopg
import pytest
from django.core.management import load_command_class
from prometheus_client.parser import text_string_to_metric_families

from konstruct import heartbeats
from konstruct.local import services
from konstruct.processes import is_alive
from tenants.checks import CANNOT_BOOT
from tests.konstruct.running import PROJECT, eventually, kill, processes_in, run_python
from tests.konstruct.test_metrics_files import ALERTS
from tests.servers.valkey import free_port

WORKERS = [("worker", queue) for queue in heartbeats.WORKERS]

pytestmark = pytest.mark.data

OWNERS_PASSWORD = "only-the-owner-knows"
READY = "serves: /admin/ for operators"


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Server:
    """A running `manage.py serve` in its own home."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.url = f"http://127.0.0.1:{port}"
        self.metrics_address = f"127.0.0.1:{free_port()}"
        self.process = start_serve(home, port, METRICS_ADDRESS=self.metrics_address)
        self.printed: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed.append(line)
            if READY in line:
                break
        else:
            pytest.fail(f"it ended before it was ready: {''.join(self.printed)}")

    def tree(self) -> list[psutil.Process]:
        server = psutil.Process(self.process.pid)
        return [server, *server.children(recursive=True)]

    def find(self, *words: str) -> psutil.Process | None:
        """Return the topmost of the server's processes with all these words in its command line."""
        for one in filter(is_alive, self.tree()):
            with contextlib.suppress(psutil.NoSuchProcess):
                if set(words) <= set(one.cmdline()):
                    return one
        return None

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health/ready", timeout=5).is_success
        except httpx.TransportError:
            return False

    def metrics(self) -> Samples:
        """Return /metrics by name and labels; nothing while its process restarts."""
        try:
            text = httpx.get(f"http://{self.metrics_address}/metrics", timeout=30).text
        except httpx.TransportError:
            return {}
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def finish(self) -> str:
        """Return the output until its end."""
        rest, _ = self.process.communicate()
        return "".join(self.printed) + rest


def environment(home: Path) -> dict[str, str]:
    variables = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "KONSTRUCT_DB_ROLE")
    return {name: value for name, value in os.environ.items() if name not in variables} | {
        "KONSTRUCT_HOME": str(home),
        # As with a database of the operator's own; the embedded one has no URL.
        "DATABASE_OWNER_URL": f"postgresql://konstruct_owner:{OWNERS_PASSWORD}@nowhere/konstruct",
    }


def start_serve(home: Path, port: int, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(port)],
        cwd=PROJECT,
        env=environment(home) | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def refusal(home: Path, port: int | str, **variables: str) -> tuple[int, str]:
    """Return exit status and output of a serve that is expected to refuse."""
    ran = run_python("manage.py", "serve", "--port", str(port), env=environment(home) | variables)
    return ran.returncode, ran.stdout + ran.stderr


def nothing_left(tree: list[psutil.Process], home: Path) -> bool:
    return not any(map(is_alive, tree)) and processes_in(home) == []


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve") / "home"


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    running = Server(home, free_port())
    yield running
    if running.process.returncode is None:
        running.process.kill()
        running.finish()


def test_serve_migrates_and_prints_its_address(server: Server) -> None:
    assert server.printed[0].startswith("public")
    port = server.url.rpartition(":")[2]
    assert server.printed[-1].startswith(f"http://localhost:{port} serves: ")
    assert server.answers()


def test_application_processes_do_not_get_the_owner_password(server: Server) -> None:
    def is_told(*words: str) -> bool:
        process = server.find(*words)
        assert process is not None
        every = [process, *process.children(recursive=True)]
        return any(OWNERS_PASSWORD in str(process.environ()) for process in every)

    assert is_told("owner_worker")
    for words in (("gunicorn",), *WORKERS, ("celery", "beat")):
        assert not is_told(*words)


@pytest.mark.parametrize("words", [("gunicorn",), WORKERS[0]], ids=["web", "worker"])
def test_killed_process_is_restarted_and_its_children_end(
    server: Server, words: tuple[str, ...]
) -> None:
    killed = server.find(*words)
    assert killed is not None
    children = killed.children(recursive=True)
    kill(killed)
    eventually(lambda: not any(map(is_alive, children)))
    eventually(lambda: server.find(*words) not in (None, killed))
    eventually(server.answers)


def test_killed_worker_loses_no_count_and_its_queue_raises_the_alert(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KONSTRUCT_HOME", str(server.home))
    tenant, key = prepared_tenant(server.home)
    with httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=60
    ) as client:

        def send() -> str:
            sent = client.post(
                "/api/v1/messages/", json={"agent": "ada", "user_id": "maria", "content": "Hello"}
            )
            assert sent.status_code == 202, sent.text
            return f"/api/v1/messages/{sent.json()['id']}/?wait=5"

        def is_answered(message: str) -> bool:
            return client.get(message).json()["status"] == "answered"

        first = send()
        eventually(lambda: is_answered(first))
        eventually(lambda: replies_done(server.metrics()) == 1)
        worker = server.find(*WORKERS[0])
        assert worker is not None
        pids = [process.pid for process in (worker, *worker.children(recursive=True))]
        kill(worker)
        eventually(lambda: server.find(*WORKERS[0]) not in (None, worker))
        stuck = server.find(*WORKERS[0])
        assert stuck is not None
        for process in (stuck, *stuck.children(recursive=True)):
            process.suspend()
        second = send()
        with psycopg.connect(
            services.database_url("app"), options=f"-c app.current_tenant={tenant}"
        ) as connection:
            due = "UPDATE tenants_job SET due_at = now() - interval '61 s' WHERE kind = 'reply'"
            assert connection.execute(due).rowcount == 1
        eventually(lambda: is_firing("KonstructRepliesWait", server.metrics()))
        waited = server.metrics()[OLDEST_REPLY]
        eventually(lambda: server.metrics().get(OLDEST_REPLY, 0) > waited)
        assert replies_done(server.metrics()) == 1
        files = (server.home / "metrics").glob("gauge_live*")
        assert not {int(path.stem.rpartition("_")[2]) for path in files} & set(pids)
        kill(stuck)
        eventually(lambda: is_answered(second))
        eventually(lambda: replies_done(server.metrics()) == 2)
        eventually(lambda: not is_firing("KonstructRepliesWait", server.metrics()))
        sent_by_us = (
            "konstruct_requests_total",
            frozenset({("interface", "rest"), ("method", "POST"), ("status", "2xx")}),
        )
        assert server.metrics()[sent_by_us] == 2
        for words in (("gunicorn",), ("worker", "sweeps")):
            killed = server.find(*words)
            assert killed is not None
            kill(killed)
        # Counts are neither lost with the process that sums them, nor counted twice.
        eventually(lambda: replies_done(server.metrics()) == 2)
        assert server.metrics()[sent_by_us] == 2
        eventually(server.answers)


def prepared_tenant(home: Path) -> tuple[str, str]:
    """Create a tenant. Return its id, and a key for its agent."""
    made = run_python(
        "-m",
        "tests.end_to_end.prepare",
        "oak",
        env={**os.environ, "KONSTRUCT_HOME": str(home), "KONSTRUCT_DB_ROLE": "owner"},
        check=True,
    )
    (tenant,) = json.loads(made.stdout)
    return tenant["id"], tenant["key"]


OLDEST_REPLY = (
    "konstruct_jobs_oldest_seconds",
    frozenset({("server", "default"), ("kind", "reply")}),
)


def replies_done(samples: Samples) -> float:
    labels = frozenset({("kind", "reply"), ("outcome", "done")})
    return samples.get(("konstruct_jobs_total", labels), 0)


def is_firing(alert: str, samples: Samples) -> bool:
    """Return whether the alert's expression, max(NAME{LABEL="VALUE"}) > NUMBER, is true."""
    (rule,) = (rule for rule in ALERTS if rule["alert"] == alert)
    query = promql_parser.parse(rule["expr"])
    assert str(query.op) == ">"
    assert str(query.lhs.op) == "max"
    selector = query.lhs.expr
    expected = {(matcher.name, matcher.value) for matcher in selector.matchers.matchers}
    values = [
        value
        for (name, labels), value in samples.items()
        if name == selector.name and expected <= labels
    ]
    return max(values, default=0) > query.rhs.val


def test_killed_supervisor_ends_all_processes_and_all_are_restarted(server: Server) -> None:
    supervisord = server.find("supervisor.supervisord")
    assert supervisord is not None
    before = supervisord.children(recursive=True)
    assert len(before) >= 7
    kill(supervisord)
    eventually(lambda: not any(map(is_alive, before)))
    for words in (("gunicorn",), *WORKERS, ("celery", "beat")):
        eventually(lambda words=words: server.find(*words) not in (None, *before))
    eventually(server.answers)


def test_the_killed_supervisor_of_the_services_is_replaced_without_a_request(
    server: Server,
) -> None:
    pid_file = server.home / "supervisord.pid"
    before = pid_file.read_text()
    kill(psutil.Process(int(before)))
    eventually(lambda: pid_file.read_text() not in ("", before))
    eventually(server.answers)


def test_a_second_server_of_the_same_home_is_refused_in_one_line(server: Server) -> None:
    assert refusal(server.home, free_port()) == (
        1,
        f"CommandError: Konstruct already runs here (process {server.process.pid}): "
        "`make stop` ends it\n",
    )


def test_role_that_bypasses_policies_is_refused_before_serving(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KONSTRUCT_HOME", str(server.home))
    status, printed = refusal(
        tmp_path / "home",
        free_port(),
        DATABASE_URL=services.database_url("superuser"),
        DATABASE_OWNER_URL=services.database_url("owner"),
        REDIS_URL=services.redis_url(),
        CELERY_BROKER_URL=services.broker_url(),
        DEBUG="true",
    )
    assert status == CANNOT_BOOT
    assert printed.splitlines()[-1].startswith(
        "konstruct: refusing to serve: the database role postgres is a superuser"
    )
    assert not list((tmp_path / "home").glob("log/*"))


@pytest.mark.parametrize("port", ["0", "65536", "-1", "8000.5"])
def test_invalid_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        load_command_class("konstruct", "serve").run_from_argv(
            ["manage.py", "serve", "--port", port]
        )
    assert ended.value.code == 2
    assert f"argument --port: '{port}' is not a port" in capsys.readouterr().err


def test_sigkill_of_serve_leaves_no_process(server: Server) -> None:
    tree = server.tree()
    server.process.kill()
    server.finish()
    eventually(lambda: nothing_left(tree, server.home))


def test_serve_restarts_in_its_home_and_ctrl_c_leaves_no_process(server: Server) -> None:
    if server.process.returncode is None:  # if this test runs alone
        server.process.kill()
        server.finish()
    running = Server(server.home, free_port())
    tree = running.tree()
    running.process.send_signal(signal.SIGINT)
    assert running.finish().endswith("Stopped.\n")
    assert running.process.returncode == 0
    assert nothing_left(tree, running.home)
