"""Search of memories like an agent's, and the details of one."""

import pytest
from django.test import Client

from tenants.audit.models import AccessEvent
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program, user_of

MEMORIES = "/admin/memories/"


@pytest.fixture
def program_a(db: None, module_populated: Program) -> Program:
    return module_populated


@pytest.fixture
def populated_a(program_a: Program) -> Program:
    return program_a


def test_memory_is_found_by_similar_meaning_with_its_signals(
    populated_a: Program, admin: Client
) -> None:
    query = {"agent": str(populated_a.agent.pk), "user": "maria", "q": "When will she visit?"}
    answer = admin.get(MEMORIES, query)
    best = answer.context["found"]["hits"][0]
    assert best["content"] == "My sister lives in Lisbon and visits in May."
    assert {"meaning", "words"} <= {signal["label"] for signal in best["signals"]}
    assert "<mark>visits</mark>" in answer.text
    with tenant_scope(populated_a.tenant.id):
        event = AccessEvent.objects.get(action="search", subject="memories")
    assert (user_of(event), event.detail) == ("maria", {})
