"""Facts with a slot, which a program sets: a new value supersedes the current one."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from memory.models import MemoryEntry
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program

FACTS = "/api/v1/facts/"
ROME = {"content": "Maria lives in Rome.", "slot": "home_city", "subject": "Maria", "value": "Rome"}
OSLO = {**ROME, "content": "Maria lives in Oslo.", "value": "Oslo"}


def keep(program: Program, **fields: Any) -> Any:
    response = program.post(FACTS, {"agent": "ada", "user_id": "maria", **fields})
    assert response.status_code in (200, 201), response.text
    return response.json()


def states(program: Program) -> dict[str, str]:
    with tenant_scope(program.tenant.id):
        return dict(MemoryEntry.objects.entries().values_list("value", "state"))


def test_a_new_value_supersedes_the_current_one(program_a: Program) -> None:
    rome = keep(program_a, **ROME)
    assert [rome[name] for name in ("slot", "subject", "value", "is_multi_valued")] == [
        "home_city", "Maria", "Rome", False,
    ]  # fmt: skip
    oslo = keep(program_a, **OSLO)
    # Another user's, another subject's and another slot's values stay.
    keep(program_a, **{**ROME, "user_id": "bob", "value": "Bern"})
    keep(program_a, **{**ROME, "subject": "Eva", "content": "Eva lives in Lima.", "value": "Lima"})
    assert states(program_a) == {
        "Rome": "superseded", "Oslo": "active", "Bern": "active", "Lima": "active",
    }  # fmt: skip
    old = program_a.get(f"{FACTS}{rome['memory_id']}/").json()
    assert (old["valid_to"], oslo["replaces"]) == (oslo["valid_from"], rome["memory_id"])


@pytest.mark.django_db(transaction=True)
def test_of_values_at_once_one_is_active(program_a: Program) -> None:
    def keep_city(number: int) -> None:
        try:
            keep(
                program_a, **{**ROME, "content": f"Maria lives in {number}.", "value": str(number)}
            )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(keep_city, range(12)))
    assert list(states(program_a).values()).count("active") == 1


def test_values_of_a_multi_valued_slot_stay(program_a: Program) -> None:
    keep(program_a, **ROME, is_multi_valued=True)
    keep(program_a, **OSLO, is_multi_valued=True)
    assert states(program_a) == {"Rome": "active", "Oslo": "active"}


def test_a_former_value_ends_when_the_current_one_began(program_a: Program) -> None:
    oslo = keep(program_a, **OSLO, valid_from="2026-03-01T00:00:00Z")
    rome = keep(program_a, **ROME, valid_from="2020-01-01T00:00:00Z")
    assert states(program_a) == {"Rome": "superseded", "Oslo": "active"}
    old = program_a.get(f"{FACTS}{rome['memory_id']}/").json()
    assert old["valid_to"] == oslo["valid_from"]


def test_the_same_fact_gets_a_slot_later(program_a: Program) -> None:
    content = ROME["content"]
    first = keep(program_a, content=content)
    keep(program_a, **OSLO)
    again = keep(program_a, **ROME)
    assert (again["memory_id"], again["created"]) == (first["memory_id"], False)
    assert (again["slot"], again["value"], again["is_multi_valued"]) == ("home_city", "Rome", False)
    assert list(states(program_a).values()).count("active") == 1


def test_an_external_id_changes_the_value(program_a: Program) -> None:
    first = keep(program_a, **ROME, external_id="crm-7")
    changed = keep(program_a, **OSLO, external_id="crm-7")
    assert (changed["memory_id"], changed["value"]) == (first["memory_id"], "Oslo")
    assert states(program_a)["Oslo"] == "active"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"value": "Rome"}, "value"),
        ({"subject": "Maria"}, "subject"),
        ({"is_multi_valued": True}, "is_multi_valued"),
        ({"slot": "home_city"}, "value"),
        ({"slot": "x" * 1001, "value": "Rome"}, "slot"),
        ({"slot": "a\0b", "value": "Rome"}, "slot"),
    ],
)
def test_an_incomplete_slot_is_refused(program_a: Program, fields: Any, name: str) -> None:
    response = program_a.post(FACTS, {"agent": "ada", "content": "x", **fields})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == name
    assert states(program_a) == {}
