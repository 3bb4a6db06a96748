"""A support bot, and the desk of the people behind it: Python and `standardwebhooks` suffice.

    export KONSTRUCT_URL=http://localhost:8000 KONSTRUCT_KEY=ks_… KONSTRUCT_AGENT=Ada
    python support_bot.py desk http://127.0.0.1:9000 &       # the program of the support team
    python support_bot.py ask maria "I want to talk to a human"
    python support_bot.py ask maria "My parcel is lost."     # the desk answers this one

`desk` creates a webhook. When a user waits for a person, it shows the conversation, and sends what
is typed as the answer. `ask` sends a message of a user, and prints the reply: of the agent, or of
the person.
"""

import json
import os
import signal
import sys
import threading
import urllib.error
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any
from urllib.parse import urlencode, urlsplit

from standardwebhooks import Webhook, WebhookVerificationError

BASE = os.environ["KONSTRUCT_URL"].rstrip("/") + "/api/v1/"
AGENT = os.environ.get("KONSTRUCT_AGENT", "ada")


def call(method: str, path: str, body: Any = None, *, key: str = "", timeout: int = 90) -> Any:
    """Send a request to Konstruct; return the JSON of the response."""
    headers = {"Authorization": f"Bearer {os.environ['KONSTRUCT_KEY']}"}
    if key:
        headers["Idempotency-Key"] = key
    data = None
    if body is not None:
        data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    request = urllib.request.Request(BASE + path, data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
        return json.loads(response.read() or b"null")


# --- The side of the user ------------------------------------------------------------------------


def ask(user_id: str, text: str) -> None:
    """Send a message; print the answer of the agent, and that of a person if one has to answer."""
    body = {"agent": AGENT, "user_id": user_id, "content": text}
    message = call("POST", "messages/?wait=60", body, key=str(uuid.uuid4()))
    while message["status"] in ("queued", "with_person"):
        message = call("GET", f"messages/{message['id']}/?wait=60")
    if message["reply"] is None:
        print(f"({message['status']}: {message['error']})")
        return
    print(f"{message['answered_by']}: {message['reply']['content']}", flush=True)


# --- The side of the support team ----------------------------------------------------------------


class Desk:
    """Receives events, and answers escalations."""

    def __init__(self, url: str) -> None:
        fields = {
            "url": url,
            "types": ["escalation.opened", "message.answered"],
            "description": "support desk",
        }
        self.webhook = call("POST", "webhooks/", fields)
        self.events: Queue[dict[str, Any]] = Queue()
        self.seen: set[str] = set()

    def receive(self, body: bytes, headers: dict[str, str]) -> int:
        """Verify and queue an event; return the status of the response."""
        try:
            event = Webhook(self.webhook["secret"]).verify(body, headers)
        except WebhookVerificationError:
            return 401
        if event["id"] not in self.seen:  # an event can arrive twice
            self.seen.add(event["id"])
            self.events.put(event)
        return 204

    def work(self) -> None:
        """Answer one escalation after the other with a line of the standard input."""
        while True:
            event = self.events.get()
            if event["type"] == "escalation.opened":
                try:
                    self.answer(event["data"])
                except urllib.error.HTTPError as error:  # another desk may have resolved it
                    print(f"not answered: {error.read().decode()}", flush=True)

    def answer(self, data: dict[str, Any]) -> None:
        """Show the conversation, and send the answer."""
        place = {"agent": data["agent_id"], "user_id": data["user_id"]}
        query = urlencode({**place, "thread_id": data["thread_id"], "limit": 10})
        transcript = call("GET", f"conversations/transcript/?{query}")["results"]
        for line in transcript:
            print(f"  {line['role']}: {line['content']}")
        print(f"answer {data['user_id']}:", flush=True)
        text = sys.stdin.readline().strip()
        if not text:
            return
        escalation = f"escalations/{data['id']}/"
        call("POST", f"{escalation}answer/", {"content": text, "name": "Eva"}, key=data["id"])
        call("POST", f"{escalation}resolution/", {"let_agent_answer": True}, key=data["id"])
        print("answered", flush=True)


def desk(url: str) -> None:
    """Serve the webhook at this URL, until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    team = Desk(url)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(team.receive(body, dict(self.headers)))
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    threading.Thread(target=team.work, daemon=True).start()
    address = urlsplit(url)
    print("waiting for users", flush=True)
    try:
        ThreadingHTTPServer((address.hostname or "", address.port or 80), Handler).serve_forever()
    finally:
        call("DELETE", f"webhooks/{team.webhook['id']}/")


def main() -> None:
    """Run `ask USER TEXT` or `desk URL`."""
    match sys.argv[1:]:
        case ["ask", user_id, text]:
            ask(user_id, text)
        case ["desk", url]:
            desk(url)
        case _:
            sys.exit("usage: support_bot.py ask USER TEXT | desk URL")


if __name__ == "__main__":
    try:
        main()
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code}: {error.read().decode()}")
    except KeyboardInterrupt:
        pass
