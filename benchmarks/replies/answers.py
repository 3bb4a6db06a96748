"""Ask a language model questions about a short history, and judge its answers by rules.

    LLM_POOL_URL=http://127.0.0.1:8080/v1 LLM_MODEL=NAME LLM_TIMEOUT=1200 \\
        python -m benchmarks.replies.answers [--json OUT] [--only 1,4]

The history, the questions and the rules are in `benchmarks/tools/history.json`. Each question comes
from another user with the same history, in a new thread, and a follow-up after an exchange. The
prompt is that of the pipeline; its tokens are counted by the server, in brackets by cl100k_base.

To ask with the prompts of an earlier version, copy this file and `benchmarks/tools/history.*` into
a worktree of it, and run them there.
"""

import argparse
import json
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.tools.history import (
    HISTORY,
    USER,
    is_right,
    record_history,
    record_turns,
    store_facts,
)
from benchmarks.tools.throwaway import set_up, throwaway_tenant

MAX_ANSWER_TOKENS = 40


def main() -> None:
    """Ask the questions, and print the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write prompts and answers there")
    parser.add_argument("--only", help="numbers of questions, such as 1,4; by default all")
    arguments = parser.parse_args()
    only = {int(number) for number in (arguments.only or "").split(",") if number}
    set_up()
    with throwaway_tenant() as tenant_id:
        from tenants.context import tenant_scope

        with tenant_scope(tenant_id):
            report = run(tenant_id, only)
    for kind, asked in Counter(row["kind"] for row in report).items():
        right = sum(row["right"] for row in report if row["kind"] == kind)
        print(f"{kind}: {right} of {asked} right")
    means = [sum(row[name] for row in report) / len(report) for name in ("prompt_tokens", "cl100k")]
    print(f"{sum(row['right'] for row in report)} of {len(report)} right")
    print(f"{means[0]:.0f} ({means[1]:.0f}) tokens a prompt")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def run(tenant_id: UUID, only: set[int]) -> list[dict[str, Any]]:
    """Record the history, and ask the questions. Return prompts, answers and tokens."""
    from konstruct.orchestrator import agents, runner
    from konstruct.orchestrator.messages import KonstructMessage
    from konstruct.orchestrator.pipeline import respond
    from memory.context import tokens

    agent = agents.create_agent(
        tenant_id=tenant_id,
        name="Ada",
        system_prompt="You are Ada, the user's assistant. Answer in one short sentence.",
        model_tier="fast",
        max_completion_tokens=MAX_ANSWER_TOKENS,
    )
    report = []
    for number, question in enumerate(HISTORY["questions"], start=1):
        if only and number not in only:
            continue
        # The window has the turns of all threads of a user.
        user, thread = f"{USER}-{number}", f"question-{number}"
        record_history(tenant_id, agent.id, user_id=user)
        store_facts(tenant_id, agent.id, user)
        if before := question.get("before"):
            began = datetime.now(UTC) - timedelta(minutes=2)
            record_turns(tenant_id, agent.id, thread, before, began, user)
        message = KonstructMessage(
            id=UUID(int=number),
            tenant_id=tenant_id,
            agent_id=agent.id,
            user_id=user,
            thread_id=thread,
            channel="rest",
            content=question["text"],
        )
        prompt = respond.build_prompt(agent, respond.gather_context(message, agent))
        started = time.monotonic()
        completion = runner.complete(message, agent, prompt.messages)
        row = {
            "kind": question["kind"],
            "question": question["text"],
            "answer": completion.text,
            "right": is_right(question, completion.text),
            "seconds": round(time.monotonic() - started, 1),
            **(completion.usage or {}),
            "cl100k": tokens.count("\n".join(m["content"] for m in prompt.messages)),
            "prompt": prompt.messages,
        }
        report.append(row)
        print(
            f"{'right' if row['right'] else 'wrong'} | {row['question']} | {row['answer']}"
            f" | {row['prompt_tokens']} ({row['cl100k']}) tokens, {row['seconds']} s",
            flush=True,
        )
    return report


if __name__ == "__main__":
    main()
