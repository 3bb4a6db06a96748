"""Processes that are killed before any statement of an extraction, or of a preview.

No fact is recorded twice or lost, and no run stays in the state running.
"""

import json
import signal
from typing import Any

import pytest

from konstruct.consistency import verify
from konstruct.orchestrator.extraction import fact_requests, runs
from konstruct.orchestrator.models import ExtractionCursor, ExtractionRun, RunState
from memory.models import FactEvent, FactEvidence, MemoryEntry
from tests.konstruct.conftest import Program
from tests.konstruct.orchestrator.extraction.conftest import AddMessage, cursor_id, fact
from tests.konstruct.privacy.test_killed_jobs import _status_of_child, _wait_until_unlocked
from tests.servers.llm import Answer, LLMServer

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

MAX_STATEMENTS = 120


def test_a_killed_extraction_is_done_once_and_completely(
    program: Program,
    add_message: AddMessage,
    llm_server: LLMServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A forked process cannot use the threads of its parent's embedding model.
    monkeypatch.setattr(fact_requests, "embed", lambda texts: [[0.05] * 384 for _ in texts])
    tea = fact("tea", "I like tea", slot="drink", fact="Maria likes tea.", multi=True)
    answer = {"facts": [fact("Oslo", "I live in Oslo"), tea]}
    llm_server.default = Answer({"content": json.dumps(answer)})
    message = add_message("I live in Oslo, and I like tea.", channel="import")
    key = cursor_id()

    def work() -> None:
        runs.EXTRACTIONS.cancel_attempts()  # the previous worker is dead
        runs.extract(key)

    kills, half_way = 0, set[Any]()
    for before in range(2, MAX_STATEMENTS):
        status = _status_of_child(program.tenant, work, before)
        if status != -signal.SIGKILL:
            assert status == 0
            break
        kills += 1
        _wait_until_unlocked()
        half_way.add((MemoryEntry.objects.count(), FactEvidence.objects.count()))
        if MemoryEntry.objects.exists():
            # It was killed after the commit: the job is gone, and the next one finds nothing.
            assert ExtractionCursor.objects.get().last_number == message.number
    assert kills > 20
    assert half_way <= {(0, 0), (2, 2)}
    assert (MemoryEntry.objects.count(), FactEvidence.objects.count()) == (2, 2)
    assert FactEvent.objects.count() == 4
    assert not runs.EXTRACTIONS.jobs().exists()
    states = [*ExtractionRun.objects.values_list("state", flat=True)]
    assert states.count(RunState.APPLIED) == 1
    assert set(states) <= {RunState.APPLIED, RunState.FAILED}
    assert verify(program.tenant.id, "a").findings == []
