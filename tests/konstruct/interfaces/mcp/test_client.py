"""The official client, unmodified, with both protocol eras, against the production server."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from konstruct.orchestrator.agents import create_agent
from memory import indexing
from tenants.models import Tenant
from tests.konstruct.conftest import Program
from tests.konstruct.running import run_python

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ERAS = ["legacy", "auto"]


@pytest.fixture
def url(served_url: str) -> str:
    return served_url


@asynccontextmanager
async def connected(url: str, key: str, era: str, **headers: str) -> AsyncIterator[Client]:
    headers |= {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=era) as client,
    ):
        yield client


async def use(client: Client, **scope: str) -> dict[str, Any]:
    """Remember, search, correct, list, get and forget like a host. Return the found facts."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(tools) == ["correct", "forget", "get", "list", "remember", "search"]
    kept = await client.call_tool("remember", {"content": "The sky over Porto is blue.", **scope})
    assert kept.structured_content is not None
    fact = kept.structured_content["id"]
    found = await client.call_tool("search", {"query": "Which colour has the sky?", **scope})
    await client.call_tool("correct", {"id": fact, "content": "The sky over Porto is grey."})
    message = await client.call_tool("get", {"id": fact})
    assert "blue" in message.content[0].text  # type: ignore[union-attr]  # it is text
    listed = await client.call_tool("list", scope)
    assert not (await client.call_tool("forget", {"id": fact})).is_error
    deleted = await client.call_tool("get", {"id": fact})
    assert deleted.is_error
    assert found.structured_content is not None
    assert listed.structured_content is not None
    return {
        "found": [row["content"] for row in found.structured_content["results"]],
        "listed": [row["content"] for row in listed.structured_content["results"]],
    }


@pytest.mark.parametrize("era", ERAS)
def test_two_tenants_that_share_ids_use_it_at_once(
    url: str, program_a: Program, program_b: Program, era: str
) -> None:
    for program, secret in ((program_a, "heliotrope"), (program_b, "vermilion")):
        said = {"role": "user", "content": f"The sky is {secret}.", "thread_id": "1"}
        when = {"external_id": "1", "created_at": "2025-03-15T09:00:00Z"}
        line = {"agent": "ada", "user_id": "maria", **said, **when}
        program.post("/api/v1/messages/import/", {"messages": [line]})
        indexing.drain(program.tenant.id)

    async def both() -> list[dict[str, Any]]:
        async def one(program: Program) -> dict[str, Any]:
            async with connected(url, program.key, era) as client:
                return await use(client, user_id="maria")

        return list(await asyncio.gather(one(program_a), one(program_b)))

    for outcome, secret in zip(asyncio.run(both()), ("heliotrope", "vermilion"), strict=True):
        assert outcome["found"] == ["The sky over Porto is blue.", f"The sky is {secret}."]
        assert outcome["listed"] == ["The sky over Porto is grey."]


def test_a_key_of_another_tenant_does_not_get_in(
    url: str, program_a: Program, tenant_b: Tenant
) -> None:
    create_agent(tenant_id=tenant_b.id, name="ada")

    async def refused(host: str, key: str, era: str) -> None:
        async with connected(url, key, era, Host=host) as client:
            await client.list_tools()

    for era in ERAS:
        asyncio.run(refused("tenant-a.localhost", program_a.key, era))
        for host, key in (("tenant-b.localhost", program_a.key), ("localhost", "ks_nonsense")):
            with pytest.RaisesGroup(MCPError, flatten_subgroups=True, allow_unwrapped=True):
                asyncio.run(refused(host, key, era))


@pytest.mark.long
def test_only_processes_that_serve_it_load_the_types_and_none_the_sdk() -> None:
    program = (
        "import sys, django; django.setup(set_prefix=False);"
        "import konstruct.urls.tenant, konstruct.urls.public, konstruct.celery;"
        "print([m for m in ('mcp', 'mcp_types', 'starlette') if m in sys.modules]);"
        "import konstruct.interfaces.mcp.protocol;"
        "print([m for m in ('mcp', 'mcp_types', 'starlette') if m in sys.modules])"
    )
    ran = run_python(
        "-c",
        program,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "konstruct.settings"},
        check=True,
    )
    assert ran.stdout.splitlines() == ["[]", "['mcp_types']"]
