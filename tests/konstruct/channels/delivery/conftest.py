"""Somebody who asks something in a channel of Slack."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenants.context import tenant_scope
from tests.konstruct.channels.conftest import take_in_all
from tests.konstruct.conftest import Program
from tests.servers.slack import mention

Post = Callable[..., Any]


@pytest.fixture
def asked(connected: Program, post: Post) -> Iterator[Program]:
    """Somebody has asked something in a channel; the block is in the tenant."""
    assert post(mention("T1", "Hello", ts="17.1")).status_code == 200
    take_in_all(connected)
    with tenant_scope(connected.tenant.id):
        yield connected
