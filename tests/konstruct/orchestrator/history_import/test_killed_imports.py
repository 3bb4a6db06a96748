"""Imports that are killed before any statement: the repetition adds what is missing, once."""

import json
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from konstruct.consistency import verify
from konstruct.orchestrator.history_import import importing
from konstruct.orchestrator.models import HISTORY_IMPORTS, HistoryImport
from memory.models import MemoryEntry, Message
from tenants import transaction
from tenants.audit.access_log import Actor
from tenants.audit.models import AccessEvent, ActorKind
from tenants.context import tenant_scope
from tenants.outbox.models import EventType, OutboxEvent
from tests.konstruct.conftest import Program
from tests.konstruct.privacy.test_killed_jobs import _status_of_child, _wait_until_unlocked

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

EVA = Actor(ActorKind.PERSON, "1", "eva")
MAX_STATEMENTS = 200
TURNS = ("I moved to Oslo.", "How is it?", "Cold.")
FACTS = ("Maria lives in Oslo.", "Maria likes tea.")


def export(name: str) -> bytes:
    """Return an export of Zep with new ids."""
    messages = [
        {
            "uuid": f"{name}-{n}",
            "role": "user" if n % 2 == 0 else "assistant",
            "content": text,
            "created_at": f"2026-02-01T10:00:0{n}Z",
        }
        for n, text in enumerate(TURNS)
    ]
    facts = [{"uuid": f"{name}-{n}", "fact": f"{name}: {text}"} for n, text in enumerate(FACTS)]
    document = {"thread_id": name, "user_id": "maria", "messages": messages, "facts": facts}
    return json.dumps(document).encode()


def work(import_id: Any) -> None:
    HISTORY_IMPORTS.cancel_attempts()  # the previous worker is dead
    importing.run(import_id)


def embed_equally(entries: Sequence[MemoryEntry]) -> None:
    for entry in entries:
        entry.embedding = [0.05] * 384


@pytest.mark.parametrize("is_dry_run", [False, True], ids=["import", "preview"])
def test_a_killed_import_is_completed_and_doubles_nothing(
    program_a: Program, monkeypatch: pytest.MonkeyPatch, is_dry_run: bool
) -> None:
    monkeypatch.setattr(importing, "BATCH", 2)
    # A forked process cannot use the threads of its parent's embedding model.
    monkeypatch.setattr(importing, "embed_facts", embed_equally)
    left, before = set[tuple[int, int]](), 1
    with tenant_scope(program_a.tenant.id):
        while before < MAX_STATEMENTS:
            before, name = before + 1, f"t{before}"
            with transaction.atomic():
                upload = importing.request_import(
                    export(name),
                    f"{name}.json",
                    importing.Options(agent="ada"),
                    by=EVA,
                    is_dry_run=is_dry_run,
                )
            status = _status_of_child(program_a.tenant, lambda: work(upload.pk), before)  # noqa: B023
            stored = Message.objects.filter(thread_id=name)
            facts = MemoryEntry.objects.filter(content__startswith=f"{name}: ")
            if status != -signal.SIGKILL:
                assert status == 0
                break
            _wait_until_unlocked()
            left.add((stored.count(), facts.count()))
            work(upload.pk)
            if is_dry_run:
                assert (stored.count(), facts.count()) == (0, 0)
                assert HistoryImport.objects.get(pk=upload.pk).state == "previewed"
                importing.confirm(upload.pk)
                work(upload.pk)
            assert [*stored.order_by("created_at").values_list("content", flat=True)] == [*TURNS]
            assert facts.count() == len(FACTS)
            done = HistoryImport.objects.get(pk=upload.pk)
            assert (done.state, bytes(done.content)) == ("imported", b"")
            assert sum(done.report["counts"].values()) == len(TURNS) + len(FACTS)
            events = OutboxEvent.objects.filter(type=EventType.IMPORT_DONE, subject_id=upload.pk)
            assert events.count() == 1
        logged = AccessEvent.objects.filter(action="import", subject="messages")
        created = sum(event.detail["counts"].get("created", 0) for event in logged)
        assert created == Message.objects.count() + MemoryEntry.objects.count()
        assert before > 30
        halves = {(0, 0), (2, 0), (3, 1), (3, 2)}
        assert left == ({(0, 0)} if is_dry_run else halves)
        assert verify(program_a.tenant.id, "a").findings == []
