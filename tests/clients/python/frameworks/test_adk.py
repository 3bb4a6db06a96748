"""Google ADK's memory service on Konstruct."""

import asyncio
import time
from typing import Any

import pytest
from konstruct_client import AsyncClient, KonstructError, errors

from tests.clients.python.conftest import bound_key, indexed
from tests.konstruct.conftest import Program

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


def session(adk: Any, key: str, user_id: str, *turns: tuple[str, str]) -> Any:
    events = [
        adk.Event(
            id=f"{key}-{number}",
            author=author,
            timestamp=time.time() - 60 + number,
            content=adk.types.Content(parts=[adk.types.Part(text=text)] if text else []),
        )
        for number, (author, text) in enumerate(turns)
    ]
    return adk.Session(id=key, app_name="ada", user_id=user_id, events=events)


def texts(found: Any) -> list[str]:
    return [memory.content.parts[0].text for memory in found.memories]


def test_sessions_are_remembered_and_searched(url: str, program_a: Program) -> None:
    from konstruct_client import adk

    async def talk() -> None:
        async with AsyncClient(url, program_a.key) as konstruct:
            service = adk.KonstructMemoryService(konstruct)
            scope = {"app_name": "ada", "user_id": "maria"}
            dialogue = [("user", "I sold the piano to my sister."), ("ada", "To your sister?")]
            await service.add_session_to_memory(
                session(adk, "s1", "maria", *dialogue, ("tool", ""))
            )
            grown = session(adk, "s1", "maria", *dialogue, ("user", "Ana lives in Porto."))
            await service.add_session_to_memory(grown)
            turns = [
                (turn["role"], turn["name"], turn["content"], turn["thread_id"])
                async for turn in konstruct.conversations.transcript(agent="ada", user_id="maria")
            ]
            assert turns == [
                ("user", "user", "I sold the piano to my sister.", "s1"),
                ("assistant", "ada", "To your sister?", "s1"),
                ("user", "user", "Ana lives in Porto.", "s1"),
            ]
            nuts = adk.types.Content(parts=[adk.types.Part(text="Maria must not eat walnuts.")])
            entry = adk.MemoryEntry(content=nuts, custom_metadata={"topic": "health"})
            await service.add_memory(**scope, memories=[entry])
            await indexed(konstruct)
            found = await service.search_memory(**scope, query="Who has the piano?")
            assert "I sold the piano to my sister." in texts(found)
            (fact,) = [memory for memory in found.memories if memory.author is None]
            message = found.memories[-1]
            await service.delete_memory(**scope, memory_id=fact.id)
            await service.delete_memory(**scope, memory_id=fact.id)
            found = await service.search_memory(**scope, query="What must she not eat?")
            assert "Maria must not eat walnuts." not in texts(found)
            with pytest.raises(NotImplementedError, match="erasure"):
                await service.delete_memory(**scope, memory_id=message.id)
            long = session(adk, "s3", "maria", ("user", "Hi"), ("ada", "x" * 32_769))
            with pytest.raises(KonstructError, match=r"1 of 2 messages .* at 1: "):
                await service.add_session_to_memory(long)
            lost = session(adk, "s2", "maria", ("user", "Hi")).model_copy()
            lost.app_name = "nobody"
            with pytest.raises(errors.UnknownAgent, match="nobody"):
                await service.add_session_to_memory(lost)

    asyncio.run(talk())


def test_tenants_and_users_are_separate(url: str, program_a: Program, program_b: Program) -> None:
    from konstruct_client import adk

    keys = program_a.key, program_b.key, bound_key(program_a, "maria")

    async def talk() -> None:
        async with (
            AsyncClient(url, keys[0]) as a,
            AsyncClient(url, keys[1]) as b,
            AsyncClient(url, keys[2]) as marias,
        ):
            of_a, of_b, bound = (adk.KonstructMemoryService(key) for key in (a, b, marias))
            await bound.add_session_to_memory(session(adk, "s", "maria", ("user", "Cats of a.")))
            await of_b.add_session_to_memory(session(adk, "s", "maria", ("user", "Cats of b.")))
            await of_a.add_session_to_memory(session(adk, "s", "bea", ("user", "Cats of bea.")))
            for client in (a, b):
                await indexed(client)
            scope = {"app_name": "ada", "user_id": "maria", "query": "Whose cats?"}
            found = [texts(await service.search_memory(**scope)) for service in (of_a, of_b, bound)]
            assert found == [["Cats of a."], ["Cats of b."], ["Cats of a."]]
            for about in (
                bound.search_memory(app_name="ada", user_id="bea", query="Whose cats?"),
                bound.add_session_to_memory(session(adk, "t", "bea", ("user", "No."))),
            ):
                with pytest.raises((errors.OutsideOfKey, KonstructError)):
                    await about

    asyncio.run(talk())
