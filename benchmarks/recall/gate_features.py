"""Write the training data of the gate: labelled features of memories, FILE of refit_gate.py.

    python -m benchmarks.recall.gate_features --data locomo10.json [--dialogues 0-3] FILE

LoCoMo alone has two named speakers, questions in the third person and hundreds of messages, so the
gate would overfit. Therefore every dialogue is also used in the form of a user without a name:
whole; session by session, each as the whole memory of an agent; and the user's turns only, with
short replies of an agent between them. The data also contain the conversations of the tests, in
several languages, those of languages.py, and composed conversations of long turns. Unanswerable
questions are those of the other dialogues and users, and those that the conversations mark as such.
"""

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from benchmarks.recall.languages import HELD_OUT, LANGUAGES, read_history
from benchmarks.recall.long_turns import long_turns
from benchmarks.tools.first_person import first_person
from benchmarks.tools.locomo import Dialogue, Role, Turn, numbers, read_dialogues
from benchmarks.tools.throwaway import PROJECT, set_up, throwaway_tenant

CONVERSATIONS = PROJECT / "tests" / "memory" / "data" / "conversations.json"
REPLIES = (
    ("I remember nothing that answers this. (Built-in responder, not a language model.)",),
    ("Noted.", "Got it, I will keep that in mind.", "Thanks, that helps."),
    ("Okay.", "I will remember that.", "Sounds good! Anything else?"),
    ("Thanks for telling me!", "That is interesting, tell me more.", "Understood."),
)
# A dialogue has thousands of questions, half of them unanswerable from a dialogue of other people.
# A conversation has twenty, and is the main use case of the product.
WEIGHTS = {"conversation": 5.0, "history": 5.0}
UNANSWERABLE_WEIGHTS = {"named": 1.0}
UNANSWERABLE_WEIGHT = 1.5
LONG_TURNS_SEED = 1
# The gate decides on the ten best results of a recall.
TOP = 10

Said = tuple[str, Role, str, str, str, datetime]
"""Its id, role, name, thread, content and time."""


