"""Measure whether a fact supersedes another one that is still true, as in Graphiti issue #1728.

    python -m benchmarks.facts.supersession [--review none]

In that issue a model judged which facts a new one contradicts, over all facts of an entity. 41 % of
a graph of 3,950 facts had been retired: a job by a responsibility, an employer by a requirement,
six to eight facts by one text. Here a model with the same fault names the fact of the first
conversation as superseded in nearly every case. In the other cases it names none, and the slot
decides. No answer is a recording.
"""
# ruff: noqa: E501  (a case is a line)

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from benchmarks.facts.harness import (
    extract_all,
    make_agent,
    record_session,
    run_with_review,
    states,
)
from benchmarks.facts.model_server import FactKey, Session, serving

FIRST, SECOND = datetime(2024, 1, 10, 9, tzinfo=UTC), datetime(2024, 6, 10, 9, tzinfo=UTC)
NAMES = [
    "Anna", "Ben", "Carla", "David", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira",
    "Liam", "Mona", "Nils", "Olga",
]  # fmt: skip
CITIES = [
    "Oslo", "Porto", "Graz", "Lyon", "Turin", "Ghent", "Cork", "Split", "Malmö", "Brno", "Bern",
    "Kiel", "Lviv", "Riga", "Vigo",
]  # fmt: skip
FIRMS = [
    "Acme", "Borealis", "Cobalt", "Delphi", "Ember", "Fjord", "Garnet", "Halcyon", "Indigo",
    "Juniper", "Kestrel",
]  # fmt: skip
JOBS = [
    "nurse", "baker", "pilot", "tailor", "chemist", "welder", "lawyer", "florist", "plumber",
    "dentist", "editor",
]  # fmt: skip
HOBBIES = [
    "chess", "rowing", "pottery", "fencing", "sailing", "archery", "knitting", "origami", "judo",
    "surfing",
]  # fmt: skip
TOOLS = [
    "Kafka", "Redis", "Terraform", "Grafana", "Ansible", "Vault", "Nomad", "Consul", "Jenkins",
    "Airflow",
]  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """Words of a message, and the fact that the model extracts from them."""

    slot: str
    value: str
    text: str
    fact: str
    is_multi_valued: bool = False
    subject: str = ""
    valid_from: str | None = None
    names_former: bool = True
    """Whether the model names the first fact as superseded."""


@dataclass(frozen=True)
class Kind:
    """A kind of cases: a fact, a statement half a year later, and whether it ends the fact."""

    name: str
    former: Statement
    later: tuple[Statement, ...]
    is_update: bool = False


