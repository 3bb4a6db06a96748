"""LoCoMo (Maharana et al. 2024, github.com/snap-research/locomo): long dialogues in sessions, and
questions with the turns that answer them. Research data: it is read from a file, never shipped."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

Role = Literal["user", "assistant"]
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


@dataclass(frozen=True)
class Turn:
    """A turn of a speaker. The caption of a shared image follows the text."""

    id: str
    session: str
    speaker: str
    content: str
    said_at: datetime


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class Dialogue:
    """The sessions of two people, and the questions about them."""

    number: int
    speakers: tuple[str, str]
    turns: list[Turn]
    questions: list[Question]

    def role_of(self, turn: Turn) -> Role:
        """Return the role of a speaker: one of the two is the user, the other one the agent."""
        return "user" if turn.speaker == self.speakers[0] else "assistant"

    def renamed(self, question: Question, other: "Dialogue") -> str:
        """Return the question with the names of the other dialogue's speakers."""
        names = dict(zip(self.speakers, other.speakers, strict=True))
        return re.sub("|".join(map(re.escape, names)), lambda name: names[name[0]], question.text)


def numbers(text: str) -> range:
    """Return the dialogue numbers of an argument such as "0-3"."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def read_dialogues(path: Path, numbers: range | None = None) -> list[Dialogue]:
    """Return the dialogues of a LoCoMo file, or those with the given numbers."""
    data = json.loads(path.read_text())
    return [
        _dialogue(number, data[number])
        for number in range(len(data))
        if numbers is None or number in numbers
    ]


def _dialogue(number: int, record: dict[str, Any]) -> Dialogue:
    conversation = record["conversation"]
    turns: list[Turn] = []
    for session in sorted(
        (key for key in conversation if re.fullmatch(r"session_\d+", key)),
        key=lambda key: int(key.removeprefix("session_")),
    ):
        began = datetime.strptime(
            conversation[f"{session}_date_time"], "%I:%M %p on %d %B, %Y"
        ).replace(tzinfo=UTC)
        turns += [
            Turn(
                id=turn["dia_id"],
                session=session,
                speaker=turn["speaker"],
                content=_content(turn),
                said_at=began + timedelta(seconds=position),
            )
            for position, turn in enumerate(conversation[session])
        ]
    ids = {turn.id for turn in turns}
    questions = []
    for question in record["qa"]:
        # Category 5 has no answer in the dialogue. Some evidence is two ids in one string.
        evidence = (
            frozenset(re.findall(r"D\d+:\d+", " ".join(question.get("evidence") or []))) & ids
        )
        if question["category"] in CATEGORIES and evidence:
            questions.append(Question(question["question"], question["category"], evidence))
    speakers = (conversation["speaker_a"], conversation["speaker_b"])
    return Dialogue(number, speakers, turns, questions)


def _content(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [{caption}]" if caption else turn["text"]
