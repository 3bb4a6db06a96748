"""Compose conversations of long turns with known evidence, in the format of LongMemEval.

Each topic of long_turns.json has six kinds of questions. A fact that answers one is in a turn of
several hundred words, among sentences on the same topic. Every topic also has sessions without
answers. The same seed composes the same text. The module is pure.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

PARTS = Path(__file__).with_name("long_turns.json")
KINDS = ("told", "advised", "counted", "changed", "dated", "liked")
"""Told by the user; advised by the agent; counted over sessions; changed later; with a date;
a preference that an answer should respect."""
# Sessions of a user: four topics of nine sessions with evidence and three without.
TOPICS_OF_A_USER = 4
SESSIONS_WITHOUT_EVIDENCE = 3
EXCHANGES = 4
# Minimum and maximum of sentences in a turn, 15 words each. One of four user turns is long.
USER_SENTENCES, LONG_USER_SENTENCES, AGENT_SENTENCES = (1, 4), (9, 18), (8, 25)

Turn = dict[str, Any]


def long_turns(seed: int) -> dict[str, Any]:
    """Compose three users' sessions and the questions about them.

    Returns:
        `questions` and `sessions`, as benchmarks.recall.sessions reads them from a file.
    """
    chance = random.Random(seed)
    parts = json.loads(PARTS.read_text())
    names = sorted(parts["topics"])
    chance.shuffle(names)
    data: dict[str, Any] = {"questions": [], "sessions": {}}
    for first in range(0, len(names), TOPICS_OF_A_USER):
        _add_user(data, parts, names[first : first + TOPICS_OF_A_USER], chance)
    return data


def _add_user(
    data: dict[str, Any], parts: dict[str, Any], names: list[str], chance: random.Random
) -> None:
    planned: list[tuple[str, str, str]] = []
    questions: list[tuple[str, str, str]] = []
    for name in names:
        for kind in KINDS:
            fact, question, *values = parts["topics"][name][kind]
            planned += [(name, kind, text) for text in _facts(kind, fact, values, chance)]
            questions.append((name, kind, question))
        planned += [(name, "", "")] * SESSIONS_WITHOUT_EVIDENCE
    chance.shuffle(planned)
    ids: list[str] = []
    dates: list[str] = []
    answers: dict[tuple[str, str], list[str]] = {}
    began = datetime(2023, 3, 1, 9, tzinfo=UTC)
    for name, kind, fact in planned:
        began += timedelta(days=chance.randint(1, 6), hours=chance.randint(0, 5))
        session = f"session_{len(data['sessions'])}"
        data["sessions"][session] = list(_session(parts, name, kind, fact, chance))
        ids.append(session)
        dates.append(f"{began:%Y/%m/%d (%a) %H:%M}")
        answers.setdefault((name, kind), []).append(session)
    data["questions"] += [
        {
            "question_id": f"{name} {kind}",
            "question_type": kind,
            "question": question,
            "haystack_session_ids": ids,
            "haystack_dates": dates,
            "answer_session_ids": answers[name, kind],
        }
        for name, kind, question in questions
    ]


def _facts(kind: str, fact: str, values: list[list[str]], chance: random.Random) -> list[str]:
    """Return all values of a counted or changing item, else one of them."""
    if not values:
        return [fact]
    chosen = values[0] if kind in ("counted", "changed") else [chance.choice(values[0])]
    return [fact.format(value=value) for value in chosen]


def _session(
    parts: dict[str, Any], name: str, kind: str, fact: str, chance: random.Random
) -> Iterator[Turn]:
    holder = "assistant" if kind == "advised" else "user"
    place = chance.randrange(EXCHANGES)
    for number in range(EXCHANGES):
        for role in ("user", "assistant"):
            bounds = AGENT_SENTENCES
            if role == "user":
                bounds = LONG_USER_SENTENCES if chance.random() < 1 / 4 else USER_SENTENCES
            frames = chance.sample(parts[role], chance.randint(*bounds))
            sentences = [_sentence(parts, frame, name, role, chance) for frame in frames]
            holds_fact = bool(fact) and (number, role) == (place, holder)
            if holds_fact:
                sentences.insert(chance.randint(0, len(sentences)), fact)
            separator = chance.choice((" ", "\n\n")) if role == "assistant" else " "
            content = separator.join(sentences)
            yield {"role": role, "content": content, "has_answer": holds_fact}


def _sentence(
    parts: dict[str, Any], frame: str, name: str, role: str, chance: random.Random
) -> str:
    topic = parts["topics"][name]
    thing = chance.choice(topic["things"])
    if role == "user":
        thing = thing.replace("your ", "my ")
    words = {word: chance.choice(choices) for word, choices in parts["words"].items()}
    words |= {"thing": thing, "Thing": thing.capitalize()}
    words |= {"tool": chance.choice(topic["tools"]), "aim": chance.choice(topic["aims"])}
    return frame.format(**words)
