"""The data of the demo, and the language model that answers in it.

demo.json has the companies, each with the messages of a history import and with questions, and the
facts that a language model found in the messages.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from konstruct.llm.responder import respond
from konstruct.orchestrator.extraction.fact_requests import INSTRUCTIONS

DATA: Final = Path(__file__).with_name("demo.json")


def companies() -> list[dict[str, Any]]:
    """Return the companies: slug, name, messages and questions.

    The messages are moved by whole days, so that the newest is of yesterday.
    """
    companies: list[dict[str, Any]] = json.loads(DATA.read_text())["companies"]
    for company in companies:
        newest = max(datetime.fromisoformat(line["created_at"]) for line in company["messages"])
        age = datetime.now(UTC).date() - newest.date() - timedelta(days=1)
        for line in company["messages"]:
            line["created_at"] = (datetime.fromisoformat(line["created_at"]) + age).isoformat()
    return companies


def find_facts(document: str) -> str:
    """Return the recorded answer of a language model for the messages of an extraction request.

    Args:
        document: the JSON document of `konstruct.orchestrator.extraction.fact_requests`.
    """
    texts = [
        message["text"]
        for message in json.loads(document)["messages"]
        if message.get("role", message["speaker"]) == "user"
    ]
    recorded = json.loads(DATA.read_text())["facts"]
    facts = [fact for fact in recorded if any(fact["quote"] in text for text in texts)]
    return json.dumps({"facts": facts})


@contextmanager
def serving_model() -> Iterator[str]:
    """Serve the demo's language model on loopback during the block; yield its URL.

    It is the built-in responder, and answers requests for facts with the recorded ones.
    """
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        messages = json.loads(self.rfile.read(length))["messages"]
        is_extraction = messages[0]["content"] == INSTRUCTIONS
        text = find_facts(messages[-1]["content"]) if is_extraction else respond(messages)
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no line for each request."""
