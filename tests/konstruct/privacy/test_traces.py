"""Traces of the owner worker, and the traces and their columns after an erasure."""

import pytest

from konstruct.privacy import jobs
from tenants import traces
from tenants.context import tenant_scope
from tenants.models import Job
from tests import database
from tests.konstruct.conftest import Program
from tests.servers.otlp import exporting

TRACE = "a" * 32


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_erasure_is_in_the_trace_of_its_request_without_ids(program_a: Program) -> None:
    with exporting() as collector:
        with traces.span("request", traces.SERVER, parent=f"00-{TRACE}-{'b' * 16}-01"):
            program_a.send("My secret.")
            answer = program_a.post("/api/v1/erasures/", {"user_id": "maria"})
        assert answer.status_code == 202
        with database.as_owner():
            assert jobs.ERASE.run_due() == 1
        traces.stop()
    spans = {span.name: span for span in collector.trace(TRACE)}
    request, erasure = spans["request"], spans["job erasure"]
    assert (erasure.kind, erasure.parent) == ("CONSUMER", request.id)
    assert erasure.attributes == {
        "konstruct.tenant.id": str(program_a.tenant.id),
        "konstruct.job.kind": "erasure",
        "konstruct.job.key": answer.json()["id"],
        "konstruct.job.attempt": 1,
    }
    exported = b"".join(collector.bytes)
    assert b"maria" not in exported
    assert b"secret" not in exported
    with tenant_scope(program_a.tenant.id):
        assert not Job.objects.filter(traceparent__contains=TRACE, kind="reply").exists()
