"""The doctor checks each server; one that is down does not affect the others."""

import json
from contextlib import suppress
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tenants.servers import MAIN
from tests import database
from tests.servers.postgres import Server

pytestmark = [pytest.mark.data, pytest.mark.django_db(transaction=True)]


def test_every_server_is_checked_and_a_stopped_one_is_named(
    further: dict[str, Server], settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.APPLICATION_DATABASE_URL = database.url_of("app")
    settings.OWNER_DATABASE_URL = database.url_of("owner")

    def answers() -> list[dict[str, str]]:
        with suppress(CommandError):
            call_command("doctor", "--json", "--timeout=120")
        report = json.loads(capsys.readouterr().out)
        return [answer for answer in report["answers"] if answer["subject"].startswith("Postgres")]

    found = answers()
    for server in (MAIN, *further):
        checks = {answer["check"] for answer in found if answer["subject"] == f"Postgres {server}"}
        assert checks >= {"server", "extension", "clock", "migrations", "queues", "isolation"}
        assert ("tenants" in checks) is (server == MAIN)
        owners = [answer for answer in found if answer["subject"] == f"Postgres {server} as owner"]
        assert {answer["check"]: answer["status"] for answer in owners} == {
            "owner": "ok",
            "locks": "ok",
        }
    assert [answer for answer in found if answer["status"] == "wrong"] == []
    further["eu2"].stop()
    try:
        down = [answer for answer in answers() if answer["status"] == "wrong"]
    finally:
        further["eu2"].start()
    assert [(answer["subject"], answer["check"]) for answer in down] == [
        ("Postgres eu2", "connection"),
        ("Postgres eu2 as owner", "connection"),
    ]
    assert "TENANT_DATABASES (eu2)" in down[0]["remedy"]
    assert "TENANT_DATABASES_OWNER (eu2)" in down[1]["remedy"]
