"""LangGraph's saver inside a tenant: its whole conformance suite, and what its tests leave out."""

import asyncio
import os
import warnings
from collections.abc import AsyncGenerator
from importlib import import_module
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.test_utils import (
    generate_config,
    generate_metadata,
    put_test_checkpoint,
)
from langgraph.checkpoint.postgres import PostgresSaver

from memory.context.checkpoints.checkpointer import TenantPostgresSaver
from memory.context.checkpoints.connections import (
    APPLICATION_NAME,
    MAX_CONNECTIONS,
    close_pools,
    connection_in,
)
from memory.context.exceptions import SessionTablesOutdated, ThreadExists
from memory.exceptions import InvalidArgument
from tenants.models import Tenant
from tests.database import url_of

# The saver has connections of its own, which do not see what a test has not committed.
pytestmark = pytest.mark.django_db(transaction=True)


def put(saver: PostgresSaver, thread: str, parent: Any = None, **metadata: Any) -> Any:
    """A checkpoint with one large value and one small, after `parent`."""
    checkpoint = empty_checkpoint()
    version = saver.get_next_version(None, None)
    checkpoint["channel_values"] = {"large": [thread], "small": 1}
    checkpoint["channel_versions"] = {"large": version, "small": version}
    config = generate_config(thread)
    if parent is not None:
        config["configurable"]["checkpoint_id"] = parent["configurable"]["checkpoint_id"]
    return saver.put(
        config, checkpoint, generate_metadata(**metadata), checkpoint["channel_versions"]
    )


def conformance_tests(capability: str) -> list[Any]:
    """All that LangGraph's suite has for a capability."""
    spec = import_module(f"langgraph.checkpoint.conformance.spec.test_{capability}")
    tests: list[Any] = getattr(spec, f"ALL_{capability.upper()}_TESTS")
    assert len(tests) >= 5
    return tests


def count(tenant: Tenant, table: str, thread: str) -> int:
    with connection_in(tenant.id) as lent:
        row = lent.execute(
            f"SELECT count(*) AS n FROM {table} WHERE thread_id = %s", (thread,)
        ).fetchone()
    assert row is not None
    return row["n"]


def ids(saver: PostgresSaver, thread: str) -> list[str]:
    return [found.checkpoint["id"] for found in saver.list(generate_config(thread))]


def test_the_saver_passes_langgraphs_conformance_suite_with_no_capability_left_out(
    tenant_a: Tenant,
) -> None:
    @checkpointer_test(name="Konstruct")
    async def konstruct() -> AsyncGenerator[TenantPostgresSaver, None]:
        yield TenantPostgresSaver(tenant_a.id)

    report = asyncio.run(validate(konstruct))

    assert {name: result.failures for name, result in report.results.items()} == {
        capability.value: [] for capability in Capability
    }
    assert {name: result.tests_passed for name, result in report.results.items()} == {
        capability.value: len(conformance_tests(capability.value)) for capability in Capability
    }
    assert all(result.detected and result.passed for result in report.results.values())
    assert sum(result.tests_skipped for result in report.results.values()) == 0
    assert report.conformance_level() == "FULL"


def test_the_same_thread_in_two_tenants_never_meets(tenant_a: Tenant, tenant_b: Tenant) -> None:
    ours, theirs = TenantPostgresSaver(tenant_a.id), TenantPostgresSaver(tenant_b.id)
    stored = put(ours, "thread", run_id="run")

    assert theirs.get_tuple(stored) is None
    assert list(theirs.list(None)) == []
    theirs.delete_thread("thread")
    theirs.delete_for_runs(["run"])
    theirs.prune(["thread"], strategy="delete")
    theirs.copy_thread("thread", "copy")
    assert ids(theirs, "copy") == []

    assert ids(ours, "thread") == [stored["configurable"]["checkpoint_id"]]
    put(theirs, "thread")
    assert len(ids(ours, "thread")) == len(ids(theirs, "thread")) == 1
    assert ids(ours, "thread") != ids(theirs, "thread")


