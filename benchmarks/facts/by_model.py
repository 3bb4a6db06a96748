"""Extract facts from a short history by a language model, and print all of them.

    LLM_POOL_URL=http://127.0.0.1:8080/v1 LLM_MODEL=NAME LLM_TIMEOUT=1200 \\
        python -m benchmarks.facts.by_model [--json OUT] [--sessions 8]

The history and the facts that it holds are in `benchmarks/tools/history.json`. A fact of it is
found if an accepted fact matches the expressions of its subject and its value, in the session or a
later one. Whether an accepted fact is right, a person judges by reading.
"""

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.facts.harness import extract_all, make_agent
from benchmarks.tools.history import HISTORY, record_history
from benchmarks.tools.throwaway import set_up, throwaway_tenant


def main() -> None:
    """Extract the facts, and print them with the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the runs there")
    parser.add_argument("--sessions", type=int, default=8, help="only the first ones")
    arguments = parser.parse_args()
    set_up()
    with throwaway_tenant() as tenant_id:
        from tenants.context import tenant_scope

        with tenant_scope(tenant_id):
            report = run(tenant_id, arguments.sessions)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1, default=str) + "\n")


def run(tenant_id: UUID, sessions: int) -> list[dict[str, Any]]:
    """Extract the facts of the first sessions. Print them, and return the runs."""
    from konstruct.orchestrator.models import ExtractionRun

    agent_id = make_agent(tenant_id, "Ada", fact_review="doubtful", model_tier="fast")
    record_history(tenant_id, agent_id, sessions)
    extract_all()
    runs = list(ExtractionRun.objects.order_by("created_at"))
    refused: Counter[str] = Counter()
    facts = []
    for row in runs:
        refused.update(row.result.get("refused", {}))
        facts += [fact for fact in row.candidates if fact["outcome"] != "refused"]
        print(
            f"{row.thread_id}: {row.state} {row.result}, {row.prompt_tokens} tokens sent,"
            f" {row.completion_tokens} received. {row.error}"
        )
        for fact in row.candidates:
            named = ", ".join(str(fact.get(name, "")) for name in ("subject", "slot", "value"))
            print(f"  {fact['outcome']} | {named} | {fact['fact']} | {fact.get('review', '')}")
    wanted = [fact for fact in HISTORY["facts"] if fact["session"] <= sessions]
    missing = [fact["sentence"] for fact in wanted if not any(_is_found(fact, f) for f in facts)]
    print(f"refused: {dict(refused)}; missing: {missing}")
    print(
        f"{len(facts)} accepted, {sum(bool(fact['review']) for fact in facts)} of them to review;"
        f" {len(wanted) - len(missing)} of {len(wanted)} facts of the history found;"
        f" {sum('cut' in row.result for row in runs)} answers cut"
    )
    names = ("thread_id", "state", "error", "output", "prompt_tokens", "completion_tokens")
    return [{**{name: getattr(row, name) for name in names}, **row.result} for row in runs]


def _is_found(wanted: dict[str, Any], fact: dict[str, Any]) -> bool:
    subject, value = f"{fact['subject']} {fact['fact']}", f"{fact['value']} {fact['fact']}"
    return all(
        re.search(rf"\b(?:{rule})", text.casefold())
        for rule, text in ((wanted["subject"], subject), (wanted["value"], value))
    )


if __name__ == "__main__":
    main()
