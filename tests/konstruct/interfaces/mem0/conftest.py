"""Fixtures of the tests of mem0's REST."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.konstruct.conftest import Program
from tests.konstruct.interfaces.mem0.calls import add


@pytest.fixture(scope="module")
def program(
    module_transaction: Callable[[], AbstractContextManager[None]], module_program: Program
) -> Program:
    """A program with memories of alex, bea and the agent ada. Every test rolls back its changes."""
    with module_transaction():
        add(module_program, "I drink tea.", user_id="alex", run_id="r1", metadata={"n": 1})
        add(module_program, "I live in Rome.", user_id="alex", agent_id="ada", app_id="a1",
            metadata={"n": 5, "topic": "Home life", "categories": ["places"]})  # fmt: skip
        add(module_program, "I drink coffee.", user_id="bea", metadata={"topic": "drinks"})
        add(module_program, "The office closes at six.", agent_id="ada")
    return module_program
