"""Every route of the API with one real request for each of its methods.

Tests of all routes use these cases. A route without a case fails the suite.
"""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.urls import URLPattern, URLResolver, get_resolver

from konstruct.api.http.views import ApiView
from tests.konstruct.api.case import Case, ada
from tests.konstruct.api.seed_data import SeedData
from tests.konstruct.interfaces import mem0_routes

V1 = "/api/v1/"


def at(path: str, **query: Callable[[SeedData], Any]) -> Callable[[SeedData], str]:
    """Return a function that formats the address with ids of the fixture."""

    def address(seed: SeedData) -> str:
        parameters = {name: value(seed) for name, value in query.items()}
        return V1 + path + (f"?{urlencode(parameters)}" if parameters else "")

    return address


def maria(seed: SeedData) -> str:
    return "maria"


def graph(seed: SeedData) -> str:
    """Return the thread of a LangGraph graph. Its name is the tenant's own."""
    return f"graph-{ada(seed)}"


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


OF_MARIA = {"agent": ada, "user_id": maria}
T1 = {"thread_id": lambda seed: "t1"}
ITEMS = "conversations/items/"
RUNS = "extraction-runs/"

# By the name of the route and the method.
CASES: dict[tuple[str, str], Case] = {
    ("messages", "GET"): Case(at("messages/", **OF_MARIA), messages=4),
    ("messages", "POST"): Case(
        at("messages/"),
        messages=6,
        body=lambda seed: {"agent": ada(seed), "user_id": "maria", "content": "Hello"},
    ),
    ("message", "GET"): Case(lambda seed: f"{V1}messages/{seed.sent['id']}/", messages=4),
    ("message", "DELETE"): Case(lambda seed: f"{V1}messages/{seed.sent['id']}/", messages=6),
    ("exclusions", "GET"): Case(
        lambda seed: f"{V1}messages/{seed.excluded}/exclusions/", messages=4
    ),
    ("exclusions", "POST"): Case(
        lambda seed: f"{V1}messages/{seed.excluded}/exclusions/",
        messages=7,
        body=lambda seed: {"start": 5, "end": 6, "reason": "A joke."},
    ),
    ("exclusion", "DELETE"): Case(
        lambda seed: f"{V1}messages/{seed.excluded}/exclusions/{seed.exclusion}/", messages=8
    ),
    ("transcript", "DELETE"): Case(
        at("conversations/transcript/", **OF_MARIA, thread_id=lambda seed: "t1"), messages=5
    ),
    ("import", "POST"): Case(
        at("messages/import/"), messages=10, body=lambda seed: {"messages": [line(seed)]}
    ),
    ("agents", "GET"): Case(at("agents/"), messages=3),
    ("agents", "POST"): Case(
        at("agents/"), messages=15, body=lambda seed: {"name": f"new {uuid4().hex}"}
    ),
    ("agent", "GET"): Case(lambda seed: f"{V1}agents/{ada(seed)}/", messages=3),
    ("agent", "PATCH"): Case(
        lambda seed: f"{V1}agents/{ada(seed)}/", messages=17, body=lambda seed: {"persona": "Evil."}
    ),
    ("agent-versions", "GET"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/versions/", messages=4
    ),
    ("restore-agent", "POST"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/versions/1/restore/",
        messages=20,
        body=lambda seed: {},
    ),
    ("dry-runs", "POST"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/dry-runs/",
        messages=28,
        body=lambda seed: {"content": "Who are you?", "draft": {"persona": "Kind."}},
    ),
    ("questions", "GET"): Case(lambda seed: f"{V1}agents/{seed.other.pk}/questions/", messages=4),
    ("questions", "POST"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/questions/",
        messages=8,
        body=lambda seed: {"content": "Who are you?"},
    ),
    ("question", "GET"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/questions/{seed.question}/", messages=3
    ),
    ("question", "DELETE"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/questions/{seed.question}/", messages=6
    ),
    ("question-answers", "GET"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/questions/answers/", messages=4
    ),
    ("question-run", "GET"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/questions/run/", messages=5
    ),
    ("question-run", "POST"): Case(
        lambda seed: f"{V1}agents/{seed.other.pk}/questions/run/", messages=6
    ),
    ("conversations", "GET"): Case(at("conversations/", **OF_MARIA), messages=6),
    ("transcript", "GET"): Case(at("conversations/transcript/", **OF_MARIA), messages=3),
    ("conversation-items", "GET"): Case(at(ITEMS, **OF_MARIA, **T1), messages=4),
    ("conversation-items", "POST"): Case(
        at(ITEMS),
        messages=12,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "thread_id": "t1",
            "items": [{"item": {}, "said": {"role": "user", "content": "Hello"}}],
        },
    ),
    ("conversation-items", "DELETE"): Case(at(ITEMS, **OF_MARIA, **T1), messages=4),
    ("conversation-item", "DELETE"): Case(lambda seed: f"{V1}{ITEMS}{seed.item}/", messages=4),
    ("chat-completions", "POST"): Case(
        lambda seed: "/v1/chat/completions",
        messages=10,
        body=lambda seed: {
            "model": ada(seed),
            "user": "maria",
            "messages": [{"role": "user", "content": "Hello"}],
            "stream": True,
        },
    ),
    ("compile-context", "POST"): Case(
        at("context/compile/"),
        messages=10,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "thread_id": graph(seed),
            "task": "What do I drink?",
        },
    ),
    ("escalations", "GET"): Case(at("escalations/", **OF_MARIA), messages=4),
    ("escalations", "POST"): Case(
        at("escalations/"),
        messages=9,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "thread_id": "t1",
            "reason": "Help.",
        },
    ),
    ("escalation", "GET"): Case(lambda seed: f"{V1}escalations/{seed.escalation}/", messages=4),
    ("assignment", "PUT"): Case(
        lambda seed: f"{V1}escalations/{seed.escalation}/assignment/",
        messages=6,
        body=lambda seed: {"assigned_to": ""},
    ),
    ("resolution", "POST"): Case(
        lambda seed: f"{V1}escalations/{seed.escalation}/resolution/",
        messages=8,
        body=lambda seed: {"let_agent_answer": True},
    ),
    ("extraction-runs", "GET"): Case(at(RUNS, **OF_MARIA), messages=4),
    ("extraction-runs", "POST"): Case(
        at(RUNS),
        messages=14,
        body=lambda seed: {"agent": ada(seed), "user_id": "maria", "thread_id": "t1"},
    ),
    ("extraction-run", "GET"): Case(lambda seed: f"{V1}{RUNS}{seed.run}/", messages=4),
    ("apply-extraction-run", "POST"): Case(
        lambda seed: f"{V1}{RUNS}{seed.preview}/apply/", messages=12
    ),
    ("roll-back-extraction-run", "POST"): Case(
        lambda seed: f"{V1}{RUNS}{seed.run}/roll-back/", messages=22
    ),
    ("replay-extraction-run", "POST"): Case(
        lambda seed: f"{V1}{RUNS}{seed.run}/replay/", messages=13, body=lambda seed: {}
    ),
    ("compare-extraction-runs", "GET"): Case(
        lambda seed: f"{V1}{RUNS}{seed.run}/comparison/?other={seed.preview}", messages=4
    ),
    ("extractions", "GET"): Case(at("extractions/", **OF_MARIA), messages=4),
    ("retry-extraction", "POST"): Case(
        lambda seed: f"{V1}extractions/{seed.extraction}/retry/", messages=6
    ),
    ("facts", "GET"): Case(at("facts/", agent=ada, user_id=lambda seed: "vera"), messages=4),
    ("facts", "POST"): Case(
        at("facts/"),
        messages=11,
        body=lambda seed: {"agent": ada(seed), "user_id": "vera", "content": "Vera is tall."},
    ),
    ("fact-batch", "POST"): Case(
        at("facts/batch/"),
        messages=12,
        body=lambda seed: {
            "facts": [{"agent": ada(seed), "user_id": "vera", "content": "Vera is tall."}]
        },
    ),
    ("search-facts", "POST"): Case(
        at("facts/search/"),
        messages=5,
        body=lambda seed: {"agent": ada(seed), "user_id": "vera", "query": "What does Vera like?"},
    ),
    ("fact", "GET"): Case(lambda seed: f"{V1}facts/{seed.fact}/", messages=5),
    ("fact", "PATCH"): Case(
        lambda seed: f"{V1}facts/{seed.fact}/",
        messages=17,
        body=lambda seed: {"content": "Vera hates tea."},
    ),
    ("fact", "DELETE"): Case(lambda seed: f"{V1}facts/{seed.fact}/", messages=11),
    ("fact-history", "GET"): Case(lambda seed: f"{V1}facts/{seed.fact}/history/", messages=5),
    **{
        (f"{decision}-fact", "POST"): Case(
            lambda seed, decision=decision, fact=fact: (  # type: ignore[misc]
                f"{V1}facts/{getattr(seed, fact)}/{decision}/"
            ),
            messages=messages,
            body=lambda seed: {"reason": "Checked."},
        )
        for decision, fact, messages in (
            ("confirm", "proposed", 11),
            ("reject", "proposed", 8),
            ("retract", "fact", 9),
            ("restore", "rejected", 9),
        )
    },
    ("fact-events", "GET"): Case(lambda seed: f"{V1}facts/{seed.rejected}/events/", messages=4),
    ("fact-replies", "GET"): Case(lambda seed: f"{V1}facts/{seed.fact}/replies/", messages=6),
    ("identities", "GET"): Case(at("identities/"), messages=3),
    ("identities", "POST"): Case(
        at("identities/"),
        # One with a state before it.
        messages=9,
        body=lambda seed: {"channel": "slack", "native_id": f"U{uuid4()}"},
    ),
    ("identity", "GET"): Case(lambda seed: f"{V1}identities/{seed.identity}/", messages=3),
    ("identity-link", "PUT"): Case(
        lambda seed: f"{V1}identities/{seed.identity}/link/",
        messages=14,
        # Not theo: a person with an open erasure cannot be merged.
        body=lambda seed: {"user_id": "vera"},
    ),
    ("identity-link", "DELETE"): Case(
        lambda seed: f"{V1}identities/{seed.identity}/link/", messages=9
    ),
    ("sessions", "GET"): Case(at("sessions/"), messages=4),
    ("session", "GET"): Case(lambda seed: f"{V1}sessions/{graph(seed)}/", messages=6),
    ("session", "DELETE"): Case(lambda seed: f"{V1}sessions/{graph(seed)}/", messages=9),
    ("search-memories", "POST"): Case(
        at("memories/search/"),
        messages=8,
        body=lambda seed: {
            "agent": ada(seed),
            "user_id": "maria",
            "query": "What do I drink?",
            "include": ["messages", "facts"],
        },
    ),
    ("search-everything", "GET"): Case(
        at("search/", q=lambda seed: "tea", **OF_MARIA), messages=11
    ),
    ("models", "GET"): Case(lambda seed: "/v1/models", messages=3),
    ("model", "GET"): Case(lambda seed: f"/v1/models/{ada(seed)}", messages=3),
    ("recall-events", "GET"): Case(at("recall-events/", **OF_MARIA), messages=5),
    ("recall-event", "GET"): Case(lambda seed: f"{V1}recall-events/{seed.event.id}/", messages=5),
    ("tool-calls", "GET"): Case(at("tool-calls/", **OF_MARIA), messages=4),
    ("tool-call", "GET"): Case(lambda seed: f"{V1}tool-calls/{seed.call}/", messages=4),
    ("decision", "POST"): Case(
        lambda seed: f"{V1}tool-calls/{seed.call}/decision/",
        messages=8,
        body=lambda seed: {"approve": False},
    ),
    ("usage-by-day", "GET"): Case(
        at("usage/days/", first=lambda seed: "2026-01-01", last=lambda seed: "2026-01-03"),
        messages=8,
    ),
    ("model-usage", "GET"): Case(at("usage/models/", agent=ada), messages=3),
    ("usage", "GET"): Case(at("usage/"), messages=11),
    ("users", "GET"): Case(at("users/", **OF_MARIA), messages=4),
    ("timeline", "GET"): Case(at("users/maria/timeline/", agent=ada), messages=4),
    ("erasures", "GET"): Case(at("erasures/"), messages=5),
    ("erasures", "POST"): Case(
        at("erasures/"), messages=7, body=lambda seed: {"user_id": "maria", "agent": ada(seed)}
    ),
    ("erasure-replies", "GET"): Case(
        at("erasures/replies/", user_id=lambda seed: "maria"), messages=5
    ),
    ("erasure", "GET"): Case(lambda seed: f"{V1}erasures/{seed.erasure}/", messages=4),
    ("windows", "GET"): Case(at("windows/", **OF_MARIA), messages=5),
    ("windows", "DELETE"): Case(at("windows/", **OF_MARIA), messages=5),
    **mem0_routes.CASES,
}


