"""Erasing a short message reads no prompts that only have its words."""

from typing import Any
from uuid import uuid4

import pytest
from django.test.utils import CaptureQueriesContext

from konstruct.privacy.erasure.rows import erase_from_prompts
from memory.conversations.transcript import record_message
from tenants.context import connection, fetch_all, fetch_value, tenant_scope
from tenants.models import Tenant
from tests import database
from tests.memory.recall_traces import prompt_of, store_trace, trace_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

PROMPTS = 10_000


def test_one_indexed_statement_erases_a_message_from_the_prompts_of_a_tenant(
    tenant_a: Tenant,
) -> None:
    said: Any = {"tenant_id": tenant_a.id, "agent_id": uuid4(), "thread_id": "t", "channel": "rest"}
    message, _ = record_message(**said, user_id="maria", role="user", content="ok")
    with tenant_scope(tenant_a.id):
        turn = {"role": "user", "content": "ok\n\nA program says: ok."}
        events = [
            store_trace(said["agent_id"], user, sources=[message.pk], prompt=prompt_of(turn))
            for user in ("maria", "theo")
        ]
    with database.as_owner(), tenant_scope(tenant_a.id):
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO memory_recallevent (agent_id, user_id, packed, sources, abstained,"
                " embedding_model, milliseconds) SELECT gen_random_uuid(), 'user ' || n %% 1000,"
                " packed, ARRAY[gen_random_uuid()], abstained, embedding_model, milliseconds"
                " FROM memory_recallevent, generate_series(1, %s) AS n WHERE id = %s",
                [PROMPTS, events[0].pk],
            )
            cursor.execute(
                "INSERT INTO memory_promptsource (event_id, source_id)"
                " SELECT id, gen_random_uuid() FROM memory_recallevent"
            )
            cursor.execute("ANALYZE memory_recallevent, memory_promptsource")
        with CaptureQueriesContext(connection) as queries:
            assert erase_from_prompts([message]) == 2
        (query,) = queries
        plan = "\n".join(line for (line,) in fetch_all(f"EXPLAIN {query['sql']}"))
        assert "Seq Scan on memory_recallevent" not in plan
        assert "Seq Scan on memory_promptsource" not in plan
        assert fetch_value("SELECT count(*) FROM memory_recallevent") == PROMPTS + 2
        for event in events:
            event.refresh_from_db()
            (erased,) = trace_of(event)["prompt"]["sections"][0]["messages"]
            assert erased["content"] == "[erased]\n\n[erased]"
