"""Fixtures of the tests of resources."""

import pytest

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from tests.konstruct.conftest import Program


@pytest.fixture
def bo(program_a: Program) -> Agent:
    """Another agent of tenant A."""
    return create_agent(tenant_id=program_a.tenant.id, name="bo")