# The lists, so that each has two rows or more.
LONG: dict[str, Callable[[SeedData], str]] = {
    "messages": at("messages/"),
    "agents": at("agents/"),
    "agent-versions": lambda seed: f"{V1}agents/{seed.other.pk}/versions/",
    "questions": lambda seed: f"{V1}agents/{seed.other.pk}/questions/",
    "question-answers": lambda seed: f"{V1}agents/{seed.other.pk}/questions/answers/",
    "conversations": at("conversations/"),
    "conversation-items": at(ITEMS, **OF_MARIA, **T1),
    "transcript": at("conversations/transcript/", agent=ada, user_id=lambda seed: "theo"),
    "escalations": at("escalations/"),
    "extraction-runs": at(RUNS),
    "extractions": at("extractions/"),
    "facts": at("facts/"),
    "fact-events": lambda seed: f"{V1}facts/{seed.rejected}/events/",
    "fact-history": lambda seed: f"{V1}facts/{seed.fact}/history/",
    "fact-replies": lambda seed: f"{V1}facts/{seed.fact}/replies/",
    "sessions": at("sessions/"),
    "identities": at("identities/"),
    "recall-events": at("recall-events/"),
    "tool-calls": at("tool-calls/"),
    "users": at("users/"),
    "timeline": at("users/maria/timeline/"),
    "erasures": at("erasures/"),
    "erasure-replies": at("erasures/replies/", user_id=lambda seed: "maria"),
    "exclusions": lambda seed: f"{V1}messages/{seed.excluded}/exclusions/",
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


def view_of(route: str) -> type[ApiView]:
    """Return the view of the route with this name."""
    views: list[type[ApiView]] = [
        pattern.callback.view_class
        for urls in ("konstruct.urls.api", "konstruct.urls.interfaces")
        for _, pattern in patterns(get_resolver(urls))
        if pattern.name == route
    ]
    return views[0]


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern, path)
        else:
            yield path, pattern


def _methods(pattern: URLPattern) -> list[str]:
    view = getattr(pattern.callback, "view_class", None)
    if view is None or not issubclass(view, ApiView):
        return []  # it answers all callers alike, and reads no tenant
    methods = (name for name in view.http_method_names if name != "options")
    return [name.upper() for name in methods if hasattr(view, name)]
