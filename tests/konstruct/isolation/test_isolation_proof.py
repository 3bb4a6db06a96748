"""prove_isolation: no attack succeeds. A broken layer is named, and the others hold."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from konstruct.isolation import Attempt, Layer, Proof, prove
from konstruct.isolation.attacks import ATTACKS, NO_ANSWER
from konstruct.isolation.fixtures import NAME, TenantFixture, make_tenants
from konstruct.management.commands import prove_isolation
from tenants.context import connection, server_scope
from tenants.models import Tenant
from tenants.postgresql.base import DatabaseWrapper
from tests import database
from tests.konstruct.isolation import by_http, by_sql, by_stores
from tests.konstruct.isolation.more_rows import populate_more

# The command has the short list.
LONG_LIST = (*ATTACKS, by_sql.attack, by_stores.attack, by_http.attack)
Before = Callable[[Sequence[TenantFixture]], None]

pytestmark = pytest.mark.django_db(transaction=True)


def prove_with(before: Before | None = None, *, long: bool = True) -> Proof:
    def prepare(tenants: Sequence[TenantFixture]) -> None:
        if long:
            populate_more(tenants)
        if before is not None:
            before(tenants)

    with database.as_owner():
        proof = prove(attacks=LONG_LIST if long else ATTACKS, before=prepare)
        assert not Tenant.objects.filter(name=NAME).exists()
    return proof


def on_victims(sql: str) -> Before:
    """Run a statement on the tables of each tenant, as their owner."""

    def run(tenants: Sequence[TenantFixture]) -> None:
        for tenant in tenants:
            with server_scope(tenant.tenant.server), connection.cursor() as cursor:
                cursor.execute(sql.format(schema=tenant.tenant.schema_name))

    return run


@pytest.mark.slow
def test_all_attacks_of_the_command_fail(capsys: Any) -> None:
    with database.as_owner():
        make_tenants(1)  # as after a killed run
        call_command("prove_isolation", "--json")
        assert not Tenant.objects.filter(name=NAME).exists()
    report = json.loads(capsys.readouterr().out)
    assert (report["breaches"], report["not_tried"]) == (0, 0)
    assert set(report["layers"].values()) == {"intact"}
    assert {attempt["layer"] for attempt in report["each"]} == set(Layer)
    assert {attempt["via"] for attempt in report["each"]} == {
        *("catalogue", "models", "SQL", "context", "cache", "REST")
    }


@pytest.mark.slow
def test_all_attacks_of_the_long_list_fail() -> None:
    proof = prove_with()
    assert (proof.breaches, proof.not_tried) == ([], [])
    ways = Counter(attempt.via for attempt in proof.attempts)
    # A lower limit: some attacks run once for each table, model, function or page.
    assert ways >= Counter(
        models=50, SQL=500, driver=180, cache=14, broker=6, checkpointer=6, facts=8, recall=4,
        window=2, task=2, context=2, connection=2, REST=80, MCP=24, admin=50, catalogue=12,
    )  # fmt: skip
    # The attacks were real: the requests reached their pages.
    outcomes = {attempt.outcome for attempt in proof.attempts}
    assert {"HTTP 200", "HTTP 401", "HTTP 404", "HTTP 302"} <= outcomes
    written = [
        attempt for attempt in proof.attempts if attempt.what.endswith("of the victim's thread")
    ]
    assert {attempt.outcome for attempt in written} == {"HTTP 204"}


@pytest.mark.slow
@pytest.mark.parametrize("long", [True, False], ids=["long list", "short list"])
def test_without_policies_the_other_layers_hold(long: bool) -> None:
    proof = prove_with(
        on_victims(
            "ALTER TABLE {schema}.memory_message NO FORCE ROW LEVEL SECURITY,"
            " DISABLE ROW LEVEL SECURITY"
        ),
        long=long,
    )
    assert proof.broken_layers == [Layer.POLICY]
    breaches = {attempt.what for attempt in proof.breaches}
    assert "a tenant's table has no forced policy" in breaches
    assert "SELECT from the victim's memory_message" in breaches
    assert {attempt.via for attempt in proof.breaches} == {
        *("SQL", "catalogue"),
        *(("driver",) if long else ()),
    }


@pytest.mark.slow
def test_with_too_many_grants_the_other_layers_hold() -> None:
    proof = prove_with(
        on_victims("GRANT UPDATE, DELETE ON {schema}.memory_posting TO konstruct_app"),
        long=False,
    )
    assert proof.broken_layers == [Layer.ROLE]
    assert "the role may change an append-only table" in {breach.what for breach in proof.breaches}


@pytest.mark.slow
def test_without_schemas_the_policies_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search_path begins with the last tenant's schema."""

    def forget_schemas(tenants: Sequence[TenantFixture]) -> None:
        right = DatabaseWrapper._get_cursor_search_paths

        def wrong(wrapper: DatabaseWrapper) -> list[str]:
            paths = right(wrapper)
            is_proof = any(tenant.tenant.schema_name in paths for tenant in tenants)
            return [tenants[-1].tenant.schema_name, *paths] if is_proof else paths

        monkeypatch.setattr(DatabaseWrapper, "_get_cursor_search_paths", wrong)

    proof = prove_with(forget_schemas)
    assert proof.broken_layers == [Layer.SCHEMA]
    assert {breach.what for breach in proof.breaches} == {
        "be in another schema than ours",
        # The policies compare with the victim's tenant.
        "our search_path and the victim's tenant",
    }


def test_attack_that_could_not_run_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = Proof([Attempt(Layer.HTTP, "REST", "be served at x", False, NO_ANSWER)])
    monkeypatch.setattr(prove_isolation, "prove", lambda tenants: proof)
    with pytest.raises(CommandError, match=r"nothing is proven by REST: .*ALLOWED_HOSTS"):
        call_command("prove_isolation")


@pytest.mark.parametrize("number", ["1", "0", "101", "x"])
def test_invalid_number_of_tenants_is_refused(number: str) -> None:
    with pytest.raises(CommandError, match="--tenants") as caught:
        call_command("prove_isolation", "--tenants", number)
    assert caught.value.returncode == 2
