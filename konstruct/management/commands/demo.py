"""`manage.py demo`: create two tenants, hold a conversation in each, and ask questions about it."""

import io
import json
import logging
import os
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from konstruct.local import demo_conversations as conversations
from konstruct.local import demo_month, embedded
from konstruct.local.serving import serving
from konstruct.management.commands.serve import port as port_argument
from konstruct.orchestrator.models import Agent
from memory.models import Message, PendingEmbedding
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand
from tenants.models import Tenant

ADMIN = "admin"
ADMIN_PASSWORD = "audit-what-it-remembers"  # noqa: S105  (of demo tenants on this machine alone)
EMBED_SECONDS = 120
# Conversations are quiet after this time; then facts are looked for in them.
FACTS_AFTER_SECONDS = 10


class Command(KonstructCommand):
    """Sets up two tenants, sends messages through the REST API, and leaves the server running."""

    help = (
        "Demonstrates the product: starts web, worker and beat, holds a conversation in "
        "two tenants, asks questions about it, prints addresses and logins, and serves "
        "until Ctrl-C."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add `--port` and `--exit`."""
        parser.add_argument(
            "--port",
            type=port_argument,
            default=os.environ.get("PORT", "8000"),
            help="(default: 8000)",
        )
        parser.add_argument("--exit", action="store_true", help="stop after the conversation")

    def handle(self, *, port: int, **options: Any) -> None:
        """Run the demo; exit with 1 if an answer is wrong."""
        if settings.PRODUCTION:
            raise CommandError("demo makes tenants with a known password: not with DATABASE_URL.")
        self.stdout.write("Starting Postgres, Valkey, web, worker and beat …")
        try:
            with serving(host="127.0.0.1", port=port, write_line=lambda line: None) as processes:
                # While the processes start: this needs the migrated database alone.
                tenants = [_prepare(tenant) for tenant in conversations.TENANTS]
                processes.wait_ready()
                right = self._converse(tenants, f"http://localhost:{port}")
                if not right:
                    raise CommandError("an answer is wrong, see above.")
                _make_admins()
                _add_month(tenants[0])
                self._print_addresses(port)
                if not options["exit"]:
                    processes.wait()
        except KeyboardInterrupt:
            self.stdout.write("\nStopped. The messages stay: `make demo` continues with them.")

    def _converse(self, tenants: list["_Prepared"], url: str) -> bool:
        """Send all messages, then the questions; return whether each answer was right."""
        self.stdout.write(
            f"\nTwo companies. Each has an agent {conversations.AGENT} "
            f"and a user {conversations.USER}; they share nothing else.\n"
        )
        for prepared in tenants:
            with prepared.client(url) as client:
                started = time.monotonic()
                for number, text in enumerate(prepared.script.messages):
                    _send(client, text, f"demo-said-{number}")
                seconds = time.monotonic() - started
            _await_embeddings(prepared.tenant)
            self.stdout.write(
                f"  {prepared.script.name}: {conversations.USER} sent "
                f"{len(prepared.script.messages)} messages ({seconds:.1f} s with the replies)"
            )
        right = True
        for prepared in tenants:
            self.stdout.write(f"\nQuestions in {prepared.script.name}:")
            with prepared.client(url) as client:
                for number, question in enumerate(prepared.script.questions):
                    reply = _send(client, question.text, f"demo-asked-{number}")
                    right = self._show(prepared, question, reply) and right
        return right

    def _show(
        self, prepared: "_Prepared", question: conversations.DemoQuestion, reply: dict[str, Any]
    ) -> bool:
        """Print one question with its answer; return whether it is right."""
        answer = reply["content"]
        foreign = [
            other.answer
            for script in conversations.TENANTS
            if script is not prepared.script
            for other in script.questions
            if other.answer
        ]
        right = question.answer in answer and not any(word in answer for word in foreign)
        mark = self.style.SUCCESS("right") if right else self.style.ERROR("WRONG")
        note = "" if question.answer else ": this tenant has no such message"
        self.stdout.write(f"  {conversations.USER}: {question.text}")
        lines = answer.strip().splitlines() or [""]
        self.stdout.write(f"  {conversations.AGENT}: {lines[0]}")
        for line in lines[1:]:
            self.stdout.write(f"        {line}")
        self.stdout.write(f"        [{mark}{note}]")
        return right

    def _print_addresses(self, port: int) -> None:
        """Print addresses and logins."""
        with tenant_scope(Tenant.objects.get(slug=conversations.AURORA.slug).id):
            remembered = Message.objects.count()
        self.stdout.write(
            f"\nThe admin of each company ({conversations.AURORA.name} has {remembered} messages):"
        )
        for script in conversations.TENANTS:
            self.stdout.write(
                f"  http://{script.slug}.localhost:{port}/admin/   {ADMIN} / {ADMIN_PASSWORD}"
            )
        self.stdout.write(
            "Facts extracted from the conversations wait for a review there.\n"
            f"Operators:  http://localhost:{port}/admin/   {ADMIN} / {ADMIN_PASSWORD}\n"
            f"API:        http://localhost:{port}/api/docs/   keys in {_keys_file()}\n\n"
            "The server runs until Ctrl-C."
        )


class _Prepared:
    """A tenant that is ready for messages: its row, its script, its API key."""

    def __init__(self, tenant: Tenant, script: conversations.Company, key: str) -> None:
        self.tenant = tenant
        self.script = script
        self.key = key

    def client(self, url: str) -> httpx.Client:
        """Return an HTTP client with the tenant's key."""
        return httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {self.key}"}, timeout=120
        )


