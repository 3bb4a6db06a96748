"""LangChain's history and Agent Framework's context on Konstruct."""

import asyncio
import json

import pytest
from konstruct_client import AsyncClient, Client, errors
from konstruct_client.langchain import KonstructChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from tests.clients.python.conftest import bound_key, indexed
from tests.konstruct.conftest import Program

pytestmark = pytest.mark.long


def history(client: Client, user_id: str = "maria") -> KonstructChatMessageHistory:
    return KonstructChatMessageHistory(client, agent="ada", user_id=user_id, session_id="monday")


def texts(kept: KonstructChatMessageHistory) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in kept.messages]


@pytest.mark.django_db(transaction=True)
def test_a_history_of_each_user_in_each_tenant(
    url: str, program_a: Program, program_b: Program
) -> None:
    with (
        Client(url, program_a.key) as a,
        Client(url, program_b.key) as b,
        Client(url, bound_key(program_a, "maria")) as marias,
    ):
        for client, text in ((marias, "Yes."), (b, "Of b.")):
            history(client).add_messages([HumanMessage(text), AIMessage("Well?")])
        history(a).add_user_message("Yes.")
        history(a).add_user_message("Yes.")
        assert texts(history(a)) == texts(history(marias)) == [
            ("human", "Yes."), ("ai", "Well?"), ("human", "Yes."), ("human", "Yes."),
        ]  # fmt: skip
        assert texts(history(b)) == [("human", "Of b."), ("ai", "Well?")]
        for other in (ToolMessage("4", tool_call_id="1"), HumanMessage("")):
            with pytest.raises(ValueError, match="only texts"):
                history(a).add_messages([HumanMessage("lost"), other])
        assert len(texts(history(a))) == 4
        for use in (lambda: texts(history(marias, "bea")), history(marias).clear):
            with pytest.raises(errors.Forbidden):
                use()


@pytest.mark.django_db(transaction=True)
def test_history_stores_messages_and_returns_those_within_the_budget(
    url: str, program_a: Program, program_b: Program
) -> None:
    from agent_framework import AgentResponse, AgentSession, Message, SessionContext
    from konstruct_client.agent_framework import KonstructContextProvider

    keys = bound_key(program_a, "maria"), program_b.key

    def texts_of(context: SessionContext) -> str:
        return json.dumps([message.text for message in context.get_messages()])

    async def run() -> list[str]:
        async with AsyncClient(url, keys[0]) as a, AsyncClient(url, keys[1]) as b:
            found = []
            for client, city in ((a, "Porto"), (b, "Rome")):
                memory = KonstructContextProvider(client, agent="ada", user_id="maria")
                session = AgentSession(session_id="s1")
                messages = [Message("user", [f"My sister lives in {city}."])]
                context = SessionContext(session_id="s1", input_messages=messages)
                context._response = AgentResponse(messages=[Message("assistant", ["Nice."])])
                options = {"agent": None, "session": session, "state": {}}
                telling = KonstructContextProvider(client, agent="ada", user_id="maria", keep=False)
                await telling.after_run(context=context, **options)
                await memory.after_run(context=context, **options)
                turns = client.conversations.transcript(agent="ada", user_id="maria")
                assert [(turn["role"], turn["thread_id"]) async for turn in turns] == [
                    ("user", "s1"), ("assistant", "s1"),
                ]  # fmt: skip
                await client.facts.create(f"{city} is by a river.", agent="ada", user_id="maria")
                await indexed(client)
                question = [Message("user", ["Where does my sister live?"])]
                question_context = SessionContext(session_id="s2", input_messages=question)
                await memory.before_run(context=question_context, **options)
                found.append(texts_of(question_context))
            return found

    of_a, of_b = asyncio.run(run())
    assert "- Fact: Porto is by a river." in of_a
    assert "user: My sister lives in Porto." in of_a
    assert ("Rome" in of_a, "Porto" in of_b, "Rome" in of_b) == (False, False, True)
