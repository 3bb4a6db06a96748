"""Entries of every route in the access log, for a tenant with rows of every kind."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import Client

from konstruct.api.http import operations, views
from memory.facts import LongTermMemory
from memory.models import MemoryEntry, Message
from tenants.context import tenant_scope
from tests.konstruct.api.routes import V1
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.conftest import MESSAGES, access_events

pytestmark = pytest.mark.django_db


def test_failed_read_is_not_recorded_as_a_read(
    seed: SeedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise RuntimeError("later")

    monkeypatch.setattr("konstruct.api.http.views.etag_response", breaks)
    before = len(access_events(seed.program.tenant))
    assert seed.program.get(f"{V1}facts/{seed.fact}/").status_code == 500
    (event,) = access_events(seed.program.tenant)[before:]
    assert (event.action, event.detail["attempted"], event.detail["status"]) == (
        "refuse",
        "view",
        500,
    )


def test_refused_change_is_rolled_back_and_its_record_is_kept(seed: SeedData) -> None:
    path = f"{V1}facts/{seed.fact}/"
    before = len(access_events(seed.program.tenant))
    refused = seed.program.write(
        "PATCH", path, {"content": "Vera hates tea."}, headers={"If-Match": '"another"'}
    )
    assert refused.status_code == 412
    standing = LongTermMemory().get(seed.fact, seed.program.tenant.id)
    assert standing is not None
    assert standing.content == "Vera likes tea."
    (event,) = access_events(seed.program.tenant)[before:]
    assert (event.action, event.detail["status"]) == ("refuse", 412)


def test_action_without_a_record_is_rolled_back(
    seed: SeedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: Any, **__: Any) -> None:
        raise DatabaseError("no room")

    monkeypatch.setattr(operations, "record_access", is_full)
    monkeypatch.setattr(views, "record_request", operations.record_request)
    body = {"agent": "ada", "user_id": "vera", "content": "Vera is tall."}
    assert seed.program.post(f"{V1}facts/", body).status_code == 500
    assert seed.program.send("Hello?").status_code == 500
    assert seed.program.get(f"{V1}facts/").status_code == 500
    with tenant_scope(seed.program.tenant.id):
        assert not MemoryEntry.objects.filter(content="Vera is tall.").exists()
        assert not Message.objects.filter(content="Hello?").exists()


def test_a_person_is_recorded_by_name(seed: SeedData) -> None:
    client = Client(headers={"Host": "tenant-a.localhost"})
    with tenant_scope(seed.program.tenant.id):
        eva = User.objects.create_superuser("eva")
        client.force_login(eva)
    before = len(access_events(seed.program.tenant))
    assert client.get(MESSAGES).status_code == 200
    (event,) = access_events(seed.program.tenant)[before:]
    assert (event.actor_kind, event.actor, event.actor_id) == ("person", "eva", str(eva.pk))
