"""A LangGraph agent with Konstruct's memory: its sessions, facts, and all that was ever said to it.

    python docs/examples/langgraph_agent.py TENANT AGENT USER THREAD "What the user says"

Every call is a process of its own; what it knows of the calls before is memory.
"""

import os
import sys
from pathlib import Path
from typing import Any

import django

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
django.setup()

from langchain_core.messages import AIMessage, HumanMessage  # noqa: E402
from langchain_core.runnables import RunnableConfig  # noqa: E402
from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: E402

from konstruct.orchestrator.agents import find_agent  # noqa: E402
from konstruct.orchestrator.builder import date_clause, system_prompt_with  # noqa: E402
from konstruct.orchestrator.models import Agent  # noqa: E402
from konstruct.orchestrator.runner import run_agent  # noqa: E402
from memory.context import ContextManager, LongTermMemory, SessionStore, WorkingContextCompiler  # noqa: E402
from memory.context.working import chat_messages  # noqa: E402
from memory.conversations.transcript import record_message  # noqa: E402
from memory.indexing import drain  # noqa: E402
from tenants.context import tenant_scope  # noqa: E402
from tenants.models import Tenant  # noqa: E402


def build_graph(tenant: Tenant, agent: Agent, user_id: str) -> Any:
    """Compile a graph whose sessions, facts and recall are the tenant's."""
    sessions = SessionStore(tenant.id)
    manager = ContextManager(sessions, LongTermMemory(), WorkingContextCompiler())

    def learn(state: MessagesState) -> dict[str, Any]:
        """Keep a fact, where the user says so."""
        command, _, fact = str(state["messages"][-1].content).partition(":")
        if command.lower() == "remember":
            manager.store_memory(tenant.id, fact.strip(), agent_id=agent.id, user_id=user_id)
        return {}

    def answer(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        """Ask the model, with the session and what memory has on the question."""
        *earlier, question = state["messages"]
        compiled = manager.compile_working_context(
            tenant.id,
            config["configurable"]["thread_id"],
            str(question.content),
            system_prompt_with(agent, [date_clause()]),
            agent.model_tier,
            agent_id=agent.id,
            user_id=user_id,
            session_messages=earlier,
        )
        return {"messages": [AIMessage(run_agent(question, agent, chat_messages(compiled)))]}

    def record(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        """Write both turns down, so that they are recalled in every thread. Safe to run twice."""
        said, replied = state["messages"][-2:]
        turn = {
            "tenant_id": tenant.id,
            "agent_id": agent.id,
            "user_id": user_id,
            "thread_id": config["configurable"]["thread_id"],
            "channel": "langgraph",
        }
        message, _ = record_message(
            **turn, role="user", content=str(said.content), idempotency_key=said.id
        )
        record_message(
            **turn, role="assistant", content=str(replied.content), in_reply_to=message.id
        )
        return {}

    return (
        StateGraph(MessagesState)
        .add_node("learn", learn)
        .add_node("answer", answer)
        .add_node("record", record)
        .add_edge(START, "learn")
        .add_edge("learn", "answer")
        .add_edge("answer", "record")
        .add_edge("record", END)
        .compile(checkpointer=sessions.checkpointer)
    )


def main() -> None:
    """Say one thing to the agent, and print what it answers."""
    slug, agent_name, user_id, thread_id, text = sys.argv[1:]
    tenant = Tenant.objects.get(slug=slug)
    with tenant_scope(tenant.id):
        graph = build_graph(tenant, find_agent(agent_name), user_id)
        state = graph.invoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread_id}}
        )
        print(state["messages"][-1].content)
        # Beside `make run` a worker embeds what was recorded; here nobody else would.
        drain(tenant.id)


if __name__ == "__main__":
    main()
