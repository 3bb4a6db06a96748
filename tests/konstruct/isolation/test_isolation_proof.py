"""Isolation: no attack succeeds. A broken layer is named, and the others hold."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from django.core.management import CommandError, call_command

from konstruct.management.commands import prove_isolation
from tenants.checks import checks
from tenants.context import connection, server_scope
from tests.konstruct.isolation.attempts import Layer
from tests.konstruct.isolation.fixtures import TenantFixture
from tests.konstruct.isolation.proving import prove

Before = Callable[[Sequence[TenantFixture]], None]

pytestmark = pytest.mark.django_db(transaction=True)


def on_victims(sql: str) -> Before:
    """Run a statement on the tables of each tenant, as their owner."""

    def run(tenants: Sequence[TenantFixture]) -> None:
        for tenant in tenants:
            with server_scope(tenant.tenant.server), connection.cursor() as cursor:
                cursor.execute(sql.format(schema=tenant.tenant.schema_name))

    return run


@pytest.mark.slow
def test_all_attacks_fail() -> None:
    proof = prove()
    assert (proof.breaches, proof.not_tried) == ([], [])
    ways = Counter(attempt.via for attempt in proof.attempts)
    # A lower limit: some attacks run once for each table, model, function or page.
    assert ways >= Counter(
        models=50, SQL=500, driver=180, cache=4, broker=6, checkpointer=6, facts=8, recall=4,
        window=2, task=2, connection=2, REST=60, MCP=24, admin=30,
    )  # fmt: skip
    # The attacks were real: the requests reached their pages.
    outcomes = {attempt.outcome for attempt in proof.attempts}
    assert {"HTTP 200", "HTTP 401", "HTTP 404", "HTTP 302"} <= outcomes
    written = [
        attempt for attempt in proof.attempts if attempt.what.endswith("of the victim's thread")
    ]
    assert {attempt.outcome for attempt in written} == {"HTTP 204"}


@pytest.mark.slow
def test_without_policies_the_other_layers_hold() -> None:
    proof = prove(
        before=on_victims(
            "ALTER TABLE {schema}.memory_message NO FORCE ROW LEVEL SECURITY,"
            " DISABLE ROW LEVEL SECURITY"
        ),
    )
    assert proof.broken_layers == [Layer.POLICY]
    breaches = {attempt.what for attempt in proof.breaches}
    assert "SELECT from the victim's memory_message" in breaches
    assert {attempt.via for attempt in proof.breaches} == {"SQL", "driver"}


def test_the_command_shows_the_findings_of_the_catalogue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("prove_isolation")
    assert capsys.readouterr().out.startswith("role, policies and grants isolate tenants on")
    broken = checks.Error("It is open.", hint="Close it.", id="tenants.E004")
    monkeypatch.setattr(prove_isolation, "check_database", lambda *_, **__: [broken])
    with pytest.raises(CommandError, match="1 findings") as caught:
        call_command("prove_isolation")
    assert caught.value.returncode == 1
    assert capsys.readouterr().out == "tenants.E004: It is open. -> Close it.\n"
