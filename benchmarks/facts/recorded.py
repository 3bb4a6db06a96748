"""Measure the extraction with recorded answers of a language model about LoCoMo's dialogues.

    python -m benchmarks.facts.recorded --data locomo10.json --facts FACTS.jsonl [--dialogues 0-3]
        [--json OUT]

FACTS.jsonl has a line for each session: {"dialogue", "session", "facts"}. An HTTP server returns it
when the product extracts the session. The dialogues are imported as conversations of one user with
an agent. The questions are asked before and after the extraction. Then the extraction runs again
over the same messages, a message and a person are erased, and a dump is searched for their data.
"""

import argparse
import json
import math
import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.facts.harness import dump, extract_all, make_agent, operate
from benchmarks.facts.model_server import Session, read_recordings, serving
from benchmarks.facts.recall_with_facts import negatives
from benchmarks.recall.quality import DEPTHS, Scope, embed_questions, import_dialogues, quality
from benchmarks.tools.locomo import Dialogue, numbers, read_dialogues
from benchmarks.tools.throwaway import set_up, throwaway_tenant

SETTINGS = {"fact_review": "none", "extraction_batch_size": 40}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--facts", type=Path, required=True, help="recorded facts of it")
    parser.add_argument("--dialogues", type=numbers, help="such as 0-3; by default all")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    dialogues, sessions = read(arguments.data, arguments.facts, arguments.dialogues)
    set_up()
    with throwaway_tenant() as tenant_id:
        from tenants.context import tenant_scope

        with tenant_scope(tenant_id):
            agent_id = make_agent(tenant_id, "recorded", **SETTINGS)
            scopes = [
                Scope(dialogue, agent_id, f"locomo-{dialogue.number}") for dialogue in dialogues
            ]
            report = run(tenant_id, scopes, sessions)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2, default=str) + "\n")


def read(data: Path, facts: Path, of: range | None) -> tuple[list[Dialogue], list[Session]]:
    """Return the dialogues, and the recorded answers for their sessions."""
    dialogues = read_dialogues(data, of)
    texts: dict[tuple[int, str], dict[str, str]] = {}
    for dialogue in dialogues:
        for turn in dialogue.turns:
            texts.setdefault((dialogue.number, turn.session), {})[turn.id] = turn.content
    return dialogues, read_recordings(facts, texts)


def run(tenant_id: UUID, scopes: list[Scope], sessions: list[Session]) -> dict[str, Any]:
    """Import, ask, extract, ask again, extract again, erase. Print and return the figures."""
    report: dict[str, Any] = {"import": import_dialogues(tenant_id, scopes)}
    vectors = embed_questions(scopes)
    report["without facts"] = ask(tenant_id, scopes, vectors)
    with serving(sessions) as served:
        enqueue(tenant_id, scopes)
        extract_all(_in_order)
        report["extraction"] = extraction(scopes, sessions) | {"calls": served.requests.value}
        report["with facts"] = ask(tenant_id, scopes, vectors)
        report["reviewed"] = reviewed(scopes[0].agent_id)
        before = rows()
        enqueue(tenant_id, scopes, again=True)
        runs = extract_all(_in_order)
        report["second run"] = {"runs": runs, "changed rows": changes(before, rows())}
        report["requests about no session"] = served.unknown.value
    report["erasure"] = erase(tenant_id, scopes)
    for name, figures in report.items():
        print(f"{name}: {json.dumps(figures, default=str)}")
    return report


def _in_order(cursor: Any) -> tuple[str, int]:
    return cursor.user_id, int(cursor.thread_id.removeprefix("session_"))


def enqueue(tenant_id: UUID, scopes: list[Scope], *, again: bool = False) -> None:
    """Enqueue the extraction of all sessions. With `again`, from their first messages."""
    from konstruct.orchestrator.extraction import runs
    from konstruct.orchestrator.messages import Thread
    from konstruct.orchestrator.models import ExtractionCursor
    from tenants import transaction

    if again:
        ExtractionCursor.objects.update(last_number=0)
    threads = {
        Thread(scope.agent_id, scope.user_id, turn.session)
        for scope in scopes
        for turn in scope.dialogue.turns
    }
    with transaction.atomic():
        runs.enqueue(tenant_id, threads)


