"""prove_isolation: nothing gets through; where a wall is gone it says which, and others hold."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from konstruct.isolation import Attempt, Proof, Wall, by_http, prove
from konstruct.isolation.fixtures import NAME, make_tenants
from konstruct.management.commands import prove_isolation
from tenants.context import connection, server_scope
from tenants.models import Tenant
from tenants.postgresql.base import DatabaseWrapper
from tests import database

pytestmark = pytest.mark.django_db(transaction=True)


def prove_with(before: Callable[[Sequence[Tenant]], None] | None = None) -> Proof:
    with database.as_owner():
        proof = prove(before=before)
        assert not Tenant.objects.filter(name=NAME).exists()
    return proof


def on_victims(sql: str) -> Callable[[Sequence[Tenant]], None]:
    """Do something to the tables of each tenant, as their owner."""

    def do(tenants: Sequence[Tenant]) -> None:
        for tenant in tenants:
            with server_scope(tenant.server), connection.cursor() as cursor:
                cursor.execute(sql.format(schema=tenant.schema_name))

    return do


@pytest.mark.slow
def test_nothing_gets_through(capsys: Any) -> None:
    with database.as_owner():
        make_tenants(1)  # as a proof that was killed leaves it
        call_command("prove_isolation", "--json")
        assert not Tenant.objects.filter(name=NAME).exists()
    report = json.loads(capsys.readouterr().out)
    assert report["breaches"] == 0
    assert set(report["walls"].values()) == {"holds"}
    assert report["attempts"] > 440
    ways = {attempt["via"] for attempt in report["each"]}
    assert ways >= {"models", "SQL", "cache", "broker", "checkpointer", "admin", "REST", "MCP"}
    # The attacks were real: what they asked for was there to be had.
    outcomes = {attempt["outcome"] for attempt in report["each"]}
    assert {"HTTP 200", "HTTP 401", "HTTP 404", "HTTP 302"} <= outcomes
    written = [each for each in report["each"] if each["what"].endswith("of the victim's thread")]
    assert {each["outcome"] for each in written} == {"HTTP 204"}
    assert report["not_tried"] == 0


@pytest.mark.slow
def test_without_policies_the_other_walls_hold() -> None:
    proof = prove_with(
        on_victims(
            "ALTER TABLE {schema}.memory_message NO FORCE ROW LEVEL SECURITY,"
            " DISABLE ROW LEVEL SECURITY"
        )
    )
    assert proof.walls_gone == [Wall.POLICY]
    breaches = {attempt.what for attempt in proof.breaches}
    assert "a tenant's table has no forced policy" in breaches
    assert "SELECT from the victim's memory_message" in breaches
    assert {attempt.via for attempt in proof.breaches} == {"SQL", "driver", "catalogue"}


@pytest.mark.slow
def test_with_a_role_that_may_too_much_the_other_walls_hold() -> None:
    proof = prove_with(
        on_victims("GRANT UPDATE, DELETE ON {schema}.memory_posting TO konstruct_app")
    )
    assert proof.walls_gone == [Wall.ROLE]
    assert "the role may change an append-only table" in {each.what for each in proof.breaches}


@pytest.mark.slow
def test_without_schemas_the_policies_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody's search_path begins with the last tenant's schema."""

    def forget_schemas(tenants: Sequence[Tenant]) -> None:
        right = DatabaseWrapper._get_cursor_search_paths

        def wrong(wrapper: DatabaseWrapper) -> list[str]:
            paths = right(wrapper)
            is_proof = any(tenant.schema_name in paths for tenant in tenants)
            return [tenants[-1].schema_name, *paths] if is_proof else paths

        monkeypatch.setattr(DatabaseWrapper, "_get_cursor_search_paths", wrong)

    proof = prove_with(forget_schemas)
    assert proof.walls_gone == [Wall.SCHEMA]
    assert {each.what for each in proof.breaches} == {
        "be in another schema than ours",
        "our search_path and the victim's tenant",  # policies are told a lie, and alone
    }


def test_the_command_names_what_is_gone(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    broken = Proof()
    monkeypatch.setattr(prove_isolation, "prove", lambda tenants: broken)
    broken.attempts += [
        Attempt(Wall.ROLE, "SQL", "be root", True, "done"),
        Attempt(Wall.POLICY, "SQL", "read", False, "0 rows"),
    ]
    with pytest.raises(CommandError, match="1 attempts got through; not whole: role") as caught:
        call_command("prove_isolation")
    assert caught.value.returncode == 1
    out = capsys.readouterr().out
    assert "GONE  role: 0 of 1 stopped (1 by SQL)\n  THROUGH SQL: be root -> done\n" in out
    assert "holds row-level security: 1 of 1 stopped (1 by SQL)\n" in out


def test_what_could_not_be_tried_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = Proof([Attempt(Wall.DOOR, "REST", "be served at x", False, by_http.NO_ANSWER)])
    monkeypatch.setattr(prove_isolation, "prove", lambda tenants: proof)
    with pytest.raises(CommandError, match=r"nothing is proven by REST: .*ALLOWED_HOSTS"):
        call_command("prove_isolation")


@pytest.mark.parametrize("number", ["1", "0", "101", "x"])
def test_a_number_that_cannot_be_is_refused(number: str) -> None:
    with pytest.raises(CommandError, match="--tenants") as caught:
        call_command("prove_isolation", "--tenants", number)
    assert caught.value.returncode == 2
