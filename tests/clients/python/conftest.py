"""One server for the tests of the Python client and of its adapters."""

import asyncio
from collections.abc import Iterator

import pytest
from django_redis import get_redis_connection
from konstruct_client import AsyncClient

from konstruct.api.auth.keys import issue_key
from tests.konstruct.api.live import serving
from tests.konstruct.conftest import (  # noqa: F401  (fixtures)
    Program,
    make_program,
    program_a,
    program_b,
)


@pytest.fixture(scope="package")
def url(
    environment_of_processes: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Address of a server with a worker."""
    log = tmp_path_factory.mktemp("served") / "log"
    with serving(environment_of_processes, log, worker=True) as url:
        yield url
    # The server's rate limit buckets; this process has no local cache to empty.
    get_redis_connection("default").flushdb()


def bound_key(program: Program, user_id: str) -> str:
    """Return a key of the program's tenant that is bound to a user."""
    _, key = issue_key(tenant_id=program.tenant.id, name="bound", user_id=user_id)
    return str(key)


async def indexed(konstruct: AsyncClient) -> None:
    """Wait until all messages are indexed."""
    while (await konstruct.users.usage())["pending_embeddings"]:
        await asyncio.sleep(0.05)
