"""Three servers for the tests of this package, which commit."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.servers import postgres


@pytest.fixture(scope="package")
def further(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, postgres.Server]]:
    """Two servers in addition to the main server."""
    with django_db_blocker.unblock(), postgres.further_servers() as found:
        yield found
