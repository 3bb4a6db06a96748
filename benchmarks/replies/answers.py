"""Ask a language model questions about a short history, and judge its answers by rules.

    LLM_POOL_URL=http://127.0.0.1:8080/v1 LLM_MODEL=NAME LLM_TIMEOUT=1200 \\
        python -m benchmarks.replies.answers [--json OUT] [--only 1,4]

The history, the questions and the rules are in `benchmarks/tools/history.json`. Each question is
the first message of a new thread, except one that follows up on an exchange. The prompt is that of
the pipeline, without facts; tokens are those that the server reports.
"""

import argparse
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.tools.history import HISTORY, USER, is_right, record_history, record_turns
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
    right, tokens = sum(row["right"] for row in report), [row["prompt_tokens"] for row in report]
    print(f"{right} of {len(report)} right, {sum(tokens) / len(tokens):.0f} tokens a prompt")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def run(tenant_id: UUID, only: set[int]) -> list[dict[str, Any]]:
    """Record the history, and ask the questions. Return prompts, answers and tokens."""
    from konstruct.orchestrator import agents, runner
    from konstruct.orchestrator.messages import KonstructMessage
    from konstruct.orchestrator.pipeline import respond

    agent = agents.create_agent(
        tenant_id=tenant_id,
        name="Ada",
        system_prompt="You are Ada, the user's assistant. Answer in one short sentence.",
        model_tier="fast",
        max_completion_tokens=MAX_ANSWER_TOKENS,
    )
    record_history(tenant_id, agent.id)
    report = []
    for number, question in enumerate(HISTORY["questions"], start=1):
        if only and number not in only:
            continue
        thread = f"question-{number}"
        if before := question.get("before"):
            began = datetime.now(UTC) - timedelta(minutes=2)
            record_turns(tenant_id, agent.id, thread, before, began)
        message = KonstructMessage(
            id=UUID(int=number),
            tenant_id=tenant_id,
            agent_id=agent.id,
            user_id=USER,
            thread_id=thread,
            channel="rest",
            content=question["text"],
        )
        prompt = respond.build_prompt(agent, respond.gather_context(message, agent))
        started = time.monotonic()
        completion = runner.complete(message, agent, prompt.messages)
        row = {
            "question": question["text"],
            "answer": completion.text,
            "right": is_right(question, completion.text),
            "seconds": round(time.monotonic() - started, 1),
            **(completion.usage or {}),
            "prompt": prompt.messages,
        }
        report.append(row)
        print(
            f"{'right' if row['right'] else 'wrong'} | {row['question']} | {row['answer']}"
            f" | {row['prompt_tokens']} tokens, {row['seconds']} s",
            flush=True,
        )
    return report


if __name__ == "__main__":
    main()
