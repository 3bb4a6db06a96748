"""Every route of the API with one real request for each of its methods.

Tests of all routes use these cases. A route without a case fails the suite.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db.models.functions import Now
from django.urls import URLPattern, URLResolver, get_resolver

from konstruct.api.http.views import ApiViewSet
from konstruct.orchestrator.handoff.escalations import last_user_message
from konstruct.orchestrator.messages import Thread
from konstruct.orchestrator.models import Escalation, LanguageModel, ToolCall
from memory.conversations.transcript import record_message
from memory.models import Message, Role
from tenants.context import tenant_scope
from tests.konstruct.api.case import Case, ada, graph, template
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.interfaces import mem0_routes

V1 = "/api/v1/"


def at(path: str) -> Callable[[SeedData], str]:
    return template(V1 + path)


def _answerable(seed: SeedData) -> str:
    """Return the address to answer the escalation, in which the user has written now."""
    with tenant_scope(seed.program.tenant.id):
        escalation = Escalation.objects.get(pk=seed.escalation)
        if last_user_message(Thread.of(escalation)) is None:
            record_message(
                tenant_id=seed.program.tenant.id,
                **Thread.of(escalation).as_filter,  # type: ignore[arg-type]  # the three names
                channel="rest",
                role=Role.USER,
                content="Where is it?",
            )
    return f"{V1}escalations/{seed.escalation}/answer/"


def _tool_results(seed: SeedData) -> dict[str, Any]:
    """Return the result of a call of the program's tool by the message that was sent."""
    with tenant_scope(seed.program.tenant.id):
        message = Message.objects.get(pk=seed.sent["id"])
        call, _ = ToolCall.objects.get_or_create(
            message=message,
            round=1,
            position=0,
            defaults={
                **Thread.of(message).as_filter,
                "call_id": "c",
                "name": "weather",
                "arguments": {},
                "state": "with_program",
                "expires_at": Now() + timedelta(days=1),
            },
        )
    return {"results": [{"tool_call_id": str(call.pk), "content": "22 degrees"}]}


def _test_of_model(seed: SeedData) -> str:
    """Return the address that tests a model of the deployment, which has none in these tests."""
    with tenant_scope(seed.program.tenant.id):
        model = LanguageModel.objects.get(endpoint="")
    return f"{V1}language-models/{model.pk}/test/"


def line(seed: SeedData) -> dict[str, str]:
    return {
        "external_id": "e9",
        "agent": ada(seed),
        "user_id": "theo",
        "thread_id": "old",
        "role": "user",
        "content": "And then?",
        "created_at": "2025-03-15T09:00:00Z",
    }


OF_MARIA = "?agent={ada}&user_id=maria"
OF_VERA = "?agent={ada}&user_id=vera"

