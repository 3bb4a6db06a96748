"""Search in the messages of all people: by words and meaning, filtered, within the tenant."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from memory import indexing
from memory.browse import lists, search
from memory.browse.lists import last_of_threads
from memory.browse.search import MessageFilter, search_messages
from memory.indexing import drain
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.memory.conftest import AGENT

FEVER = "My little daughter has had a high fever since last night."
OTHERS = (
    "The invoice of March has not arrived yet.",
    "Which tram goes to the harbour on Sundays?",
    "We moved the meeting with the architect to Friday.",
    "I would like to order two more lamps for the office.",
    "How do I change my password?",
    "The concert was sold out within an hour.",
)


@pytest.fixture
def _messages(tenant_a: Tenant, add_message: Callable[..., Message]) -> None:
    add_message(tenant_a.id, FEVER, user_id="mother")
    for number, text in enumerate(OTHERS):
        add_message(tenant_a.id, text, user_id=f"person-{number}", agent_id=uuid4())
    drain(tenant_a.id)


def texts(tenant: Tenant, query: str, **narrowed: object) -> list[str]:
    with tenant_scope(tenant.id):
        found = search_messages(query, message_filter=MessageFilter(**narrowed)).hits  # type: ignore[arg-type]
    return [one.message.content for one in found]


@pytest.mark.usefixtures("_messages")
def test_a_message_with_the_words_is_above_others(tenant_a: Tenant) -> None:
    with tenant_scope(tenant_a.id):
        first, *rest = search_messages("ordering lamps").hits
    assert first.message.content == OTHERS[3]
    assert first.words == 1.0
    assert first.cosine is not None
    assert first.score == pytest.approx(first.cosine + search.WORDS_WEIGHT)
    assert all(hit.score < first.score for hit in rest)


@pytest.mark.usefixtures("_messages")
def test_filters_limit_the_search(tenant_a: Tenant) -> None:
    future = datetime(2999, 1, 1, tzinfo=UTC)
    assert texts(tenant_a, "fever", user_id="mother", agent_id=AGENT) == [FEVER]
    assert texts(tenant_a, "fever", channel="rest", until=future) == [FEVER]
    assert texts(tenant_a, "fever", user_id="person-1") == []
    assert texts(tenant_a, "fever", agent_id=UUID(int=1)) == []
    assert texts(tenant_a, "fever", channel="slack") == []
    assert texts(tenant_a, "fever", since=future) == []


def test_a_message_is_found_before_it_is_indexed(
    tenant_a: Tenant, add_message: Callable[..., Message]
) -> None:
    add_message(tenant_a.id, FEVER, user_id="mother")
    assert texts(tenant_a, "daughters fever") == [FEVER]
    assert texts(tenant_a, "daughters fever", user_id="another") == []
    assert texts(tenant_a, "sons fever") == []


@pytest.mark.usefixtures("_messages")
def test_search_of_another_tenant_finds_nothing(
    tenant_a: Tenant, tenant_b: Tenant, add_message: Callable[..., Message]
) -> None:
    add_message(tenant_b.id, "Our cat has a fever.", user_id="mother")
    drain(tenant_b.id)
    assert texts(tenant_b, "fever") == ["Our cat has a fever."]
    assert texts(tenant_a, "fever") == [FEVER]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("wir suchen eine schöne Wohnung mit einem Balkon", "Wohnungen"),
        ("mi hermana vive con dos gatas en la casa", "gata"),
        ("Мы купили новую книгу о море", "книги"),
        ("kediler bu ışıkta hiç uyumuyor", "KEDİ"),
        ("w domu jest nowe łóżko i szafa", "lozko"),
        ("اشتريتُ الكتابَ من هنا", "كتاب"),
        ("札幌の大学に通っています", "大学"),
        ("the wedding was in Lisbon", "weddings"),
    ],
)
def test_a_word_alone_finds_its_forms_in_any_language(
    tenant_a: Tenant, add_message: Callable[..., Message], said: str, asked: str
) -> None:
    message = add_message(tenant_a.id, said)
    add_message(tenant_a.id, "Something else was said in the meantime")
    for _ in range(2):  # before and after it is indexed
        with tenant_scope(tenant_a.id):
            first, *_rest = search_messages(asked).hits
        assert (first.message, first.words) == (message, 1.0)
        indexing.drain(tenant_a.id)


START = datetime(2026, 1, 1, tzinfo=UTC)
AGENTS = (uuid4(), uuid4())


@pytest.fixture
def add_exchange(tenant_a: Tenant) -> Callable[..., None]:
    """Store messages of one thread, a minute apart."""
    minute = 0

    def store(thread_id: str, *, number: int = 1, user_id: str = "maria", agent: int = 0) -> None:
        nonlocal minute
        for _ in range(number):
            minute += 1
            Message.objects.create(
                agent_id=AGENTS[agent],
                user_id=user_id,
                thread_id=thread_id,
                channel="rest",
                role="user",
                content=f"{thread_id} at {minute}",
                created_at=START + timedelta(minutes=minute),
            )

    with tenant_scope(tenant_a.id):
        return store


def listed(**narrowing: Any) -> list[tuple[UUID, str, str, str]]:
    """Return agent, user, thread and latest message of all threads."""
    rows = last_of_threads(Message.objects.all(), **narrowing).order_by("-created_at", "-number")
    return list(rows.values_list("agent_id", "user_id", "thread_id", "content"))


def expected(**conditions: Any) -> list[tuple[UUID, str, str, str]]:
    """Return the expected list, from all messages."""
    latest: dict[Any, str] = {}
    for message in Message.objects.filter(**conditions).order_by("-created_at", "-number"):
        thread = (message.agent_id, message.user_id, message.thread_id)
        latest.setdefault(thread, message.content)
    return [(*thread, content) for thread, content in latest.items()]


@pytest.mark.parametrize("walked", [1, 4, 1000])
def test_every_thread_is_listed_once_and_the_latest_first(
    tenant_a: Tenant,
    add_exchange: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    walked: int,
) -> None:
    monkeypatch.setattr(lists, "MAX_WALKED_THREADS", walked)
    with tenant_scope(tenant_a.id):
        for number in range(7):
            add_exchange(f"t{number}", user_id=("maria", "noa", "M1")[number % 3], agent=number % 2)
        add_exchange("long", number=30)
        add_exchange("t0")
        add_exchange("long", number=9, user_id="noa", agent=1)
        assert listed() == expected()
        assert len(expected()) == 9
        for users in (["maria", "M1"], ["noa"], ["nobody"]):
            found = listed(agent_ids=AGENTS, user_ids=users)
            assert found == expected(user_id__in=users)
        found = listed(agent_ids=AGENTS[1:], user_ids=["noa"])
        assert found == expected(agent_id=AGENTS[1], user_id="noa")
