"""QuerySets that are compiled once."""

from typing import Any

import pytest
from django.db.models import Q, QuerySet
from django.db.models.functions import Length

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from tenants.context import tenant_scope
from tenants.models import Tenant
from tenants.postgresql.compiled_reads import CompiledRead


@CompiledRead
def agents_named(name: Any, tier: Any) -> QuerySet[Agent]:
    named = Agent.objects.active().filter(Q(name=name), Q(model_tier=tier) | Q(model_tier="fast"))
    return named.annotate(length=Length("name")).order_by("name")[:5]


@CompiledRead
def names_and_tools(part: Any) -> QuerySet[Agent, Any]:
    return Agent.objects.filter(name__contains=part).values_list("name", "tools")


def test_a_compiled_read_binds_the_values_of_each_call_in_the_current_tenant(
    tenant_a: Tenant, tenant_b: Tenant
) -> None:
    for tenant in (tenant_a, tenant_b):
        for name in ("ada", "bob"):
            create_agent(tenant_id=tenant.id, name=name, model_tier="fast", escalate_on=["é"])

    with tenant_scope(tenant_a.id):
        ada: Any = agents_named.first(name="ada", tier="reasoning")
        expected = Agent.objects.get(name="ada")
        for field in Agent._meta.concrete_fields:
            assert getattr(ada, field.attname) == getattr(expected, field.attname)
        assert ada.length == 3
        assert [agent.name for agent in agents_named(name="bob", tier="fast")] == ["bob"]
        assert agents_named.first(name="eve", tier=None) is None
    with tenant_scope(tenant_b.id):
        assert [agent.tenant_id for agent in agents_named(name="ada", tier="")] == [tenant_b.id]


def test_a_compiled_read_of_values_returns_rows(tenant_a: Tenant) -> None:
    create_agent(tenant_id=tenant_a.id, name="ada 100%", tools=["remember_fact"])

    with tenant_scope(tenant_a.id):
        assert names_and_tools.rows(part="100") == [("ada 100%", ["remember_fact"])]
        assert names_and_tools.rows(part="200") == []


def test_a_compiled_read_is_compiled_once_and_refuses_a_missing_value(tenant_a: Tenant) -> None:
    calls = []

    @CompiledRead
    def counted(name: Any) -> QuerySet[Agent]:
        calls.append(name)
        return Agent.objects.filter(name=name)

    with tenant_scope(tenant_a.id):
        assert [counted(name=name) for name in ("a", "b", "c")] == [[], [], []]
        with pytest.raises(KeyError, match="name"):
            counted()
    assert len(calls) == 1
