"""Heartbeats of processes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django_redis import get_redis_connection

from konstruct.heartbeats import OWNER, WEB, has_heartbeat, write_heartbeat
from konstruct.web.application import Application


@pytest.fixture
def full_cache() -> Iterator[None]:
    """A readable cache that refuses each write, like one without free memory."""
    cache = get_redis_connection()
    cache.delete(f"public:heartbeat:{OWNER}")
    limit = cache.config_get("maxmemory")["maxmemory"]
    cache.config_set("maxmemory", 1)
    try:
        yield
    finally:
        cache.config_set("maxmemory", limit)


def test_a_cache_that_takes_no_writes_ends_no_process(
    full_cache: None, settings: Any, tmp_path: Path
) -> None:
    settings.HEARTBEAT_FILE = tmp_path / "heartbeat"
    write_heartbeat(OWNER)
    assert settings.HEARTBEAT_FILE.exists()
    assert not has_heartbeat(OWNER)


def test_a_web_process_has_a_heartbeat_while_it_serves() -> None:
    get_redis_connection().delete(f"public:heartbeat:{WEB}")
    received = iter(["lifespan.startup"])
    sent = list[str]()

    async def receive() -> dict[str, str]:
        if (kind := next(received, "")) == "":
            async with asyncio.timeout(60):
                while not has_heartbeat(WEB):
                    await asyncio.sleep(0.05)
            kind = "lifespan.shutdown"
        return {"type": kind}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(Application()({"type": "lifespan", "state": {}}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert has_heartbeat(WEB)
