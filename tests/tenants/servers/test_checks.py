"""The checks of each server; one that is down does not affect the others."""

import pytest

from tenants.checks import check_database
from tenants.servers import MAIN
from tests.servers.postgres import Server

pytestmark = [pytest.mark.data, pytest.mark.django_db(transaction=True)]


def test_every_server_is_checked_and_a_stopped_one_is_named(
    further: dict[str, Server],
) -> None:
    assert check_database(None, databases=[MAIN, *further]) == []
    further["eu2"].stop()
    try:
        down = check_database(None, databases=[MAIN, *further])
    finally:
        further["eu2"].start()
    assert [message.id for message in down] == ["tenants.E007"]
    assert "TENANT_DATABASES (eu2)" in str(down[0].hint)
