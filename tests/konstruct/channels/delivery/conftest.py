"""A message from a channel of Slack."""

from collections.abc import Iterator

import pytest

from tenants.context import tenant_scope
from tests.konstruct.channels.conftest import take_in_all
from tests.konstruct.conftest import Post, Program
from tests.servers.slack import mention


@pytest.fixture
def program_with_message(connected: Program, post: Post) -> Iterator[Program]:
    """A program with a message from a channel; the test runs in its tenant."""
    assert post(mention("T1", "Hello", ts="17.1")).status_code == 200
    take_in_all(connected)
    with tenant_scope(connected.tenant.id):
        yield connected
