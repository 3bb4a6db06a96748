"""A manager works with any memory and any session store with the documented methods."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from memory.context import ContextManager, LongTermMemory, manager as managers
from tests.memory.conftest import AGENT, USER

TENANT = UUID(int=7)


@dataclass
class Entry:
    """An entry without a search score."""

    content: str


@dataclass
class Rated(Entry):
    score: float = 0.0


@dataclass
class PlainMemory:
    """A memory with the four documented parameters."""

    entries: list[Any]
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def search(
        self, tenant_id: Any, query: Any, limit: int = 10, agent_id: Any = None
    ) -> list[Any]:
        self.calls.append((tenant_id, query, limit, agent_id))
        return self.entries[:limit]

    def __len__(self) -> int:
        """An empty container is false, and must be used nevertheless."""
        return 0


class PlainSessions:
    """A session store of another kind."""

    def get_session_messages(self, thread_id: str, limit: int = 50) -> list[dict[str, str]]:
        return [
            {"role": "user", "content": f"Hello from {thread_id}"},
            {"role": "assistant", "content": "Hi."},
        ]

    def __len__(self) -> int:
        return 0


@pytest.fixture
def _no_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a text is embedded for a memory that searches by text."""

    def refuse(texts: list[str], **_: Any) -> Any:
        raise AssertionError(texts)

    monkeypatch.setattr(managers.embeddings, "embed", refuse)


@pytest.mark.usefixtures("_no_embedding")
@pytest.mark.parametrize(
    "entries",
    [
        [Entry("Ann likes tea."), Entry("Ann hates rye.")],
        [Rated("Ann likes tea.", 0.9), Rated("Ann hates rye.", 0.2)],
        [Rated("Ann likes tea.", 0.9), Entry("Ann hates rye.")],
        [{"content": "Ann likes tea."}, {"content": "Ann hates rye.", "score": 0.1}],
        ["Ann likes tea.", "Ann hates rye."],
    ],
)
def test_entries_may_lack_a_score(entries: list[Any]) -> None:
    memory = PlainMemory(entries)
    compiled = ContextManager(PlainSessions(), memory).compile_working_context(
        TENANT, "t1", {"description": "What does Ann drink?", "budget": 5}, "You are kind."
    )
    assert compiled["context"] == "- Fact: Ann likes tea.\n- Fact: Ann hates rye."
    assert [turn["content"] for turn in compiled["messages"]] == ["Hello from t1", "Hi."]
    assert memory.calls == [(TENANT, "What does Ann drink?", 10, None)]


@pytest.mark.usefixtures("_no_embedding")
def test_facts_below_the_floor_are_left_out_and_those_without_a_score_are_not() -> None:
    memory = PlainMemory([Rated("a", 0.1), Entry("b"), Rated("c", 0.6), Rated("d", -0.2)])
    manager = ContextManager(None, memory, fact_floor=0.5)
    gathered = manager.gather(TENANT, "t1", "What?", agent_id=AGENT)
    assert [fact.content for fact in gathered.facts] == ["b", "c"]
    assert [fact.content for fact in gathered.below_floor] == ["a", "d"]
    trace = manager.fit(gathered, "You are kind.").trace()
    assert [(fact["content"], fact["reason"], fact["memory_id"]) for fact in trace["facts"]] == [
        ("b", "", None),
        ("c", "", None),
        ("a", "below the floor", None),
        ("d", "below the floor", None),
    ]
    assert memory.calls == [(TENANT, "What?", 10, AGENT)]


@pytest.mark.usefixtures("_no_embedding")
@pytest.mark.django_db
def test_memory_with_users_gets_the_user_of_the_facts() -> None:
    calls: list[dict[str, Any]] = []

    class OfUsers:
        def search(
            self, tenant_id: Any, query: str, limit: int, agent_id: Any, user_id: Any = None
        ) -> list[Any]:
            calls.append({"query": query, "user_id": user_id})
            return []

    manager = ContextManager(None, OfUsers())
    manager.gather(TENANT, "t1", "What?", user_id=USER)
    manager.gather(TENANT, "t1", "What?")
    assert calls == [{"query": "What?", "user_id": USER}, {"query": "What?", "user_id": None}]


def test_built_in_memory_embeds_the_text_once(
    tenant_a: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[Any] = []
    embedded: list[list[str]] = []
    search, embed = LongTermMemory.search, managers.embeddings.embed

    def spy(self: Any, tenant_id: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        queries.append(query)
        return search(self, tenant_id, query, *args, **kwargs)

    def counted(texts: list[str], **arguments: Any) -> Any:
        embedded.append(texts)
        return embed(texts, **arguments)

    monkeypatch.setattr(LongTermMemory, "search", spy)
    monkeypatch.setattr(managers.embeddings, "embed", counted)
    monkeypatch.setattr("memory.facts.service.embed", counted)
    manager = ContextManager()
    manager.compile_working_context(
        tenant_a.id, "t1", "What does Ann drink?", "", agent_id=AGENT, user_id=USER
    )
    assert (queries, embedded) == (["What does Ann drink?"], [["What does Ann drink?"]])
