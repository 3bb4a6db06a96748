"""Servers are stopped while requests arrive: accepted messages are answered, if later."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import httpx
import pytest

from tests.end_to_end.deployment import eventually
from tests.servers.slack import slack_server
from tests.survival.interfaces import INTERFACES, Caller, try_interface
from tests.survival.llm import EchoServer
from tests.survival.outages import Production, Store, small_disk

pytestmark = pytest.mark.data

# The others wait for a reply.
INTERFACES_WITHOUT_REPLY = [name for name in INTERFACES if name not in ("OpenAI", "stream")]
# The operators' admin is on the main server, for callers of any tenant.
TENANT_INTERFACES = [name for name in INTERFACES if name != "operators"]


@dataclass
class World:
    """The deployment, and its callers: oak, on the main Postgres, and elm, on the other one."""

    production: Production
    oak: Caller
    elm: Caller
    has_small_disk: bool

    def readiness(self) -> tuple[int, dict[str, str]]:
        answer = httpx.get(f"{self.production.url}/health/ready", timeout=30)
        return answer.status_code, answer.json()["checks"] | {"status": answer.json()["status"]}

    def is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return self.readiness()[1]["status"] == "ok"
        return False

    def lost(self, caller: Caller) -> list[str]:
        """Return accepted messages of a caller that are missing or have no reply."""
        messages = self.production.rows(
            caller.tenant,
            "SELECT asked.content, reply.content FROM memory_message AS asked"
            " JOIN memory_message AS reply ON reply.in_reply_to_id = asked.id",
        )
        answered = {question for question, reply in messages if reply}
        facts = {row[0] for row in self.production.rows(caller.tenant, FACTS)}
        lost = [text for text in caller.accepted if f"I say {text}." not in answered]
        return lost + [text for text in caller.remembered if text not in facts]

    def assert_nothing_is_lost(self) -> None:
        for caller in (self.oak, self.elm):
            eventually(lambda caller=caller: not self.lost(caller), "something was lost")

    def assert_no_process_ended(self) -> None:
        production = self.production
        for process in (production.web, production.worker, production.beat, production.owner):
            assert process.statuses == []


FACTS = "SELECT content FROM memory_memoryentry"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("outages") / "home"
    with ExitStack() as stack:
        llm = stack.enter_context(EchoServer())
        slack = stack.enter_context(slack_server())
        has_small_disk = stack.enter_context(small_disk(home / "disk"))
        production = stack.enter_context(Production(home, llm, slack).running())
        callers = []
        for tenant, workspace in zip(production.tenants, ("T1", "T2"), strict=True):
            production.manage(
                "connect_slack", "--tenant", tenant.slug, "--agent", "ada",
                "--workspace", workspace, SLACK_BOT_TOKEN=slack.workspaces[workspace].token,
            )  # fmt: skip
            caller = Caller(tenant, workspace)
            caller.log_in()
            callers.append(caller)
        made = World(production, *callers, has_small_disk)
        eventually(made.is_ready, "not ready")
        yield made
        for caller in callers:
            caller.close()


def assert_accepted(caller: Caller, names: list[str]) -> None:
    for name in names:
        outcome = try_interface(name, caller)
        assert outcome.answer.is_success, (name, outcome.answer.text)


def assert_refused(caller: Caller, names: list[str]) -> None:
    for name in names:
        answer, lines = (outcome := try_interface(name, caller)).answer, outcome.lines
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5"), (name, outcome)
        assert sum(" 503 " in line for line in lines) == 1, lines
        assert all("konstruct.access" in line for line in lines), lines
        is_json = name not in ("admin", "operators", "Slack")
        assert ("json" in answer.headers["Content-Type"]) == is_json, name
        assert answer.json() if is_json else answer.text.startswith("This service")


@contextmanager
def light_load(world: World) -> Iterator[None]:
    """Send a request twice a second through each interface in turn, whatever the answer."""
    stopping = threading.Event()

    def send(caller: Caller) -> None:
        for name in itertools.cycle(INTERFACES_WITHOUT_REPLY):
            if stopping.wait(1.0):
                return
            if name != "operators":  # the user would be locked out
                INTERFACES[name](caller)

    # Separate clients with their own connections.
    callers = [Caller(side.tenant, side.workspace) for side in (world.oak, world.elm)]
    threads = [threading.Thread(target=send, args=(caller,)) for caller in callers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
        for caller, world_tenant in zip(callers, (world.oak, world.elm), strict=True):
            world_tenant.accepted += caller.accepted
            world_tenant.remembered += caller.remembered
            caller.close()


@contextmanager
def away(store: Store) -> Iterator[None]:
    """Stop the store during the block."""
    store.kill()
    try:
        yield
    finally:
        store.start()


def valkey_is_away(world: World, seconds: float) -> None:
    """Also with unfinished tasks, which a worker cannot acknowledge any more."""
    production = world.production
    requests = production.echo.asked
    with production.echo.stalled():
        assert_accepted(world.oak, ["REST send"] * 4)
        eventually(lambda: production.echo.asked > requests, "no worker has a task in hand")
        production.valkey.kill()
    try:
        time.sleep(seconds)
        for caller in (world.oak, world.elm):
            assert_accepted(caller, INTERFACES_WITHOUT_REPLY)
        status, checks = world.readiness()
        assert (status, checks["cache"], checks["broker"]) == (503, *["unreachable"] * 2)
    finally:
        production.valkey.start()


def postgres_is_away(world: World, seconds: float) -> None:
    with away(world.production.main):
        time.sleep(seconds)
        assert_refused(world.oak, list(INTERFACES))
        assert_refused(world.elm, TENANT_INTERFACES)
        status, checks = world.readiness()
        assert (status, checks["database"], checks["cache"]) == (503, "unreachable", "ok")


def postgres_of_a_tenant_is_away(world: World, seconds: float) -> None:
    with away(world.production.eu1):
        time.sleep(seconds)
        assert_refused(world.elm, TENANT_INTERFACES)
        assert_accepted(world.oak, INTERFACES_WITHOUT_REPLY)
        status, checks = world.readiness()
        assert (status, checks["status"]) == (200, "degraded")
        assert checks["tenant_databases"] == "unreachable"


def model_is_away(world: World, seconds: float) -> None:
    with world.production.echo.gone():
        time.sleep(seconds)
        for caller in (world.oak, world.elm):
            assert_accepted(
                caller, [name for name in INTERFACES_WITHOUT_REPLY if name != "operators"]
            )


def disk_is_full(world: World, seconds: float) -> None:
    if not world.has_small_disk:
        pytest.skip("only root may mount a small file system")
    refusal = "Taking no tasks until the database is back: NotWritable"
    with world.production.full_disk():
        time.sleep(seconds)
        eventually(lambda: refusal in world.production.log_of("worker"), "the worker goes on")
        status, checks = world.readiness()
        assert (status, checks["database"]) == (503, "not writable")
        for name in INTERFACES_WITHOUT_REPLY:  # the worker writes none
            if name == "operators":
                continue
            outcome = try_interface(name, world.oak)
            if not outcome.answer.is_success:  # else there was space in an existing page
                assert outcome.answer.status_code == 503
                assert sum(" 503 " in line for line in outcome.lines) == 1


def disk_of_the_write_ahead_log_is_full(world: World, seconds: float) -> None:
    """With accepted messages that wait for the model."""
    production = world.production
    if not world.has_small_disk:
        pytest.skip("only root may mount a small file system")
    with production.echo.stalled():
        for caller in (world.oak, world.elm):
            assert_accepted(caller, ["REST send"] * 4)
        with production.full_wal_disk():
            time.sleep(seconds)
            assert_refused(world.oak, list(INTERFACES))
            assert_refused(world.elm, TENANT_INTERFACES)
            status, checks = world.readiness()
            assert (status, checks["database"], checks["cache"]) == (503, "unreachable", "ok")


OUTAGES: list[Callable[[World, float], None]] = [
    valkey_is_away, postgres_is_away, postgres_of_a_tenant_is_away, model_is_away, disk_is_full,
    disk_of_the_write_ahead_log_is_full,
]  # fmt: skip


def assert_recovers(world: World) -> None:
    eventually(world.is_ready, "not ready again")
    world.assert_nothing_is_lost()
    world.assert_no_process_ended()
    for caller in (world.oak, world.elm):
        assert_accepted(caller, ["REST send", "REST list", "stream", "OpenAI", "mem0", "MCP"])


def test_broker_and_database_go_down_and_return(world: World) -> None:
    for outage in (valkey_is_away, postgres_is_away):
        outage(world, 1)
        assert_recovers(world)


def test_a_worker_that_cannot_log_in_leaves_the_tasks_to_others(world: World) -> None:
    production = world.production
    url = production.environment["DATABASE_URL"]
    user, _, rest = url.partition("@")
    wrong = f"{user}:5f1d0c77b2ea49d3@{rest.partition('?')[0]}"
    worker = production.another_worker(
        "locked-out", DATABASE_URL=wrong, HEARTBEAT_FILE=str(production.home / "locked-out")
    )
    try:
        eventually(
            lambda: "Taking no tasks until the database is back" in production.log_of("locked-out"),
            "it says nothing",
        )
        eventually(lambda: "ready." in production.log_of("locked-out"), "it does not start")
        for caller in (world.oak, world.elm):
            assert_accepted(caller, ["REST send"] * 5)
        world.assert_nothing_is_lost()
        log = production.log_of("locked-out")
        assert (log.count("Taking no tasks"), log.count(" waits: ")) == (1, 0)
        # It is alive: a restart would not help.
        assert (production.home / "locked-out").exists()
    finally:
        worker.stop()


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: outage.__name__)
def test_every_server_is_away_for_half_a_minute_under_light_load(
    world: World, outage: Callable[[World, float], None]
) -> None:
    with light_load(world):
        outage(world, 20)
        time.sleep(5)
    assert_recovers(world)