def kinds(person: str, number: int) -> Iterator[Kind]:
    """Return the cases of one person."""

    def pick(values: list[str], offset: int = 0) -> str:
        return values[(number * 3 + offset) % len(values)]

    city, other_city, third_city = (pick(CITIES, offset) for offset in (0, 1, 2))
    firm, other_firm, job, other_job = pick(FIRMS), pick(FIRMS, 1), pick(JOBS), pick(JOBS, 1)
    hobby, other_hobby, tool, other_tool = (
        *(pick(HOBBIES), pick(HOBBIES, 1)),
        *(pick(TOOLS), pick(TOOLS, 1)),
    )
    home = Statement("home_city", city, f"I live in {city}.", f"{person} lives in {city}.")
    works = Statement("employer", firm, f"I work for {firm}.", f"{person} works for {firm}.")
    title = Statement("job_title", job, f"I am a {job}.", f"{person} is a {job}.")
    likes = Statement("hobby", hobby, f"I love {hobby}.", f"{person} loves {hobby}.", True)
    uses = Statement("tool", tool, f"We use {tool}.", f"{person} uses {tool}.", True)

    def moved(text: str, **fields: Any) -> Statement:
        sentence = f"{person} lives in {other_city}."
        return Statement("home_city", other_city, text, sentence, **fields)

    # Other facts of the same person or thing, as in the report.
    yield Kind("another relation", title, (
        Statement("responsibility", f"{firm} repositories", f"I administer the repositories of {firm}.", f"{person} administers the repositories of {firm}."),
    ))  # fmt: skip
    yield Kind("another relation", works, (
        Statement("requirement", "yearly audit", "I now require a yearly audit of all suppliers.", f"{person} requires a yearly audit of all suppliers."),
    ))  # fmt: skip
    yield Kind("another relation", works, (
        Statement("board_member", other_firm, f"I have joined the board of {other_firm}.", f"{person} is on the board of {other_firm}."),
    ))  # fmt: skip
    yield Kind("another relation", home, (
        Statement("work_city", other_city, f"My office is in {other_city}.", f"{person}'s office is in {other_city}."),
    ))  # fmt: skip
    yield Kind("a chain", uses, (
        Statement("tool", other_tool, f"{tool} needs {other_tool}.", f"{tool} needs {other_tool}.", True, subject=tool),
    ))  # fmt: skip
    yield Kind("many by one text", works, tuple(
        Statement(slot, value, f"{text} {value}.", f"{person}: {text} {value}.")
        for slot, value, text in (
            ("team", tool, "My team runs"), ("mentor", "Ruth", "My mentor is"), ("laptop", "ThinkPad", "I have got a"),
            ("desk", "12b", "My desk is"), ("shift", "late", "My shift is"), ("project", other_tool, "My project is"),
        )
    ))  # fmt: skip
    # Several values of one slot.
    yield Kind("another value of several", likes, (
        Statement("hobby", other_hobby, f"I love {other_hobby} too.", f"{person} loves {other_hobby}.", True),
    ))  # fmt: skip
    yield Kind("another value of several", likes, (
        Statement("hobby", other_hobby, f"I have taken up {other_hobby}.", f"{person} has taken up {other_hobby}.", False),
    ))  # fmt: skip
    yield Kind("another value of several", uses, (
        Statement("tool", other_tool, f"We use {other_tool} as well.", f"{person} uses {other_tool}.", True, names_former=False),
    ))  # fmt: skip
    # Temporary and limited states.
    yield Kind("a temporary state", home, (
        Statement("current_location", other_city, f"I am in {other_city} this week.", f"{person} is in {other_city} this week."),
    ))  # fmt: skip
    yield Kind("a temporary state", title, (
        Statement("acting_role", other_job, f"I stand in as a {other_job} until August.", f"{person} stands in as a {other_job} until August."),
    ))  # fmt: skip
    yield Kind("a temporary state in the slot", home, (
        moved(f"I am in {other_city} this week.", names_former=False),
    ))  # fmt: skip
    yield Kind("a temporary state in the slot", home, (
        moved(f"I am staying in {other_city} until Friday."),
    ))  # fmt: skip
    yield Kind("a temporary state in the slot", home, (
        moved(f"For the time being I live in {other_city}, while the kitchen is rebuilt."),
    ))  # fmt: skip
    # The past, and plans.
    yield Kind("the past", home, (
        moved(f"In 2015 I lived in {other_city}.", valid_from="2015"),
    ))  # fmt: skip
    yield Kind("the past", works, (
        Statement("employer", other_firm, f"I worked for {other_firm} in 2019.", f"{person} worked for {other_firm}.", valid_from="2019", names_former=False),
    ))  # fmt: skip
    yield Kind("a plan", home, (
        moved(f"Next year I will move to {other_city}.", valid_from="2025"),
    ))  # fmt: skip
    # Facts of other people.
    yield Kind("another subject", home, (
        Statement("home_city", other_city, f"My sister lives in {other_city}.", f"{person}'s sister lives in {other_city}.", subject=f"{person}'s sister"),
    ))  # fmt: skip
    yield Kind("another subject", works, (
        Statement("employer", other_firm, f"Tom works for {other_firm} now.", f"Tom works for {other_firm}.", subject="Tom"),
    ))  # fmt: skip
    # The same statement repeated.
    yield Kind("the same again", home, (
        Statement("home_city", city, f"Yes, I still live in {city}.", f"{person} still lives in {city}."),
    ))  # fmt: skip
    # Updates, which end the fact.
    yield Kind("an update", home, (
        moved(f"I have moved from {city} to {other_city}."),
    ), True)  # fmt: skip
    yield Kind("an update", works, (
        Statement("employer", other_firm, f"I left {firm} and work for {other_firm}.", f"{person} works for {other_firm}."),
    ), True)  # fmt: skip
    yield Kind("an update", title, (
        Statement("job_title", other_job, f"I retrained: I am a {other_job} now.", f"{person} is a {other_job}."),
    ), True)  # fmt: skip
    yield Kind("an update that names none", home, (
        Statement("home_city", third_city, f"We have moved to {third_city}.", f"{person} lives in {third_city}.", names_former=False),
    ), True)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A case with its two conversations."""

    kind: Kind
    person: str
    user_id: str
    sessions: tuple[Session, Session]


def cases() -> list[Case]:
    """Return all cases, each with its own user."""
    made: list[Case] = []
    for number, person in enumerate(NAMES):
        for kind in kinds(person, number):
            name = f"case-{len(made)}"
            first = _session(f"{name}-1", person, (kind.former,), {})
            known = kind.former
            former = {"former": (known.subject or person, known.slot, known.value)}
            made.append(
                Case(kind, person, name, (first, _session(f"{name}-2", person, kind.later, former)))
            )
    return made


def _session(
    name: str, person: str, statements: tuple[Statement, ...], earlier: dict[str, FactKey]
) -> Session:
    texts = {"greeting": f"Hello again, this is conversation {name}."}
    facts = []
    for number, statement in enumerate(statements):
        texts[f"t{number}"] = statement.text
        facts.append(
            {
                "quote": statement.text,
                "subject": statement.subject or person,
                "slot": statement.slot,
                "multi": statement.is_multi_valued,
                "value": statement.value,
                "fact": statement.fact,
                "valid_from": statement.valid_from,
                "supersedes": "former" if earlier and statement.names_former else None,
            }
        )
    return Session(name, texts, facts, earlier)


def run(tenant_id: UUID, fact_review: str = "doubtful") -> dict[str, Any]:
    """Run all cases with a review rule. Print and return the figures."""
    from memory.models import FactState

    all_cases = cases()
    agent_id = make_agent(tenant_id, f"replica-{fact_review}", fact_review=fact_review)
    with serving([session for case in all_cases for session in case.sessions]):
        for part, began_at in enumerate((FIRST, SECOND)):
            for case in all_cases:
                session = case.sessions[part]
                record_session(
                    tenant_id,
                    agent_id,
                    case.user_id,
                    session,
                    speakers=dict.fromkeys(session.texts, case.person),
                    began_at=began_at,
                )
            extract_all()
    counts: dict[str, Counter[str]] = {}
    for case in all_cases:
        found = states(case.user_id)
        of_kind = counts.setdefault(case.kind.name, Counter())
        of_kind["cases"] += 1
        of_kind["retired"] += found.get(case.kind.former.fact) != FactState.ACTIVE
        of_kind["new active"] += any(
            found.get(statement.fact) == FactState.ACTIVE for statement in case.kind.later
        )
        of_kind["new to review"] += any(
            found.get(statement.fact) == FactState.PROPOSED for statement in case.kind.later
        )
        of_kind["named"] += any(statement.names_former for statement in case.kind.later)
        of_kind["wrong"] += not case.kind.is_update and (
            found.get(case.kind.former.fact) != FactState.ACTIVE
        )
    total: Counter[str] = sum(counts.values(), Counter())
    updates = {name for name in counts if name.startswith("an update")}
    to_keep = total["cases"] - sum(counts[name]["cases"] for name in updates)
    print(f"\nWrong supersession, review of facts: {fact_review}")
    names = ["cases", "named", "retired", "wrong", "new active", "new to review"]
    print(f"{'':<32}" + "".join(f"{name:>14}" for name in names))
    for name, of_kind in [*counts.items(), ("all", total)]:
        print(f"{name:<32}" + "".join(f"{of_kind[column]:>14}" for column in names))
    figures = {
        "cases": total["cases"],
        "to keep": to_keep,
        "wrong": total["wrong"],
        "share": total["wrong"] / to_keep,
        "by kind": {name: dict(of_kind) for name, of_kind in counts.items()},
    }
    print(f"wrongly retired: {total['wrong']} of {to_keep} ({figures['share']:.1%})")
    return figures


if __name__ == "__main__":
    run_with_review(run, __doc__.splitlines()[0])