def extraction(scopes: list[Scope], sessions: list[Session]) -> dict[str, Any]:
    """Return outcomes of the candidates, costs, and the share of the evidence that facts cite."""
    from konstruct.orchestrator.models import ExtractionRun, ModelCall
    from memory.models import FactEvidence, FactState, MemoryEntry

    outcomes: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    superseded = 0
    for run in ExtractionRun.objects.all():
        for candidate in run.candidates:
            outcomes[candidate["outcome"]] += 1
            if candidate["outcome"] == "refused":
                refused[candidate["reason"]] += 1
            superseded += bool(candidate.get("superseded"))
    cited = set(
        FactEvidence.objects.filter(
            memory__in=MemoryEntry.objects.filter(state=FactState.ACTIVE)
        ).values_list("memory__user_id", "message__external_id")
    )
    shares = [
        statistics.fmean((scope.user_id, message_id) in cited for message_id in question.evidence)
        for scope in scopes
        for question in scope.dialogue.questions
    ]
    messages = sum(len(scope.dialogue.turns) for scope in scopes)
    calls = list(ModelCall.objects.all())
    spent = [sum(call.prompt_tokens for call in calls), sum(c.completion_tokens for c in calls)]
    return {
        "recorded facts": sum(len(session.facts) for session in sessions),
        "named as superseded": sum(
            bool(fact["supersedes"]) for session in sessions for fact in session.facts
        ),
        "outcomes": dict(outcomes.most_common()),
        "refused": dict(refused.most_common()),
        "superseded": superseded,
        "facts by state": dict(
            Counter(MemoryEntry.objects.entries().values_list("state", flat=True))
        ),
        "evidence of questions cited by active facts": statistics.fmean(shares),
        "missed": 1 - statistics.fmean(shares),
        "messages": messages,
        "runs": ExtractionRun.objects.count(),
        "failed runs": ExtractionRun.objects.filter(state="failed").count(),
        "calls per message": len(calls) / messages,
        "tokens per message": [tokens / messages for tokens in spent],
        "one call per message": one_call_per_message(),
    }


def one_call_per_message(sample: int = 20) -> dict[str, float]:
    """Return the prompt tokens if each message had its own call with the same instructions.

    Each prompt has the six messages before it and a hundred known facts, as in a run. The mean is
    of a sample of messages.
    """
    from konstruct.orchestrator import runner
    from konstruct.orchestrator.extraction.fact_requests import Batch, known_facts
    from konstruct.orchestrator.extraction.runs import MAX_CONTEXT_MESSAGES
    from konstruct.orchestrator.messages import Thread
    from konstruct.orchestrator.models import Agent, ExtractionRun
    from memory.models import Message

    tokens = []
    for run in ExtractionRun.objects.order_by("created_at"):
        thread = Thread(run.agent_id, run.user_id, run.thread_id)
        messages = list(Message.objects.filter(pk__in=run.message_ids).order_by("number"))
        agent, known = (
            Agent.objects.get(pk=run.agent_id),
            known_facts(thread.agent_id, thread.user_id),
        )
        for end in range(1, len(messages) + 1, sample):
            batch = Batch(
                agent, thread, messages[max(0, end - 1 - MAX_CONTEXT_MESSAGES) : end], known
            )
            tokens.append(runner.estimated_tokens(batch.prompt))
    return {"calls per message": 1.0, "prompt tokens per message": statistics.fmean(tokens)}


def ask(tenant_id: UUID, scopes: list[Scope], vectors: dict[str, Any]) -> dict[str, float]:
    """Ask every question. Return recall and the content of the prompts."""
    from memory.context import ContextManager
    from memory.context.tokens import count
    from memory.models import Message
    from memory.recall import recall
    from memory.recall.policy import DEFAULT_POLICY

    deep = replace(DEFAULT_POLICY, gate=False, top_k=max(DEPTHS))
    found, prompts, opened = [], [], []
    for scope in scopes:
        named: dict[str, Any] = {"agent_id": scope.agent_id, "user_id": scope.user_id}
        ids = dict(Message.objects.filter(**named).values_list("id", "external_id"))
        for question in scope.dialogue.questions:
            vector = vectors[question.text]
            arguments = (tenant_id, scope.agent_id, scope.user_id, question.text)
            found.append((question, recall(*arguments, policy=deep, query_embedding=vector)))
            gathered = ContextManager().gather(
                tenant_id, "benchmark", question.text, session_messages=[], **named
            )
            result = gathered.recalled
            included = {hit.message_id for hit in result.hits} if result else set()
            included |= {message_id for fact in gathered.facts for message_id in fact.message_ids}
            evidence = {
                ids[message_id] for message_id in included if message_id in ids
            } & question.evidence
            prompts.append(
                {
                    "evidence in the prompt": len(evidence) / len(question.evidence),
                    "memories given": len(gathered.lines),
                    "tokens given": count("\n".join(gathered.lines)),
                }
            )
        for text in negatives(scopes, scope.dialogue):
            arguments = (tenant_id, scope.agent_id, scope.user_id, text)
            opened.append(bool(recall(*arguments, query_embedding=vectors[text]).hits))
    measured = quality(found)
    return {name: measured[name] for name in ("R@1", "R@5", "R@10")} | {
        "hard negatives": statistics.fmean(opened) if opened else math.nan,
        **{name: statistics.fmean(row[name] for row in prompts) for name in prompts[0]},
    }


