"""Other agents for handovers."""

import pytest

from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.models import Agent
from tests.konstruct.conftest import Program


@pytest.fixture
def bert(program: Program) -> Agent:
    """Another agent of the same tenant."""
    return create_agent(tenant_id=program.tenant.id, name="bert", system_prompt="You are Bert.")


@pytest.fixture
def carl(program: Program) -> Agent:
    """A third agent."""
    return create_agent(tenant_id=program.tenant.id, name="carl", system_prompt="You are Carl.")
