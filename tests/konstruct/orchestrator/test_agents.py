"""Agents: valid fields, lookup, and recall policy."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, ProgrammingError

from konstruct.orchestrator.agents import create_agent, find_agent, update_agent
from konstruct.orchestrator.exceptions import AgentInvalid, AgentNotFound
from konstruct.orchestrator.models import Agent, AgentVersion
from memory.recall.policy import DEFAULT_POLICY, RecallPolicy, RecallWeights
from tenants import transaction
from tenants.context import connection, tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Program


def test_an_agent_is_found_by_name_and_by_id(inside: Tenant) -> None:
    agent = create_agent(tenant_id=inside.id, name="ada")
    assert find_agent("ada") == find_agent(str(agent.id)) == find_agent(str(agent.id).upper())


@pytest.mark.parametrize("wanted", ["bob", "", "ADA", str(UUID(int=7))])
def test_an_unknown_agent_is_an_error_that_names_it(inside: Tenant, wanted: str) -> None:
    create_agent(tenant_id=inside.id, name="ada")
    with pytest.raises(AgentNotFound, match=f"No agent has the name or id '{wanted}'"):
        find_agent(wanted)


def test_an_inactive_agent_is_found_only_where_that_does_not_matter(inside: Tenant) -> None:
    agent = create_agent(tenant_id=inside.id, name="ada", is_active=False)
    assert find_agent("ada") == agent
    with pytest.raises(AgentNotFound, match="No active agent"):
        find_agent("ada", active=True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "x" * 121}, "name: Ensure this value has at most 120 characters"),
        ({"name": "a\0b"}, "name: Null characters are not allowed"),
        ({"name": str(uuid4())}, "reads as an id"),
        ({"name": "ada"}, "has an agent of that name already"),
        ({"model_tier": "slow"}, "model_tier: Value 'slow' is not a valid choice"),
        ({"recall_mode": "psychic"}, "recall_mode: Value 'psychic' is not a valid choice"),
        ({"recall_top_k": 101}, "top_k=101 is more than 100"),
        ({"recall_weights": []}, r"weights=\[\] is not an object"),
        ({"recall_weights": {"time": "much"}}, "weight time='much' is not a number"),
    ],
)
def test_invalid_agent_is_refused_with_the_reason(
    inside: Tenant, fields: dict[str, Any], message: str
) -> None:
    create_agent(tenant_id=inside.id, name="ada")
    with pytest.raises(AgentInvalid, match=message):
        create_agent(tenant_id=inside.id, **{"name": "bob", **fields})
    assert Agent.objects.count() == 1


@pytest.mark.parametrize(
    "column",
    [
        {"name": "00000000-0000-0000-0000-000000000007"},
        {"model_tier": "slow"},
        {"recall_mode": "x"},
    ],
)
def test_postgres_and_model_refuse_the_same_values(inside: Tenant, column: dict[str, str]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Agent.objects.create(**{"name": "bob", **column})


def test_the_application_may_not_delete_an_agent(inside: Tenant) -> None:
    agent = create_agent(tenant_id=inside.id, name="ada")
    with (
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM orchestrator_agent WHERE id = %s", [agent.id])


def test_agent_without_a_recall_policy_uses_the_default() -> None:
    assert Agent(name="ada").recall_policy == DEFAULT_POLICY


@pytest.mark.parametrize(
    ("fields", "thresholds"),
    [
        ({"recall_preset": "precise"}, (0.1, 0.02)),
        ({"recall_preset": "thorough"}, (0.03, 0.005)),
        ({"recall_open_at": 0.2}, (0.2, 0.005)),
        ({"recall_preset": "precise", "recall_keep_at": 0.01}, (0.1, 0.01)),
    ],
)
def test_own_thresholds_override_those_of_the_preset(
    fields: dict[str, Any], thresholds: tuple[float, float]
) -> None:
    policy = Agent(name="ada", **fields).recall_policy
    assert (policy.open_at, policy.keep_at) == thresholds


def test_agent_can_set_its_recall_policy() -> None:
    policy: dict[str, Any] = {"mode": "vector", "top_k": 3, "gate": False, "neighbours": 1}
    policy |= {"open_at": 0.2, "keep_at": 0.1}
    fields = {f"recall_{name}": value for name, value in policy.items()}
    agent = Agent(name="ada", recall_weights={"time": 0.25}, **fields)
    assert agent.recall_policy == RecallPolicy(**policy, weights=RecallWeights(time=0.25))


def test_a_version_is_never_changed(program_a: Program) -> None:
    with tenant_scope(program_a.tenant.id):
        update_agent(Agent.objects.get(pk=program_a.agent.pk), persona="Be curt.")
        for refused in (lambda rows: rows.update(note="Mine."), lambda rows: rows.delete()):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                refused(AgentVersion.objects.all())