# By the name of the route and the method.
CASES: dict[tuple[str, str], Case] = {
    ("message-list", "GET"): Case(at(f"messages/{OF_MARIA}"), messages=4),
    ("message-list", "POST"): Case(
        at("messages/"),
        messages=6,
        body=lambda seed: {"agent": ada(seed), "user_id": "maria", "content": "Hello"},
    ),
    ("message-detail", "GET"): Case(at("messages/{sent[id]}/"), messages=4),
    ("message-send-tool-results", "POST"): Case(
        at("messages/{sent[id]}/tool-results/"), messages=15, body=_tool_results
    ),
    ("message-detail", "DELETE"): Case(at("messages/{sent[id]}/"), messages=7),
    ("exclusion-list", "GET"): Case(at("messages/{excluded}/exclusions/"), messages=4),
    ("exclusion-list", "POST"): Case(
        at("messages/{excluded}/exclusions/"),
        messages=7,
        body=lambda seed: {"start": 5, "end": 6, "reason": "A joke."},
    ),
    ("exclusion-detail", "DELETE"): Case(
        at("messages/{excluded}/exclusions/{exclusion}/"), messages=8
    ),
    ("conversation-get-transcript", "PATCH"): Case(
        at(f"conversations/transcript/{OF_MARIA}&thread_id=t1"),
        messages=7,
        body=lambda seed: {"title": "Tea", "metadata": {"ticket": 7}},
    ),
    ("conversation-get-transcript", "DELETE"): Case(
        at(f"conversations/transcript/{OF_MARIA}&thread_id=t1"), messages=6
    ),
    ("message-import-messages", "POST"): Case(
        at("messages/import/"), messages=11, body=lambda seed: {"messages": [line(seed)]}
    ),
    ("api-key-list", "GET"): Case(at("api-keys/"), messages=3),
    ("api-key-list", "POST"): Case(
        at("api-keys/"), messages=10, body=lambda seed: {"name": "new", "scopes": ["keys"]}
    ),
    ("api-key-detail", "GET"): Case(at("api-keys/{key}/"), messages=3),
    ("api-key-detail", "DELETE"): Case(at("api-keys/{key}/"), messages=7),
    ("agent-list", "GET"): Case(at("agents/"), messages=3),
    ("agent-list", "POST"): Case(
        at("agents/"), messages=15, body=lambda seed: {"name": f"new {uuid4().hex}"}
    ),
    ("agent-detail", "GET"): Case(at("agents/{ada}/"), messages=3),
    ("agent-detail", "PATCH"): Case(
        at("agents/{ada}/"), messages=17, body=lambda seed: {"persona": "Evil."}
    ),
    ("agent-version-list", "GET"): Case(at("agents/{other.pk}/versions/"), messages=4),
    ("agent-version-restore-agent", "POST"): Case(
        at("agents/{other.pk}/versions/1/restore/"), messages=20, body=lambda seed: {}
    ),
    ("dry-run-list", "POST"): Case(
        at("agents/{other.pk}/dry-runs/"),
        messages=32,
        body=lambda seed: {"content": "Who are you?", "draft": {"persona": "Kind."}},
    ),
    ("question-list", "GET"): Case(at("agents/{other.pk}/questions/"), messages=4),
    ("question-list", "POST"): Case(
        at("agents/{other.pk}/questions/"),
        messages=8,
        body=lambda seed: {"content": "Who are you?"},
    ),
    ("question-detail", "GET"): Case(at("agents/{other.pk}/questions/{question}/"), messages=3),
    ("question-detail", "DELETE"): Case(at("agents/{other.pk}/questions/{question}/"), messages=6),
    ("question-list-question-answers", "GET"): Case(
        at("agents/{other.pk}/questions/answers/"), messages=4
    ),
    ("question-get-question-run", "GET"): Case(at("agents/{other.pk}/questions/run/"), messages=5),
    ("question-get-question-run", "POST"): Case(at("agents/{other.pk}/questions/run/"), messages=6),
    ("conversation-list", "GET"): Case(at(f"conversations/{OF_MARIA}"), messages=6),
    ("conversation-get-transcript", "GET"): Case(
        at(f"conversations/transcript/{OF_MARIA}"), messages=3
    ),
    ("item-list", "GET"): Case(at(f"conversations/items/{OF_MARIA}&thread_id=t1"), messages=4),
    ("item-list", "POST"): Case(
        at("conversations/items/"),
        messages=12,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "thread_id": "t1",
            "items": [{"item": {}, "said": {"role": "user", "content": "Hello"}}],
        },
    ),
    ("item-list", "DELETE"): Case(at(f"conversations/items/{OF_MARIA}&thread_id=t1"), messages=4),
    ("item-detail", "DELETE"): Case(at("conversations/items/{item}/"), messages=4),
    ("chat-completions", "POST"): Case(
        template("/v1/chat/completions"),
        messages=11,
        body=lambda seed: {
            "model": ada(seed),
            "user": "maria",
            "messages": [{"role": "user", "content": "Hello"}],
            "stream": True,
        },
    ),
    ("context-compile-context", "POST"): Case(
        at("context/compile/"),
        messages=10,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "thread_id": graph(seed),
            "task": "What do I drink?",
        },
    ),
    ("escalation-list", "GET"): Case(at(f"escalations/{OF_MARIA}"), messages=4),
    ("escalation-list", "POST"): Case(
        at("escalations/"),
        messages=10,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "thread_id": "t1",
            "reason": "Help.",
        },
    ),
    ("escalation-detail", "GET"): Case(at("escalations/{escalation}/"), messages=4),
    ("escalation-assign-escalation", "PUT"): Case(
        at("escalations/{escalation}/assignment/"),
        messages=6,
        body=lambda seed: {"assigned_to": ""},
    ),
    ("escalation-answer-escalation", "POST"): Case(
        _answerable, messages=18, body=lambda seed: {"content": "It is on its way."}
    ),
    ("escalation-resolve-escalation", "POST"): Case(
        at("escalations/{escalation}/resolution/"),
        messages=9,
        body=lambda seed: {"let_agent_answer": True},
    ),
    ("extraction-run-list", "GET"): Case(at(f"extraction-runs/{OF_MARIA}"), messages=4),
    ("extraction-run-list", "POST"): Case(
        at("extraction-runs/"),
        messages=16,
        body=lambda seed: {"agent": ada(seed), "user_id": "maria", "thread_id": "t1"},
    ),
    ("extraction-run-detail", "GET"): Case(at("extraction-runs/{run}/"), messages=4),
    ("extraction-run-apply-extraction-run", "POST"): Case(
        at("extraction-runs/{preview}/apply/"), messages=13
    ),
    ("extraction-run-roll-back-extraction-run", "POST"): Case(
        at("extraction-runs/{run}/roll-back/"), messages=22
    ),
    ("extraction-run-replay-extraction-run", "POST"): Case(
        at("extraction-runs/{run}/replay/"), messages=15, body=lambda seed: {}
    ),
    ("extraction-run-compare-extraction-runs", "GET"): Case(
        at("extraction-runs/{run}/comparison/?other={preview}"), messages=4
    ),
    ("extraction-list", "GET"): Case(at(f"extractions/{OF_MARIA}"), messages=4),
    ("extraction-retry-extraction", "POST"): Case(
        at("extractions/{extraction}/retry/"), messages=6
    ),
    ("fact-list", "GET"): Case(at(f"facts/{OF_VERA}"), messages=4),
    ("fact-list", "POST"): Case(
        at("facts/"),
        messages=12,
        body=lambda seed: {"agent": ada(seed), "user_id": "vera", "content": "Vera is tall."},
    ),
    ("fact-create-facts", "POST"): Case(
        at("facts/batch/"),
        messages=13,
        body=lambda seed: {
            "facts": [{"agent": ada(seed), "user_id": "vera", "content": "Vera is tall."}]
        },
    ),
    ("fact-create-facts", "PATCH"): Case(
        at("facts/batch/"),
        messages=20,
        body=lambda seed: {"facts": [{"memory_id": str(seed.fact), "content": "Vera hates tea."}]},
    ),
    ("fact-delete-facts", "POST"): Case(
        at("facts/batch/delete/"), messages=12, body=lambda seed: {"memory_ids": [str(seed.fact)]}
    ),
    ("fact-put-fact", "PUT"): Case(
        at(f"facts/by-external-id/1/{OF_VERA}"),
        messages=14,
        body=lambda seed: {"content": "Vera is tall."},
    ),
    ("fact-put-fact", "DELETE"): Case(at(f"facts/by-external-id/own/{OF_VERA}"), messages=12),
    ("fact-search-facts", "POST"): Case(
        at("facts/search/"),
        messages=5,
        body=lambda seed: {"agent": ada(seed), "user_id": "vera", "query": "What does Vera like?"},
    ),
    ("fact-detail", "GET"): Case(at("facts/{fact}/"), messages=5),
    ("fact-detail", "PATCH"): Case(
        at("facts/{fact}/"), messages=21, body=lambda seed: {"content": "Vera hates tea."}
    ),
    ("fact-detail", "DELETE"): Case(at("facts/{fact}/"), messages=12),
    ("fact-list-fact-versions", "GET"): Case(at("facts/{fact}/history/"), messages=5),
    **{
        (f"fact-{decision}-fact", "POST"): Case(
            at(f"facts/{{{fact}}}/{decision}/"),
            messages=messages,
            body=lambda seed: {"reason": "Checked."},
        )
        for decision, fact, messages in (
            ("confirm", "proposed", 12),
            ("reject", "proposed", 8),
            ("retract", "fact", 11),
            ("restore", "rejected", 11),
        )
    },
    ("fact-list-fact-events", "GET"): Case(at("facts/{rejected}/events/"), messages=4),
    ("fact-list-fact-replies", "GET"): Case(at("facts/{fact}/replies/"), messages=6),
    ("identity-list", "GET"): Case(at("identities/"), messages=3),
    ("identity-list", "POST"): Case(
        at("identities/"),
        # One with a state before it.
        messages=9,
        body=lambda seed: {"channel": "slack", "native_id": f"U{uuid4()}"},
    ),
    ("identity-detail", "GET"): Case(at("identities/{identity}/"), messages=3),
    ("identity-link-identity", "PUT"): Case(
        at("identities/{identity}/link/"),
        messages=14,
        # Not theo: a person with an open erasure cannot be merged.
        body=lambda seed: {"user_id": "vera"},
    ),
    ("identity-link-identity", "DELETE"): Case(at("identities/{identity}/link/"), messages=9),
    ("session-list", "GET"): Case(at("sessions/"), messages=3),
    ("session-detail", "GET"): Case(at("sessions/{graph}/"), messages=4),
    ("session-detail", "DELETE"): Case(at("sessions/{graph}/"), messages=7),
    ("memory-search-memories", "POST"): Case(
        at("memories/search/"),
        messages=9,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "query": "What do I drink?",
            "include": ["messages", "facts"],
        },
    ),
    ("search", "GET"): Case(at(f"search/{OF_MARIA}&q=tea"), messages=11),
    ("models", "GET"): Case(template("/v1/models"), messages=3),
    ("model", "GET"): Case(template("/v1/models/{ada}"), messages=3),
    ("recall-event-list", "GET"): Case(at(f"recall-events/{OF_MARIA}"), messages=5),
    ("recall-event-detail", "GET"): Case(at("recall-events/{event.id}/"), messages=8),
    ("tool-call-list", "GET"): Case(at(f"tool-calls/{OF_MARIA}"), messages=4),
    ("tool-call-detail", "GET"): Case(at("tool-calls/{call}/"), messages=4),
    ("tool-call-decide-tool-call", "POST"): Case(
        at("tool-calls/{call}/decision/"), messages=8, body=lambda seed: {"approve": False}
    ),
    ("usage-get-usage-by-day", "GET"): Case(
        at("usage/days/?first=2026-01-01&last=2026-01-03"), messages=8
    ),
    ("usage-get-model-usage", "GET"): Case(at("usage/models/?agent={ada}"), messages=3),
    ("usage", "GET"): Case(at("usage/"), messages=11),
    ("user-list", "GET"): Case(at(f"users/{OF_MARIA}"), messages=4),
    ("user-list-timeline", "GET"): Case(at("users/maria/timeline/?agent={ada}"), messages=4),
    ("user-export-user", "GET"): Case(at("users/maria/export/"), messages=53),
    ("user-detail", "GET"): Case(at("users/maria/"), messages=3),
    ("user-detail", "PUT"): Case(
        at("users/vera/"), messages=5, body=lambda seed: {"time_zone": "Asia/Tokyo"}
    ),
    ("user-detail", "PATCH"): Case(
        at("users/vera/"), messages=5, body=lambda seed: {"metadata": {"plan": "gold"}}
    ),
    ("erasure-list", "GET"): Case(at("erasures/"), messages=5),
    ("erasure-list", "POST"): Case(
        at("erasures/"), messages=7, body=lambda seed: {"user_id": "maria", "agent": ada(seed)}
    ),
    ("erasure-list-affected-replies", "GET"): Case(
        at("erasures/replies/?user_id=maria"), messages=4
    ),
    ("erasure-detail", "GET"): Case(at("erasures/{erasure}/"), messages=4),
    ("history-import-list", "POST"): Case(
        at("imports/"), messages=6, body=lambda seed: {"file": "SGVsbG8=", "file_name": "a.txt"}
    ),
    ("history-import-detail", "GET"): Case(at("imports/{history_import}/"), messages=3),
    ("memory-tool", "POST"): Case(
        at("memory-tool/"),
        messages=4,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "input": {"command": "view", "path": "/memories"},
        },
    ),
    ("claude-code-hooks", "POST"): Case(
        at(f"claude-code/hooks/{OF_MARIA}"),
        messages=11,
        body=lambda seed: {
            "session_id": "s1",
            "hook_event_name": "UserPromptSubmit",
            "prompt": "Add a basket",
        },
    ),
    ("events", "GET"): Case(at("events/"), messages=6),
    ("language-model-list", "GET"): Case(at("language-models/"), messages=3),
    ("language-model-list", "POST"): Case(
        at("language-models/"),
        messages=10,
        body=lambda seed: {"name": "backup", "endpoint": "https://llm.invalid/v1"},
    ),
    ("language-model-detail", "GET"): Case(at("language-models/{language_model}/"), messages=3),
    ("language-model-detail", "PATCH"): Case(
        at("language-models/{language_model}/"), messages=8, body=lambda seed: {"position": 1}
    ),
    ("language-model-detail", "DELETE"): Case(at("language-models/{language_model}/"), messages=5),
    ("language-model-measure", "POST"): Case(_test_of_model, messages=5),
    ("webhook-list", "GET"): Case(at("webhooks/"), messages=3),
    ("webhook-list", "POST"): Case(
        at("webhooks/"), messages=5, body=lambda seed: {"url": "https://hooks.example.com/"}
    ),
    ("webhook-detail", "GET"): Case(at("webhooks/{webhook}/"), messages=3),
    ("webhook-detail", "PATCH"): Case(
        at("webhooks/{webhook}/"), messages=4, body=lambda seed: {"is_active": False}
    ),
    ("webhook-detail", "DELETE"): Case(at("webhooks/{webhook}/"), messages=9),
    ("webhook-rotate-secret", "POST"): Case(at("webhooks/{webhook}/secret/"), messages=6),
    ("webhook-delivery-list", "GET"): Case(at("webhook-deliveries/"), messages=3),
    ("webhook-delivery-detail", "GET"): Case(at("webhook-deliveries/{delivery}/"), messages=3),
    ("webhook-delivery-retry", "POST"): Case(
        at("webhook-deliveries/{delivery}/retry/"), messages=6
    ),
    ("window", "GET"): Case(at(f"windows/{OF_MARIA}"), messages=6),
    ("window", "DELETE"): Case(at(f"windows/{OF_MARIA}"), messages=5),
    **mem0_routes.CASES,
}


def routes() -> set[tuple[str, str]]:
    """Return every route below /api/v1/ and of the interfaces, with each method.

    Except /mcp, which has a tool for each operation: cases of tools are in
    tests/konstruct/interfaces/mcp/test_every_tool.py.
    """
    configured = ("konstruct.urls.api", "konstruct.urls.interfaces")
    return {
        (str(pattern.name), method)
        for urls in configured
        for path, pattern in patterns(get_resolver(urls))
        if path.startswith("v1/") or urls != configured[0]
        if not pattern.callback.__module__.startswith("konstruct.interfaces.mcp")
        for method in _methods(pattern)
    }


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern, path)
        else:
            yield path, pattern


def _methods(pattern: URLPattern) -> list[str]:
    view = getattr(pattern.callback, "cls", None)
    if view is None or not issubclass(view, ApiViewSet):
        return []  # it answers all callers alike, and reads no tenant
    return [name.upper() for name in pattern.callback.actions if name != "head"]
