"""One server for the tests of the Python client and of its adapters."""

import asyncio

import pytest
from konstruct_client import AsyncClient

from konstruct.api.auth.keys import issue_key
from tests.konstruct.conftest import Program, make_program, program_a, program_b  # noqa: F401  (fixtures)


@pytest.fixture
def url(served_url: str) -> str:
    """Address of a server with a worker."""
    return served_url


def bound_key(program: Program, user_id: str) -> str:
    """Return a key of the program's tenant that is bound to a user."""
    _, key = issue_key(tenant_id=program.tenant.id, name="bound", user_id=user_id)
    return str(key)


async def indexed(konstruct: AsyncClient) -> None:
    """Wait until all messages are indexed."""
    while (await konstruct.users.usage())["pending_embeddings"]:
        await asyncio.sleep(0.05)
