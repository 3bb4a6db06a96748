"""Heartbeats of processes that serve no requests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django_redis import get_redis_connection

from konstruct.heartbeats import OWNER, has_heartbeat, write_heartbeat


@pytest.fixture
def full_cache() -> Iterator[None]:
    """A cache that can be read, and refuses each write, as one does that has no room left."""
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


def test_a_file_that_cannot_be_written_ends_no_process(settings: Any, tmp_path: Path) -> None:
    settings.HEARTBEAT_FILE = tmp_path / "missing" / "heartbeat"
    write_heartbeat(OWNER)
    assert has_heartbeat(OWNER)
