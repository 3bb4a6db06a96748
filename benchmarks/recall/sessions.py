"""Measure whether recall finds the session with the answer among long turns: LongMemEval.

    python -m benchmarks.recall.sessions --data longmemeval_dev.json.gz [--mode vector] [--json OUT]
    python -m benchmarks.recall.sessions --seed 1

Each question has a haystack of about fifty sessions. They are imported with the product as sessions
of one user, with their dates. Sessions are ranked by the best of their messages. R@k is the share
of the sessions with the answer among the first k; any@k, that one is; all@k, that all are; MRR is
the mean of 1 / rank over the sessions with the answer. Questions and sessions are read from a file,
which is not part of this repository, or composed (long_turns.py).
"""

import argparse
import gzip
import hashlib
import json
import statistics
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from benchmarks.recall.long_turns import long_turns
from benchmarks.tools.throwaway import set_up, throwaway_tenant

DEPTHS = (1, 3, 5)
TOP_K = 100


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="a LongMemEval file, gzipped JSON")
    source.add_argument("--seed", type=int, help="compose conversations of long turns by it")
    parser.add_argument("--mode", choices=["hybrid", "vector"], help="by default both")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    if options.data is None:
        data = long_turns(options.seed)
    elif options.data.is_file():
        data = json.loads(gzip.decompress(options.data.read_bytes()))
    else:
        parser.error(f"{options.data} is not there: the data is not part of this repository")
    set_up()
    report = {}
    with throwaway_tenant() as tenant_id:
        agent_id = uuid4()
        haystacks = {_user_of(question): question for question in data["questions"]}
        for question in haystacks.values():
            write(tenant_id, agent_id, question, data["sessions"])
        for mode in [options.mode] if options.mode else ["vector", "hybrid"]:
            report[mode] = measure(tenant_id, agent_id, data["questions"], mode)
            print(f"{mode:<8}", *(f"{name} {value:.3f}" for name, value in report[mode].items()))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def _user_of(question: dict[str, Any]) -> str:
    """Return the user of a haystack. Questions may share it."""
    ids = json.dumps(question["haystack_session_ids"])
    return hashlib.sha256(ids.encode()).hexdigest()[:32]


def write(
    tenant_id: UUID, agent_id: UUID, question: dict[str, Any], sessions: dict[str, Any]
) -> None:
    """Import the haystack of a question, and index it with the outbox."""
    from memory import indexing
    from memory.conversations.transcript import ImportedTurn, import_turns

    haystack = zip(question["haystack_session_ids"], question["haystack_dates"], strict=True)
    turns = [
        ImportedTurn(
            external_id=f"{session}-{place}",
            agent_id=agent_id,
            user_id=_user_of(question),
            thread_id=session,
            role=turn["role"],
            content=turn["content"],
            created_at=datetime.strptime(date, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
            + timedelta(minutes=place),
        )
        for session, date in haystack
        for place, turn in enumerate(sessions[session])
        if turn["content"].strip()
    ]
    import_turns(tenant_id, turns)
    while indexing.drain(tenant_id).more:
        pass


def measure(
    tenant_id: UUID, agent_id: UUID, questions: list[dict[str, Any]], mode: str
) -> dict[str, float]:
    """Ask every question. Return the means of the measures."""
    from memory.recall import recall
    from memory.recall.policy import RecallPolicy

    policy = RecallPolicy(mode="vector" if mode == "vector" else "hybrid", gate=False, top_k=TOP_K)
    rows = []
    for question in questions:
        hits = recall(
            tenant_id, agent_id, _user_of(question), question["question"], policy=policy
        ).hits
        ranked = list(dict.fromkeys(hit.thread_id for hit in hits))
        answers = set(question["answer_session_ids"])
        found = {k: len(answers.intersection(ranked[:k])) for k in DEPTHS}
        rows.append(
            {f"R@{k}": found[k] / len(answers) for k in DEPTHS}
            | {f"any@{k}": float(found[k] > 0) for k in DEPTHS}
            | {f"all@{k}": float(found[k] == len(answers)) for k in DEPTHS[1:]}
            | {
                "MRR": statistics.fmean(
                    1 / (ranked.index(answer) + 1) if answer in ranked else 0.0
                    for answer in answers
                )
            }
        )
    return {name: statistics.fmean(row[name] for row in rows) for name in rows[0]}


if __name__ == "__main__":
    main()
