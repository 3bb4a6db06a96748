"""`manage.py demo`: two tenants with a month of history, and questions about it.

konstruct/local/demo.json has the companies, each with the messages of a history import and with
questions, and the facts that a language model found in the messages.
"""

import io
import json
import os
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import httpx
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from konstruct.llm.responder import respond
from konstruct.local import services
from konstruct.local.serving import serving
from konstruct.management.commands import create_tenant_admin, serve
from konstruct.orchestrator import agents
from konstruct.orchestrator.extraction.fact_requests import INSTRUCTIONS
from konstruct.orchestrator.models import Agent
from memory.models import Message, PendingEmbedding
from tenants import context, models
from tenants.management.base import KonstructCommand

DATA: Final = services.PROJECT / "konstruct" / "local" / "demo.json"
AGENT = "Iris"
USER = "sam"
ADMIN = "admin"
ADMIN_PASSWORD = "audit-what-it-remembers"  # noqa: S105  (of demo tenants on this machine alone)
EMBED_SECONDS = 120
# Conversations are quiet after this time; then facts are looked for in them.
FACTS_AFTER_SECONDS = 10


class Command(KonstructCommand):
    """Sets up two tenants, imports their histories, asks questions, and keeps serving."""

    help = (
        "Starts all processes, imports a month of history into two tenants, asks questions about "
        "it, prints addresses and logins, and serves until Ctrl-C."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port",
            type=serve.port,
            default=os.environ.get("PORT", "8000"),
            help="(default: 8000)",
        )

    def handle(self, *, port: int, **options: Any) -> None:
        if settings.PRODUCTION:
            raise CommandError("demo makes tenants with a known password: not with DATABASE_URL.")
        self.stdout.write("Starting Postgres, Valkey, web, worker and beat …")
        companies = read_companies()
        os.environ[create_tenant_admin.PASSWORD_VARIABLE] = ADMIN_PASSWORD
        try:
            with serving_model() as model_url:
                if not settings.LLM_POOL_URL:
                    os.environ |= {"LLM_POOL_URL": model_url, "LLM_MODEL": "demo"}
                with serving(
                    host="127.0.0.1", port=port, write_line=self.stdout.write
                ) as processes:
                    # While the processes start: this needs the migrated database alone.
                    for company in companies:
                        _prepare(company)
                    processes.wait_ready()
                    self._converse(companies, f"http://localhost:{port}")
                    # After the questions: hashing a password takes as long as several replies.
                    users = get_user_model().objects
                    if not users.filter(username=ADMIN).exists():
                        users.create_superuser(ADMIN, password=ADMIN_PASSWORD)
                    self._print_addresses(companies, port)
                    self.stdout.write("The server runs until Ctrl-C.")
                    processes.wait()
        except KeyboardInterrupt:
            self.stdout.write("\nStopped. The messages stay: `make demo` continues with them.")

    def _converse(self, companies: list[dict[str, Any]], url: str) -> None:
        """Import the histories, and ask the questions."""
        self.stdout.write(
            f"\nTwo companies. Each has an agent {AGENT} and a user {USER}; they share nothing "
            "else.\n"
        )
        clients = {company["slug"]: _client(company["slug"], url) for company in companies}
        for company in companies:
            lines = company["messages"]
            _post(clients[company["slug"]], "messages/import/", {"messages": lines})
            _await_embeddings(company["slug"])
            self.stdout.write(f"  {company['name']}: imported {len(lines)} messages")
        for company in companies:
            self.stdout.write(f"\nQuestions in {company['name']}:")
            for number, question in enumerate(company["questions"]):
                asked = {"agent": AGENT, "user_id": USER, "content": question["text"]}
                key = f"demo-asked-{number}"
                sent = _post(clients[company["slug"]], "messages/?wait=60", asked, key)
                first, *others = sent["reply"]["content"].strip().splitlines() or [""]
                self.stdout.write(f"  {USER}: {question['text']}\n  {AGENT}: {first}")
                for line in others:
                    self.stdout.write(f"        {line}")
        asked = {"agent": AGENT, "user_id": "kim", "content": "Can I talk to a human, please?"}
        _post(clients["aurora"], "messages/?wait=60", asked, "demo-escalation")

    def _print_addresses(self, companies: list[dict[str, Any]], port: int) -> None:
        """Print addresses and logins."""
        login = f"{ADMIN} / {ADMIN_PASSWORD}"
        self.stdout.write("\nThe admin of each company:")
        for company in companies:
            with context.tenant_scope(models.Tenant.objects.get(slug=company["slug"]).id):
                count = Message.objects.count()
            self.stdout.write(
                f"  http://{company['slug']}.localhost:{port}/admin/   {login}   {count} messages"
            )
        self.stdout.write(
            "Facts from the conversations and a person who asks for a human wait there.\n"
            f"Operators:  http://localhost:{port}/admin/   {login}\n"
            f"API:        http://localhost:{port}/api/docs/   keys in {_keys_file()}\n"
        )


def _prepare(company: dict[str, Any]) -> None:
    """Create the tenant, its agents, its admin and its key, if they are missing."""
    slug, name = company["slug"], company["name"]
    if not models.Tenant.objects.serving().filter(slug=slug).exists():
        call_command("create_tenant", slug, name=name, stdout=io.StringIO())
    tenant_id = models.Tenant.objects.get(slug=slug).id
    with context.tenant_scope(tenant_id):
        existing = set(Agent.objects.values_list("name", flat=True))
    for agent in sorted({line["agent"] for line in company["messages"]} - existing):
        agents.create_agent(
            tenant_id=tenant_id,
            name=agent,
            system_prompt=f"You are {agent}, the assistant of {name}.",
            extracts_facts=True,
            extraction_idle_seconds=FACTS_AFTER_SECONDS,
        )
    keys = _keys()
    if slug not in keys:
        printed = io.StringIO()
        call_command("set_up_tenant", slug, username=ADMIN, agent=AGENT, stdout=printed)
        *_, key = printed.getvalue().split()
        _keys_file().touch(mode=0o600)
        _keys_file().write_text(json.dumps({**keys, slug: key}, indent=1))


def _keys_file() -> Path:
    """Return the file with the demo's keys, which can be shown only once."""
    return services.home() / "demo_keys.json"


def _keys() -> dict[str, str]:
    return dict(json.loads(_keys_file().read_text())) if _keys_file().exists() else {}


def _client(slug: str, url: str) -> httpx.Client:
    """Return an HTTP client of the REST API with the tenant's key."""
    headers = {"Authorization": f"Bearer {_keys()[slug]}"}
    return httpx.Client(base_url=f"{url}/api/v1/", headers=headers, timeout=120)


def _post(client: httpx.Client, path: str, body: dict[str, Any], key: str = "") -> Any:
    """Return the answer to a request. The same key gets the first answer again."""
    answer = client.post(path, json=body, headers={"Idempotency-Key": key} if key else {})
    if not answer.is_success:
        raise CommandError(f"{answer.status_code} of {path}: {answer.text}")
    return answer.json()


def _await_embeddings(slug: str) -> None:
    """Wait until no message of the tenant is queued for embedding."""
    deadline = time.monotonic() + EMBED_SECONDS
    with context.tenant_scope(models.Tenant.objects.get(slug=slug).id):
        while PendingEmbedding.objects.exists():
            if time.monotonic() > deadline:
                raise CommandError(f"embeddings are still pending after {EMBED_SECONDS} seconds.")
            time.sleep(0.1)


def read_companies() -> list[dict[str, Any]]:
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