def reviewed(agent_id: UUID) -> dict[str, int]:
    """Count the accepted candidates that the default rule would send to a review, by reason.

    The stored answers are checked again, without a request to the model and without a change.
    """
    from konstruct.orchestrator.extraction.checks import ReviewPolicy, check_candidates
    from konstruct.orchestrator.extraction.fact_requests import Batch, parse
    from konstruct.orchestrator.messages import Thread
    from konstruct.orchestrator.models import Agent, ExtractionRun
    from memory.models import Message

    agent = Agent.objects.get(pk=agent_id)
    reasons: Counter[str] = Counter()
    for run in ExtractionRun.objects.exclude(output=""):
        messages = list(Message.objects.filter(pk__in=run.message_ids).order_by("number"))
        thread = Thread(run.agent_id, run.user_id, run.thread_id)
        accepted, _ = check_candidates(
            parse(run.output)[0],
            sources=Batch(agent, thread, messages, ()).sources,
            policy=ReviewPolicy(),
        )
        reasons.update(fact.review or "none" for fact in accepted)
    return dict(reasons.most_common())


def rows() -> dict[str, list[Any]]:
    """Return the rows of facts, their evidence and events."""
    from memory.models import FactEvent, FactEvidence, MemoryEntry

    tables: dict[str, Any] = {
        "facts": MemoryEntry.objects.defer("embedding"),
        "evidence": FactEvidence.objects.all(),
        "events": FactEvent.objects.all(),
    }
    return {
        name: sorted(
            str({key: value for key, value in row.items() if key != "embedding"})
            for row in query.values()
        )
        for name, query in tables.items()
    }


def changes(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> dict[str, int]:
    """Count the rows of each table that are new, changed or deleted."""
    return {name: len(set(before[name]) ^ set(after[name])) for name in before}


def erase(tenant_id: UUID, scopes: list[Scope]) -> dict[str, Any]:
    """Erase a message with several facts, then a person. Return what is left of both."""
    from django.db.models import Count

    from konstruct.orchestrator.identities.erasure_requests import request_message_erasure
    from konstruct.orchestrator.models import ExtractionRun
    from memory.models import FactEvidence, MemoryEntry, Message
    from tenants.audit.access_log import Actor
    from tenants.models import Tenant
    from tenants.naming import schema_name_of

    slug = Tenant.objects.get(pk=tenant_id).slug
    schema = schema_name_of(tenant_id)
    cited = FactEvidence.objects.values("message_id").annotate(facts=Count("memory"))
    message = Message.objects.get(pk=cited.order_by("-facts", "message_id")[0]["message_id"])
    of_message = FactEvidence.objects.filter(message=message)
    alone = [
        fact
        for fact in MemoryEntry.objects.filter(pk__in=of_message.values("memory_id"))
        if not fact.evidence.exclude(message=message).exists()
    ]
    request_message_erasure(
        agent_id=message.agent_id,
        user_id=message.user_id,
        thread_id=message.thread_id,
        message_id=message.id,
        by=Actor.operator("benchmark"),
    )
    quotes = [message.content[:60], *(fact.content[:60] for fact in alone)]
    before = dump(schema)
    operate("owner_worker", "--once")
    figures: dict[str, Any] = {
        "facts of the message alone": len(alone),
        "of these left": MemoryEntry.objects.filter(pk__in=[fact.pk for fact in alone]).count(),
        "runs with the message left": ExtractionRun.objects.filter(
            message_ids__contains=[message.id]
        ).count(),
    }
    figures["texts of the message in a dump"] = found_in(dump(schema), quotes)
    person = scopes[-1].user_id
    facts = MemoryEntry.objects.entries().filter(user_id=person)
    texts = [text[:60] for text in facts.values_list("content", flat=True)]
    texts += [turn.content[:60] for turn in scopes[-1].dialogue.turns if len(turn.content) > 60]
    figures["facts of the person"] = facts.count()
    operate("erase_user", "--tenant", slug, "--user", person, "--yes")
    figures["of these left "] = facts.all().count()
    figures["runs of the person left"] = ExtractionRun.objects.filter(user_id=person).count()
    figures["texts of the person in a dump"] = found_in(dump(schema), texts)
    figures["texts searched for"] = len(quotes) + len(texts)
    figures["of these in a dump before"] = found_in(before, quotes + texts)
    return figures


def found_in(dumped: str, texts: list[str]) -> int:
    """Count the texts that a dump contains, as COPY and JSON write them."""
    return sum(
        any(form in dumped for form in (text, text.replace("\n", "\\n"), json.dumps(text)[1:-1]))
        for text in texts
    )


if __name__ == "__main__":
    main()
