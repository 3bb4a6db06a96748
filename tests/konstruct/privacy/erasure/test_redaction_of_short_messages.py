"""Erasing a short message reads no rows that only have its words."""

from typing import Any
from uuid import uuid4

import pytest

from konstruct.privacy.erasure.redaction import redact_copies
from memory.conversations.transcript import record_message
from memory.models import RecallEvent
from tenants.context import tenant_scope
from tenants.models import Tenant


@pytest.mark.xfail(strict=True, reason="B3")
def test_prompts_that_do_not_quote_a_short_message_are_not_read(
    tenant_a: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_id, read = uuid4(), []
    message, _ = record_message(
        tenant_id=tenant_a.id, agent_id=agent_id, user_id="maria", thread_id="t", channel="rest",
        role="user", content="ok",
    )  # fmt: skip
    with tenant_scope(tenant_a.id):
        for number in range(3):
            RecallEvent.objects.create(
                agent_id=agent_id, user_id="maria", query=f"Which book {number}?", hits=[], cut=[],
                injected=[], abstained=True, embedding_model="test", milliseconds=1.0,
                prompt={"messages": [{"role": "user", "content": "Which book?"}]},
            )  # fmt: skip
        from_db = RecallEvent.from_db

        def count(*given: Any) -> RecallEvent:
            read.append(given)
            return from_db(*given)

        monkeypatch.setattr(RecallEvent, "from_db", count)
        redact_copies([message])
    assert read == []
