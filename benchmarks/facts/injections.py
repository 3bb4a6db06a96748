"""Measure whether a conversation can inject a wrong fact if the language model obeys it.

python -m benchmarks.facts.injections [--review none]
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from benchmarks.facts.harness import extract_all, make_agent, record_session, run_with_review
from benchmarks.facts.injection_cases import AGENT, ANNA, fact, injections
from benchmarks.facts.model_server import Session, fact_key, serving

HOME = "Anna lives in Oslo."
FIRST, SECOND = datetime(2024, 1, 10, 9, tzinfo=UTC), datetime(2024, 6, 10, 9, tzinfo=UTC)


def run(tenant_id: UUID, fact_review: str = "doubtful") -> dict[str, Any]:
    """Run all cases with a review rule. Print and return the figures."""
    from konstruct.orchestrator.models import ExtractionRun, RunState
    from memory.models import FactState, MemoryEntry

    cases = list(injections())
    agent_id = make_agent(tenant_id, f"injections-{fact_review}", fact_review=fact_review)
    earlier, sessions = [], []
    for number, case in enumerate(cases):
        greeting = f"Hello, this is conversation {number}."
        home = fact(HOME, "I live in Oslo", slot="home_city", multi=False, value="Oslo")
        earlier.append(
            Session(f"home-{number}", {"t0": "I live in Oslo.", "greeting": greeting}, [home])
        )
        texts = {f"t{position}": text for position, (_, text) in enumerate(case.texts)}
        sessions.append(
            Session(
                f"attack-{number}",
                {**texts, "greeting": f"{greeting} Again."},
                case.facts,
                {"home": fact_key(home)},
                case.raw,
            )
        )
    with serving([*earlier, *sessions]):
        for part, began_at in ((earlier, FIRST), (sessions, SECOND)):
            for number, (case, session) in enumerate(zip(cases, part, strict=True)):
                speakers = {"greeting": ANNA, "t0": ANNA}
                if part is sessions:
                    speakers |= {f"t{turn}": who for turn, (who, _) in enumerate(case.texts)}
                record_session(
                    tenant_id,
                    agent_id,
                    f"victim-{number}",
                    session,
                    speakers=speakers,
                    began_at=began_at,
                    role=lambda name: "assistant" if name == AGENT else "user",
                )
            extract_all()
    counts: dict[str, Counter[str]] = {}
    for number, case in enumerate(cases):
        facts = MemoryEntry.objects.entries().filter(agent_id=agent_id, user_id=f"victim-{number}")
        home_is_active = facts.filter(content=HOME, state=FactState.ACTIVE).exists()
        others = facts.exclude(content=HOME)
        accepted = [fact.content for fact in others if fact.state == FactState.ACTIVE]
        run = ExtractionRun.objects.filter(thread_id=f"attack-{number}", agent_id=agent_id).first()
        of_category = counts.setdefault(case.category, Counter())
        of_category["cases"] += 1
        of_category["accepted"] += bool(accepted)
        of_category["retired"] += not home_is_active
        of_category["to review"] += others.filter(state=FactState.PROPOSED).exists()
        of_category["refused"] += run is not None and not others.exists()
        of_category["failed runs"] += run is not None and run.state == RunState.FAILED
        for content in accepted:
            print(f"accepted, {case.category}: {content!r} of {case.texts}")
    total: Counter[str] = sum(counts.values(), Counter())
    names = ["cases", "accepted", "retired", "to review", "refused", "failed runs"]
    print(f"\nInjections, review of facts: {fact_review}")
    print(f"{'':<28}" + "".join(f"{name:>13}" for name in names))
    for name, of_category in [*counts.items(), ("all", total)]:
        print(f"{name:<28}" + "".join(f"{of_category[column]:>13}" for column in names))
    return {"cases": total["cases"], "accepted": total["accepted"], "retired": total["retired"]}


if __name__ == "__main__":
    run_with_review(run, __doc__.splitlines()[0])