def _make_admins() -> None:
    """Create the operators' user of the public host and each tenant's admin, if missing.

    After the conversation: hashing a password takes as long as several replies.
    """
    users = get_user_model()
    if not users.objects.filter(username=ADMIN).exists():
        users.objects.create_superuser(ADMIN, password=ADMIN_PASSWORD)
    for script in conversations.TENANTS:
        with tenant_scope(Tenant.objects.get(slug=script.slug).id):
            has_admin = users.objects.filter(username=ADMIN).exists()
        if not has_admin:
            call_command(
                "create_tenant_admin",
                tenant=script.slug,
                username=ADMIN,
                password=ADMIN_PASSWORD,
                stdout=io.StringIO(),
            )


def _add_month(prepared: _Prepared) -> None:
    """Add a month of data to the tenant, if it has none.

    After the questions, which it may slow down.
    """
    with tenant_scope(prepared.tenant.id):
        if not Agent.objects.filter(name=demo_month.SECOND_AGENT).exists():
            agent = Agent.objects.get(name=conversations.AGENT)
            admin = get_user_model().objects.get(username=ADMIN)
            # The month has a failed reply and a failed delivery, which are no errors of the demo.
            jobs = logging.getLogger("tenants.jobs.kind")
            jobs.addFilter(_is_not_failure)
            demo_month.add_month(agent, admin=admin)
            jobs.removeFilter(_is_not_failure)


def _is_not_failure(record: logging.LogRecord) -> bool:
    return record.levelno < logging.ERROR


def _prepare(script: conversations.Company) -> _Prepared:
    """Create the missing parts of a tenant, with its agent and its key, by the public commands."""
    if not Tenant.objects.serving().filter(slug=script.slug).exists():
        call_command("create_tenant", script.slug, name=script.name, stdout=io.StringIO())
    tenant = Tenant.objects.get(slug=script.slug)
    with tenant_scope(tenant.id):
        has_agent = Agent.objects.filter(name=conversations.AGENT).exists()
    if not has_agent:
        call_command(
            "create_agent",
            tenant=script.slug,
            name=conversations.AGENT,
            system_prompt=f"You are {conversations.AGENT}, the assistant of {script.name}.",
            stdout=io.StringIO(),
        )
        with tenant_scope(tenant.id):
            Agent.objects.filter(name=conversations.AGENT).update(
                extracts_facts=True, extraction_idle_seconds=FACTS_AFTER_SECONDS
            )
    return _Prepared(tenant, script, _key(script.slug))


def _keys_file() -> Path:
    """Return the file with the demo's keys, which can be shown only once."""
    return embedded.home() / "demo_keys.json"


def _key(slug: str) -> str:
    """Return the tenant's demo key; made at the first run."""
    file = _keys_file()
    keys: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    if slug not in keys:
        printed = io.StringIO()
        call_command("create_api_key", tenant=slug, name="demo", stdout=printed)
        keys[slug] = printed.getvalue().strip()
        file.touch(mode=0o600)
        file.write_text(json.dumps(keys, indent=1))
    return keys[slug]


def _send(client: httpx.Client, text: str, idempotency_key: str) -> dict[str, Any]:
    """Send a message as the demo's user and return the reply."""
    answer = client.post(
        "/api/v1/messages/?wait=60",
        json={"agent": conversations.AGENT, "user_id": conversations.USER, "content": text},
        headers={"Idempotency-Key": idempotency_key},
    )
    if answer.status_code != httpx.codes.OK:
        raise CommandError(f"{answer.status_code} for {text!r}: {answer.text}")
    reply: dict[str, Any] = answer.json()["reply"]
    return reply


def _await_embeddings(tenant: Tenant) -> None:
    """Wait until no message of the tenant is queued for embedding."""
    deadline = time.monotonic() + EMBED_SECONDS
    with tenant_scope(tenant.id):
        while PendingEmbedding.objects.exists():
            if time.monotonic() > deadline:
                raise CommandError(f"embeddings are still pending after {EMBED_SECONDS} seconds.")
            time.sleep(0.1)
