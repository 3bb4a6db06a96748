"""manage.py erase_user: forget a person, in every store, with a receipt."""

import getpass
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from konstruct.audit.access_log import Actor
from konstruct.audit.erasure_requests import AlreadyRequested, request_erasure
from konstruct.audit.models import ActorKind, ErasureRequest
from konstruct.orchestrator.agents import find_agent
from konstruct.orchestrator.exceptions import AgentNotFound
from konstruct.trust.erasure import carry_out
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, UsageError, tenant_of


class Command(KonstructCommand):
    """Carries out a new request, or the one that stands for this user."""

    help = (
        "Erases a person from a tenant: messages, vectors, words, facts with their history, recall"
        " events, windows, sessions, outboxes, tasks; then looks whether anything is left, and"
        " leaves a receipt. Interrupted, it goes on when it is run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="Whose user it is.")
        parser.add_argument("--user", required=True, help="The user, as the channel knows them.")
        parser.add_argument("--agent", metavar="NAME_OR_ID", help="The one agent that forgets.")
        parser.add_argument(
            "--thread", action="append", default=[], help="A graph's session that is theirs too."
        )
        parser.add_argument("--reason", default="", help="Why, for the receipt.")
        parser.add_argument("--yes", action="store_true", help="Do not ask.")
        parser.add_argument("--json", action="store_true", help="Print the receipt as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        user = options["user"]
        if not options["yes"]:
            try:
                answer = input(f"Erase {user!r} of {tenant.slug}? Type the user's id to confirm: ")
            except EOFError:
                raise UsageError("nobody is there to confirm: pass --yes") from None
            if answer.strip() != user:
                raise CommandError("not erased")
        with tenant_scope(tenant.id):
            request = carry_out(self._request(user, options))
        receipt = {
            "id": str(request.pk),
            "user_id": request.user_id,
            "agent_id": request.agent_id and str(request.agent_id),
            "requested_by": request.requested_by,
            **(request.receipt or {}),
        }
        if options["json"]:
            self.stdout.write(json.dumps(receipt, indent=2))
            return
        for table, done in receipt["tables"].items():
            self.stdout.write(f"  {table}: {json.dumps(done)}")
        for name in ("cache_keys", "broker_tasks", "mentions_by_others"):
            self.stdout.write(f"  {name}: {json.dumps(receipt[name])}")
        self.stdout.write(f"erased {user!r} of {tenant.slug}; receipt {request.pk}")

    def _request(self, user: str, options: dict[str, Any]) -> ErasureRequest:
        try:
            agent_id = find_agent(options["agent"]).id if options["agent"] else None
        except AgentNotFound as error:
            raise UsageError(str(error)) from error
        operator = getpass.getuser()
        try:
            return request_erasure(
                user,
                by=Actor(ActorKind.OPERATOR, operator, operator),
                agent_id=agent_id,
                threads=options["thread"],
                reason=options["reason"],
            )
        except AlreadyRequested:
            standing = ErasureRequest.objects.open().filter(user_id=user, agent_id=agent_id).get()
            if set(options["thread"]) - set(standing.threads):
                standing.threads = sorted({*standing.threads, *options["thread"]})
                standing.save(update_fields=["threads"])
            return standing
