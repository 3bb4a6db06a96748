"""A language model server on loopback that returns recorded or scripted answers for a session.

The server is OpenAI-compatible and runs in its own process. It recognizes the session by the texts
of the prompt. It replaces recorded ids of superseded facts by the ids of the prompt and the answer.
An id that is in neither is not changed.
"""

import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

# Subject, slot and value.
FactKey = tuple[str, str, str]


def fact_key(fact: Mapping[str, Any]) -> FactKey:
    """Return the key of a recorded fact, or of a known fact of a prompt."""
    return fact["subject"], fact["slot"], fact["value"]


@dataclass(frozen=True)
class Session:
    """The messages of a conversation, and the answer of the model."""

    name: str
    texts: Mapping[str, str]
    """Texts of the messages by their ids."""
    facts: Sequence[Mapping[str, Any]] = ()
    earlier: Mapping[str, FactKey] = field(default_factory=dict)
    """Facts by ids, of this and of earlier sessions: `supersedes` names them."""
    raw: str = ""
    """An answer as it is, instead of one with the facts."""


def read_recordings(
    path: Path, texts: Mapping[tuple[int, str], Mapping[str, str]]
) -> list[Session]:
    """Read recorded answers.

    Args:
        path: of JSON lines with "dialogue", "session" and "facts".
        texts: of the messages of each dialogue and session, by their ids.
    """
    earlier: dict[int, dict[str, FactKey]] = {}
    sessions = []
    for line in path.read_text().splitlines():
        recorded = json.loads(line)
        dialogue, name = recorded["dialogue"], recorded["session"]
        if (dialogue, name) not in texts:
            continue
        of_dialogue = earlier.setdefault(dialogue, {})
        of_dialogue |= {fact["id"]: fact_key(fact) for fact in recorded["facts"]}
        facts = [{**fact, "quote": fact["evidence"][0]["quote"]} for fact in recorded["facts"]]
        sessions.append(
            Session(f"{dialogue}/{name}", texts[dialogue, name], facts, dict(of_dialogue))
        )
    return sessions


@dataclass(frozen=True)
class Served:
    """The running server."""

    url: str
    requests: "Synchronized[int]"
    unknown: "Synchronized[int]"
    """Requests about texts of no session."""


@contextmanager
def serving(sessions: Sequence[Session]) -> Iterator[Served]:
    """Run the server during the block, as the language model of the deployment."""
    from django.conf import settings

    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    counters: Any = context.Value("i", 0), context.Value("i", 0)
    process = context.Process(target=_run, args=(there, sessions, *counters), daemon=True)
    process.start()
    before = settings.LLM_POOL_URL, settings.LLM_API
    try:
        served = Served(here.recv(), *counters)
        settings.LLM_POOL_URL, settings.LLM_API = served.url, "openai"
        yield served
    finally:
        settings.LLM_POOL_URL, settings.LLM_API = before
        process.kill()
        process.join()


def _run(
    pipe: Connection,
    sessions: Sequence[Session],
    requests: "Synchronized[int]",
    unknown: "Synchronized[int]",
) -> None:
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    by_text: dict[str, list[tuple[int, str]]] = {}
    for number, session in enumerate(sessions):
        for message, text in session.texts.items():
            by_text.setdefault(text, []).append((number, message))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = json.loads(body["messages"][-1]["content"])
            number = _asked_for(request, by_text)
            with requests.get_lock():
                requests.value += 1
                unknown.value += number is None
            text = '{"facts": []}' if number is None else _answer(sessions[number], request)
            choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            content = json.dumps({"choices": [{"index": 0, **choice}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    pipe.send(f"http://127.0.0.1:{server.server_address[1]}/v1")
    server.serve_forever()


def _asked_for(
    asked: Mapping[str, Any], by_text: Mapping[str, Iterable[tuple[int, str]]]
) -> int | None:
    """Return the session that contains most of the texts."""
    votes = Counter(
        number for message in asked["messages"] for number, _ in by_text.get(message["text"], ())
    )
    return votes.most_common(1)[0][0] if votes else None


def _answer(session: Session, asked: Mapping[str, Any]) -> str:
    if session.raw:
        return session.raw
    known = {fact_key(fact): fact["id"] for fact in asked["known_facts"]}
    sent = "\n".join(message["text"] for message in asked["messages"])
    # A long conversation is sent in parts.
    left_out = "\n".join(text for text in session.texts.values() if text not in sent)
    facts: list[Mapping[str, Any]] = []
    places: dict[str, str] = {}
    for fact in session.facts:
        if fact["quote"] in left_out and fact["quote"] not in sent:
            continue
        former = fact.get("supersedes")
        if former:
            of_known = known.get(session.earlier.get(former, ("", "", "")), former)
            former = places.get(former, of_known)
        facts.append({**fact, "supersedes": former})
        places[fact.get("id", "")] = f"f{len(facts)}"
    return json.dumps({"facts": facts})
