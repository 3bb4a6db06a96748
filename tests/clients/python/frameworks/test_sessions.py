"""Sessions of OpenAI's Agents SDK and of Microsoft's Agent Framework on Konstruct, by HTTP."""

import asyncio
import json
import time
from typing import Any

import pytest
from konstruct_client import AsyncClient, KonstructError, errors

from tests.clients.python.conftest import bound_key, indexed
from tests.konstruct.conftest import Program

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

CALL = {
    "type": "function_call",
    "call_id": "c1",
    "name": "warmth",
    "arguments": '{"place":"Porto"}',
}


def scripted(seen: list[Any]) -> Any:
    """Return a model that calls a tool, and then repeats the result."""
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

    class Scripted(Model):
        async def get_response(
            self, system_instructions: Any, input: Any, *rest: Any, **more: Any
        ) -> ModelResponse:
            seen.append(input)
            last = input[-1]
            if last.get("type") == "function_call_output":
                text = {"type": "output_text", "text": last["output"], "annotations": []}
                message = ResponseOutputMessage(
                    id="m", role="assistant", status="completed", type="message",
                    content=[text],  # type: ignore[list-item]
                )  # fmt: skip
                return ModelResponse([message], Usage(), None)
            call = ResponseFunctionToolCall(**{**CALL, "call_id": f"c{len(seen)}"})
            return ModelResponse([call], Usage(), None)

        def stream_response(self, *args: Any, **more: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def test_run_of_an_agent_continues_from_its_session(
    url: str, program_a: Program, program_b: Program
) -> None:
    from agents import Agent, Runner, Session, SessionSettings, function_tool, set_tracing_disabled
    from konstruct_client.openai_agents import KonstructSession

    set_tracing_disabled(True)
    keys = bound_key(program_a, "maria"), program_b.key

    @function_tool
    def warmth(place: str) -> str:
        """Return the temperature."""
        return f"22 degrees in {place}, NUL \x00"

    async def run() -> None:
        async with AsyncClient(url, keys[0]) as a, AsyncClient(url, keys[1]) as b:
            for client in (a, b):
                seen: list[Any] = []
                agent = Agent("Ada", model=scripted(seen), tools=[warmth])
                session = KonstructSession("s1", client, agent="ada", user_id="maria")
                assert isinstance(session, Session)
                for question in ("How warm is it?", "And now?"):
                    result = await Runner.run(agent, question, session=session)
                    assert result.final_output == "22 degrees in Porto, NUL \x00"
                items = await session.get_items()
                assert [item.get("type") or item["role"] for item in items] == [
                    "user", "function_call", "function_call_output", "message",
                ] * 2  # fmt: skip
                # The last items sent to the model are stored completely.
                assert seen[-1] == items[:-1]
                assert await session.get_items(3) == items[-3:]
                assert await session.get_items(0) == []
                options: Any = {"client": client, "agent": "ada", "user_id": "maria"}
                short = KonstructSession("s1", **options, session_settings={"limit": 3})
                assert short.session_settings == SessionSettings(limit=3)
                assert await short.get_items() == items[-3:]
                with pytest.raises(TypeError, match="limitt"):
                    KonstructSession("s1", **options, session_settings={"limitt": 3})
                turns = client.conversations.transcript(agent="ada", user_id="maria")
                assert [turn["content"] async for turn in turns] == ["How warm is it?", "And now?"]
            other = KonstructSession("s1", a, agent="ada", user_id="bea")
            with pytest.raises(errors.OutsideOfKey):
                await other.get_items()
            await session.clear_session()
            assert await session.get_items() == []
            assert await session.pop_item() is None
            bound = KonstructSession("s1", a, agent="ada", user_id="maria")
            assert len(await bound.get_items()) == 8

    asyncio.run(run())


def test_concurrent_add_and_pop_return_each_item_once(url: str, program_a: Program) -> None:
    from konstruct_client.openai_agents import KonstructSession

    async def run() -> None:
        async with AsyncClient(url, program_a.key) as konstruct:
            session = KonstructSession("s1", konstruct, agent="ada", user_id="maria")
            added: list[Any] = [{"n": [writer, n]} for writer in range(6) for n in range(20)]
            await asyncio.gather(*(session.add_items(added[n : n + 20]) for n in range(0, 120, 20)))
            kept = await session.get_items()
            assert sorted(map(json.dumps, kept)) == sorted(map(json.dumps, added))
            popped = await asyncio.gather(*(session.pop_item() for _ in range(8)))
            assert sorted(map(json.dumps, popped)) == sorted(map(json.dumps, kept[-8:]))
            assert await session.get_items() == kept[:-8]

    asyncio.run(run())


def test_history_of_an_agent_is_complete_in_the_next_process(
    url: str, program_a: Program, program_b: Program
) -> None:
    from agent_framework import AgentResponse, AgentSession, Content, Message, SessionContext
    from konstruct_client.agent_framework import KonstructHistoryProvider

    keys = bound_key(program_a, "maria"), program_b.key
    call = Content.from_function_call("c1", "warmth", arguments={"place": "Porto"})
    result = Content.from_function_result("c1", result={"degrees": 22})
    answers = [
        Message("assistant", [call]), Message("tool", [result]), Message("assistant", ["22."]),
    ]  # fmt: skip

    async def run() -> None:
        async with AsyncClient(url, keys[0]) as a, AsyncClient(url, keys[1]) as b:
            for client in (a, b):
                history = KonstructHistoryProvider(client, agent="ada", user_id="maria")
                session = AgentSession(session_id="s1")
                weather_question = Message("user", ["How warm is it?"], author_name="Maria")
                context = SessionContext(session_id="s1", input_messages=[weather_question])
                context._response = AgentResponse(messages=answers)
                options: Any = {"agent": None, "session": session, "state": {}}
                await history.after_run(context=context, **options)
                again = KonstructHistoryProvider(client, agent="ada", user_id="maria")
                context = SessionContext(session_id="s1", input_messages=[])
                await again.before_run(context=context, **options)
                messages = [message.to_dict() for message in context.get_messages()]
                kept = [message.to_dict() for message in (weather_question, *answers)]
                assert [item | {"additional_properties": {}} for item in messages] == [
                    item | {"additional_properties": {}} for item in kept
                ]
                turns = client.conversations.transcript(agent="ada", user_id="maria")
                assert [turn["content"] async for turn in turns] == ["How warm is it?", "22."]
                place = {"agent": "ada", "user_id": "maria", "thread_id": "other"}
                item = {"item": {"role": "user", "content": "Hello"}}
                await client.conversations.add_items([item], **place)
                with pytest.raises(errors.KonstructError, match="session_id='other' has items"):
                    await history.get_messages("other")
            with pytest.raises(ValueError, match="belongs to a session"):
                await history.get_messages(None)

    asyncio.run(run())


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