@dataclass
class Scope:
    """The messages of one agent and one user, and the questions about them."""

    kind: str
    said: list[Said]
    asked: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    """Questions with the ids that answer them; none if nothing does."""
    agent_id: UUID = field(default_factory=uuid4)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--dialogues", type=numbers, help="such as 0-3; by default all")
    parser.add_argument("file", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    dialogues = read_dialogues(arguments.data, arguments.dialogues)
    long = long_turned(long_turns(LONG_TURNS_SEED))
    scopes = [*named(dialogues), *nameless(dialogues), *conversations(), *histories(), *long]
    set_up()
    with throwaway_tenant() as tenant_id, arguments.file.open("w") as file:
        record(tenant_id, scopes)
        for line in labelled(tenant_id, scopes):
            file.write(json.dumps(line) + "\n")


def named(dialogues: Sequence[Dialogue]) -> Iterator[Scope]:
    """Return the dialogues unchanged."""
    for dialogue in dialogues:
        scope = Scope(
            "named", [_turn(turn, dialogue.role_of(turn), turn.speaker) for turn in dialogue.turns]
        )
        for other in dialogues:
            for question in other.questions:
                if other is dialogue:
                    scope.asked.append((question.text, question.evidence))
                else:
                    scope.asked.append((question.text, frozenset()))
                    scope.asked.append((other.renamed(question, dialogue), frozenset()))
        yield scope


def nameless(dialogues: Sequence[Dialogue]) -> Iterator[Scope]:
    """Return the dialogues as those of a nameless user: whole, by session, and narrated."""
    chance = random.Random(1)
    questions = {
        dialogue.number: [
            (first_person(question.text, *dialogue.speakers), question.evidence)
            for question in dialogue.questions
        ]
        for dialogue in dialogues
    }
    for dialogue in dialogues:
        others = [
            text
            for other in dialogues
            if other is not dialogue
            for text, _ in chance.sample(
                questions[other.number], k=len(questions[other.number]) // 3
            )
        ]
        turns = [_turn(turn, dialogue.role_of(turn), "") for turn in dialogue.turns]
        told = list(_narrated(dialogue, chance))
        for kind, said in (("whole", turns), ("told", told)):
            ids = {turn[0] for turn in said}
            answerable = [(text, ids & evidence) for text, evidence in questions[dialogue.number]]
            yield Scope(
                kind,
                said,
                [(text, frozenset(found)) for text, found in answerable if found]
                + [(text, frozenset()) for text in others],
            )
            sessions = list(dict.fromkeys(turn[3] for turn in said))
            for number, session in enumerate(sessions):
                part = [turn for turn in said if turn[3] == session]
                ids = {turn[0] for turn in part}
                here = [(text, frozenset(found & ids)) for text, found in answerable if found & ids]
                yield Scope(
                    f"{kind} session",
                    part,
                    here + [(text, frozenset()) for text in others[number :: len(sessions)]],
                )


def _narrated(dialogue: Dialogue, chance: random.Random) -> Iterator[Said]:
    replies = chance.choice(REPLIES)
    for number, turn in enumerate(t for t in dialogue.turns if t.speaker == dialogue.speakers[0]):
        yield _turn(turn, "user", "")
        yield (
            f"{turn.id} reply",
            "assistant",
            "",
            turn.session,
            replies[number % len(replies)],
            turn.said_at + timedelta(milliseconds=500),
        )


def conversations() -> Iterator[Scope]:
    """Return the conversations of the tests, with their replies and without any."""
    start = datetime(2024, 3, 4, 9, tzinfo=UTC)
    for conversation in json.loads(CONVERSATIONS.read_text()):
        for replies in (conversation["replies"], ()):
            said: list[Said] = []
            for number, text in enumerate(conversation["said"]):
                moment = start + timedelta(minutes=number)
                said.append((str(number), "user", "", "t", text, moment))
                if replies:
                    reply, moment = replies[number % len(replies)], moment + timedelta(seconds=30)
                    said.append((f"{number} reply", "assistant", "", "t", reply, moment))
            yield Scope(
                "conversation",
                said,
                [(text, frozenset({str(number)})) for text, number in conversation["answerable"]]
                + [(text, frozenset()) for text in conversation["unanswerable"]],
            )


def histories() -> Iterator[Scope]:
    """Return the histories of benchmarks/recall/languages, without those held out."""
    for language in LANGUAGES:
        if language not in HELD_OUT:
            history = read_history(language)
            said: list[Said] = [
                (
                    turn["id"],
                    "user" if turn["role"] == "user" else "assistant",
                    "",
                    turn["id"].partition(".")[0],
                    turn["text"],
                    datetime.fromisoformat(turn["at"]).replace(tzinfo=UTC),
                )
                for turn in history.turns
            ]
            asked = [(asks["text"], frozenset(asks["evidence"])) for asks in history.questions]
            yield Scope(f"history {language}", said, asked)


def long_turned(data: dict[str, Any], kind: str = "long") -> Iterator[Scope]:
    """Return conversations of long turns, and the questions of their users and of other users.

    Args:
        data: as long_turns.py composes it, or as a file of LongMemEval has it. Where turns are not
            labelled, each turn of a session with the answer counts as one.
        kind: of the scopes.
    """
    questions: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for question in data["questions"]:
        questions.setdefault(tuple(question["haystack_session_ids"]), []).append(question)
    for haystack, own in questions.items():
        said: list[Said] = []
        answers: dict[str, list[str]] = {}
        for session, date in zip(haystack, own[0]["haystack_dates"], strict=True):
            began = datetime.strptime(date, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
            for place, turn in enumerate(data["sessions"][session]):
                turn_id = f"{session}-{place}"
                moment = began + timedelta(minutes=place)
                if turn["content"].strip():
                    said.append((turn_id, turn["role"], "", session, turn["content"], moment))
                if turn.get("has_answer", True):
                    answers.setdefault(session, []).append(turn_id)
        scope = Scope(kind, said)
        for question in data["questions"]:
            sessions = question["answer_session_ids"] if question in own else []
            found = (turn_id for session in sessions for turn_id in answers[session])
            scope.asked.append((question["question"], frozenset(found)))
        yield scope


def _turn(turn: Turn, role: Role, name: str) -> Said:
    return turn.id, role, name, turn.session, turn.content, turn.said_at


def record(tenant_id: UUID, scopes: Iterable[Scope]) -> None:
    """Record and index everything with the product."""
    from memory import indexing
    from memory.conversations import transcript

    for scope in scopes:
        for turn_id, role, name, thread, content, moment in scope.said:
            transcript.record_message(
                tenant_id=tenant_id,
                agent_id=scope.agent_id,
                user_id="u",
                thread_id=thread,
                channel="import",
                role=role,
                name=name,
                content=content,
                external_id=turn_id,
                created_at=moment,
            )
    while indexing.drain(tenant_id).more:
        pass


def labelled(
    tenant_id: UUID, scopes: Iterable[Scope], mode: Any = "hybrid"
) -> Iterator[dict[str, Any]]:
    """Write a line for each of the ten best memories of every question."""
    from memory.embedding.embedder import get_embedder
    from memory.recall import recall
    from memory.recall.policy import RecallPolicy

    texts = sorted({text for scope in scopes for text, _ in scope.asked})
    vectors = dict(zip(texts, get_embedder().encode(texts, is_query=True), strict=True))
    policy = RecallPolicy(mode=mode, gate=False, top_k=TOP)
    for scope in scopes:
        for number, (text, evidence) in enumerate(scope.asked):
            hits = recall(
                tenant_id, scope.agent_id, "u", text, policy=policy, query_embedding=vectors[text]
            ).hits
            weight = WEIGHTS.get(scope.kind.partition(" ")[0], 1.0)
            if not evidence:
                weight *= UNANSWERABLE_WEIGHTS.get(scope.kind, UNANSWERABLE_WEIGHT)
            for hit in hits:
                yield {
                    "kind": scope.kind,
                    "question": f"{scope.agent_id} {number}",
                    "answerable": bool(evidence),
                    "weight": weight,
                    "features": hit.channels,
                    "value": hit.gate_value,
                    "relevant": hit.external_id in evidence,
                }


if __name__ == "__main__":
    main()