@pytest.mark.parametrize("table", ["checkpoints", "checkpoint_blobs", "checkpoint_writes"])
def test_the_policy_holds_where_another_tenants_table_is_named(
    tenant_a: Tenant, tenant_b: Tenant, table: str
) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    saver.put_writes(put(saver, "thread"), [("channel", "value")], "task")

    with connection_in(tenant_b.id) as lent:
        rows = lent.execute(f"SELECT * FROM {tenant_a.schema_name}.{table}").fetchall()
        deleted = lent.execute(f"DELETE FROM {tenant_a.schema_name}.{table}").rowcount
    assert rows == []
    assert deleted == 0
    assert count(tenant_a, table, "thread") == 1

    with (
        connection_in(tenant_b.id) as lent,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"),
    ):
        lent.execute(
            "INSERT INTO checkpoints (tenant_id, thread_id, checkpoint_id, checkpoint)"
            " VALUES (%s, 't', 'c', '{}')",
            (tenant_a.id,),
        )


def test_a_connection_of_the_application_role_serves_one_tenant_after_another(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    close_pools()
    with connection_in(tenant_a.id) as lent:
        seen = lent.execute(
            "SELECT current_user AS who, current_schema() AS schema,"
            " current_setting('app.current_tenant') AS tenant"
        ).fetchone()
        ours = lent.info.backend_pid
    with connection_in(tenant_b.id) as lent:
        assert lent.info.backend_pid == ours
        again = lent.execute("SELECT current_schema() AS schema").fetchone()

    assert seen == {
        "who": "konstruct_app",
        "schema": tenant_a.schema_name,
        "tenant": str(tenant_a.id),
    }
    assert again == {"schema": tenant_b.schema_name}


def test_a_rollback_does_not_bring_back_the_connections_last_tenant(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    with connection_in(tenant_a.id) as lent:
        lent.execute("SELECT 1")
    with connection_in(tenant_b.id) as lent:
        lent.execute("BEGIN")
        with pytest.raises(psycopg.errors.DivisionByZero):
            lent.execute("SELECT 1/0")
        lent.execute("ROLLBACK")
        seen = lent.execute("SELECT current_schema() AS schema").fetchone()

    # Nobody's: the tenant ended with the transaction.
    assert seen == {"schema": "public"}


def test_many_threads_of_a_run_wait_for_a_connection_instead_of_opening_more(
    tenant_a: Tenant,
) -> None:
    saver = TenantPostgresSaver(tenant_a.id)

    async def save_all() -> None:
        await asyncio.gather(
            *(put_test_checkpoint(saver, thread_id=f"thread-{n}") for n in range(40))
        )

    asyncio.run(save_all())

    assert len(list(saver.list(None))) == 40
    with psycopg.connect(url_of("superuser")) as superuser:
        row = superuser.execute(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = %s"
            " AND datname = current_database()",
            (APPLICATION_NAME,),
        ).fetchone()
    assert row is not None
    assert 1 <= row[0] <= MAX_CONNECTIONS


def test_listing_gives_its_connection_back_before_the_first_result(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    for number in range(3):
        put(saver, f"thread-{number}")

    # As many listings left half-read as there are connections would leave none.
    listings = [saver.list(None) for _ in range(MAX_CONNECTIONS + 1)]

    assert len({next(listing).checkpoint["id"] for listing in listings}) == 1


def test_connections_that_postgres_has_ended_are_replaced(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    put(saver, "thread")

    with psycopg.connect(url_of("superuser")) as superuser:
        ended = superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = %s AND datname = current_database()",
            [APPLICATION_NAME],
        )
        assert ended.fetchall() != []

    assert len(ids(saver, "thread")) == 1


def test_a_closed_pool_opens_again(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    put(saver, "thread")

    close_pools()

    assert len(ids(saver, "thread")) == 1


def test_a_forked_process_has_connections_of_its_own(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    put(saver, "thread")
    result, child_end = os.pipe()
    with warnings.catch_warnings():
        # Forking beside the pool's threads is what is tested here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.write(child_end, str(len(ids(saver, "thread"))).encode())
        os._exit(0)

    os.waitpid(child, 0)

    assert os.read(result, 10) == b"1"
    os.close(result)
    os.close(child_end)
    assert len(ids(saver, "thread")) == 1


# --- The tables -----------------------------------------------------------------------------------


def test_our_migration_makes_what_the_installed_langgraph_wants(tenant_a: Tenant) -> None:
    with connection_in(tenant_a.id) as lent:
        rows = lent.execute("SELECT v FROM checkpoint_migrations ORDER BY v").fetchall()

    assert [row["v"] for row in rows] == list(range(len(PostgresSaver.MIGRATIONS)))


def test_setup_is_allowed_to_the_application_and_changes_nothing(tenant_a: Tenant) -> None:
    TenantPostgresSaver(tenant_a.id).setup()
    TenantPostgresSaver(tenant_a.id).setup()


def test_setup_says_what_to_do_where_the_tables_are_missing() -> None:
    with pytest.raises(
        SessionTablesOutdated, match=r"version -1 and needs 9: run `manage.py migrate`"
    ):
        TenantPostgresSaver(uuid4()).setup()


class NewerSaver(TenantPostgresSaver):
    """A release of LangGraph that wants more than our migrations know."""

    MIGRATIONS = [*PostgresSaver.MIGRATIONS, "ALTER TABLE checkpoints ADD COLUMN newer text"]


def test_the_owner_brings_older_tables_up_to_date(make_tenant: Any, as_owner: Any) -> None:
    tenant = make_tenant()
    with pytest.raises(SessionTablesOutdated, match="version 9 and needs 10"):
        NewerSaver(tenant.id).setup()

    with as_owner():
        NewerSaver(tenant.id).setup()
    close_pools()

    NewerSaver(tenant.id).setup()
    with connection_in(tenant.id) as lent:
        assert lent.execute("SELECT newer FROM checkpoints").fetchall() == []


class IndexingSaver(TenantPostgresSaver):
    """A release of LangGraph that builds another index, as its releases do."""

    MIGRATIONS = [
        *PostgresSaver.MIGRATIONS,
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoints_newer_idx ON checkpoints (type)",
    ]


def test_an_index_of_langgraph_whose_build_was_cut_off_is_built_anew(
    make_tenant: Any, as_owner: Any
) -> None:
    tenant = make_tenant()
    table = f"{tenant.schema_name}.checkpoints"
    with psycopg.connect(url_of("owner"), autocommit=True) as owner:
        with psycopg.connect(url_of("owner")) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute(f"SELECT FROM {table}")
            owner.execute("SET statement_timeout = '500ms'")
            with pytest.raises(psycopg.errors.QueryCanceled):
                owner.execute(f"CREATE INDEX CONCURRENTLY checkpoints_newer_idx ON {table} (type)")
        owner.execute("SET statement_timeout = 0")
        with as_owner():
            IndexingSaver(tenant.id).setup()
        close_pools()
        name = f"{tenant.schema_name}.checkpoints_newer_idx"
        rows = owner.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass", [name]
        ).fetchall()
    assert rows == [(True,)]


# --- Copying --------------------------------------------------------------------------------------


def test_a_copied_thread_goes_its_own_way(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    first = put(saver, "source")
    saver.put_writes(put(saver, "source", first), [("channel", {"a": 1})], "task")

    saver.copy_thread("source", "target")

    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    assert [count(tenant_a, table, "target") for table in tables] == [2, 2, 1]
    saver.delete_thread("source")
    copied = saver.get_tuple(generate_config("target"))
    assert copied is not None
    assert copied.checkpoint["channel_values"] == {"large": ["source"], "small": 1}
    assert copied.pending_writes == [("task", "channel", {"a": 1})]
    assert [count(tenant_a, table, "source") for table in tables] == [0, 0, 0]


def test_a_thread_with_a_history_is_not_copied_onto(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    put(saver, "source")
    put(saver, "target")
    before = ids(saver, "target")

    with pytest.raises(ThreadExists, match="'target' has a history already"):
        saver.copy_thread("source", "target")
    with pytest.raises(ThreadExists):
        saver.copy_thread("source", "source")

    assert ids(saver, "target") == before


# --- Deleting and pruning -------------------------------------------------------------------------


def test_deleting_a_run_keeps_values_that_others_still_use(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    first = put(saver, "thread", run_id="one")
    stored = saver.get_tuple(first)
    assert stored is not None
    # The second checkpoint takes over the first one's large value, as LangGraph does.
    heir = {**empty_checkpoint(), "channel_values": {}}
    heir["channel_versions"] = stored.checkpoint["channel_versions"]
    second = saver.put(first, heir, generate_metadata(run_id="two"), {})

    saver.delete_for_runs(["one"])

    kept = saver.get_tuple(second)
    assert kept is not None
    assert kept.checkpoint["channel_values"] == {"large": ["thread"]}
    assert kept.parent_config is None
    saver.delete_for_runs(["two"])
    assert count(tenant_a, "checkpoint_blobs", "thread") == 0


def test_prune_keeps_the_newest_n_and_all_they_need(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    stored = [None]
    for number in range(6):
        stored.append(put(saver, "thread", stored[-1], step=number))
        saver.put_writes(stored[-1], [("channel", number)], "task")
    other = put(saver, "other")

    saver.prune(["thread"], keep=3)

    tuples = list(saver.list(generate_config("thread")))
    assert [found.metadata["step"] for found in tuples] == [5, 4, 3]
    assert [found.checkpoint["channel_values"]["large"] for found in tuples] == [["thread"]] * 3
    assert [found.pending_writes for found in tuples] == [
        [("task", "channel", number)] for number in (5, 4, 3)
    ]
    assert tuples[-1].parent_config is None
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    assert [count(tenant_a, table, "thread") for table in tables] == [3, 3, 3]
    assert ids(saver, "other") == [other["configurable"]["checkpoint_id"]]


def test_pruning_more_than_there_is_removes_nothing(tenant_a: Tenant) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    put(saver, "thread")
    before = ids(saver, "thread")

    saver.prune(["thread", "unknown"], keep=5)

    assert ids(saver, "thread") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"thread_ids": "thread"}, "thread_ids='thread' is one id; pass a list of them"),
        ({"thread_ids": ["thread"], "strategy": "old"}, "strategy='old' is neither"),
        ({"thread_ids": ["thread"], "keep": 0}, "keep=0 is not at least 1"),
    ],
)
def test_prune_refuses_what_it_cannot_mean(
    tenant_a: Tenant, arguments: dict[str, Any], message: str
) -> None:
    saver = TenantPostgresSaver(tenant_a.id)
    put(saver, "thread")

    with pytest.raises(InvalidArgument, match=message):
        saver.prune(**arguments)

    assert len(ids(saver, "thread")) == 1


def test_delete_for_runs_refuses_a_lone_text(tenant_a: Tenant) -> None:
    with pytest.raises(InvalidArgument, match="run_ids='run' is one id"):
        TenantPostgresSaver(tenant_a.id).delete_for_runs("run")


def test_runs_are_found_by_index_under_the_policy(tenant_a: Tenant) -> None:
    with connection_in(tenant_a.id) as lent:
        lent.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint, metadata)"
            " SELECT 't' || n, 'c', '{}', jsonb_build_object('run_id', 'run' || n)"
            " FROM generate_series(1, 5000) AS n"
        )
        plan = lent.execute(
            "EXPLAIN SELECT 1 FROM checkpoints WHERE run_id = ANY(%s)", (["run7"],)
        ).fetchall()

    assert "checkpoints_run_id_idx" in str(plan)
