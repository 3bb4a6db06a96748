"""The demo's data: its history is imported whole, and its recorded facts pass the checks."""

from collections import Counter
from typing import Any

from konstruct.management.commands import demo
from konstruct.orchestrator.agents import create_agent
from konstruct.orchestrator.extraction import runs
from konstruct.orchestrator.history_import.lines import ImportStatus, import_history
from konstruct.orchestrator.models import ExtractionCursor, ExtractionRun
from memory.models import MemoryEntry, Message
from tenants.context import tenant_scope
from tenants.models import Tenant


def test_the_history_has_a_month_of_activity_and_facts_to_review(
    tenant_a: Tenant, settings: Any
) -> None:
    aurora, _ = demo.read_companies()
    with demo.serving_model() as settings.LLM_POOL_URL, tenant_scope(tenant_a.id):
        for name in ("Iris", "Otto"):
            create_agent(tenant_id=tenant_a.id, name=name, extracts_facts=True)
        results = import_history(aurora["messages"], tenant_id=tenant_a.id)
        assert {result.status for result in results} == {ImportStatus.CREATED}
        days = Message.objects.values_list("created_at__date", flat=True)
        assert len(set(days)) == 29
        for cursor in ExtractionCursor.objects.all():
            runs.extract(cursor.pk)
        refused = [
            candidate
            for run in ExtractionRun.objects.all()
            for candidate in run.candidates
            if candidate["outcome"] == "refused"
        ]
        assert refused == []
        states = Counter(MemoryEntry.objects.entries().values_list("state", flat=True))
        assert states == {"active": 10, "proposed": 4, "superseded": 1}
