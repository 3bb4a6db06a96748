"""manage.py erase_user: erase a person in every store, with a receipt."""

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from konstruct.orchestrator.agents import find_agent
from konstruct.orchestrator.identities import channel_identities, erasure_requests
from konstruct.privacy.erasure.erasing import carry_out
from tenants.audit import access_log, operator_log
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, require_confirmation, tenant_of


class Command(KonstructCommand):
    """Carries out a new request, or the open one for this user."""

    help = (
        "Erases a person from a tenant, with all linked ids, and stores a receipt. An open "
        "erasure is carried out as it was requested: run it again if it is interrupted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="Tenant of the user.")
        parser.add_argument(
            "--user", required=True, help="Id of the user in the channel, compared exactly."
        )
        parser.add_argument(
            "--agent", metavar="NAME_OR_ID", help="Erase the data of one agent only."
        )
        parser.add_argument(
            "--thread",
            action="append",
            default=[],
            help="Session of a graph to erase too; may be repeated.",
        )
        parser.add_argument("--reason", default="", help="Reason, stored in the receipt.")
        parser.add_argument(
            "--rewrite",
            action="store_true",
            help=(
                "Rewrite every changed table, of any size, so that no removed data stays in its "
                "file. Each table is locked while this runs."
            ),
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")
        parser.add_argument("--json", action="store_true", help="Print the receipt as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        user = options["user"]
        with tenant_scope(tenant.id):
            agent_id = find_agent(options["agent"]).id if options["agent"] else None
            self._show_user(user, tenant.slug, agent_id)
            if not options["yes"]:
                question = f"Erase {user!r} of {tenant.slug}? Type the user's id to confirm: "
                require_confirmation(question, user, "not erased")
            request = carry_out(
                erasure_requests.request_erasure(
                    user,
                    by=access_log.Actor.operator(operator_log.operator_name()),
                    agent_id=agent_id,
                    threads=options["thread"],
                    reason=options["reason"],
                    command=self.name,
                ),
                rewrite=options["rewrite"],
                report=lambda step: self.stderr.write(f"  {step}"),
            )
        receipt = {"id": str(request.pk), "user_id": request.user_id, **(request.receipt or {})}
        if options["json"]:
            self.stdout.write(json.dumps(receipt, indent=2))
            return
        for table, done in receipt["tables"].items():
            self.stdout.write(f"  {table}: {json.dumps(done)}")
        for name in ("cache_keys", "sessions_left", "replies_to_others", "storage"):
            self.stdout.write(f"  {name}: {json.dumps(receipt[name])}")
        if not receipt["found"]:
            self.stdout.write(f"nothing was kept of {user!r} in {tenant.slug}")
        self.stdout.write(
            f"erased {user!r} of {tenant.slug}; receipt {request.pk}, under {request.user_id}"
        )

    def _show_user(self, user: str, slug: str, agent_id: UUID | None) -> None:
        user_ids = channel_identities.linked_ids(user)
        if not channel_identities.is_known(user_ids):
            self.stderr.write(f"Nothing is known of {user!r} in {slug}.")
        for other in user_ids[1:]:
            self.stderr.write(f"{other!r} is linked to {user!r}, and erased with them.")
        if count := erasure_requests.replies_to_others(user_ids, agent_id=agent_id).count():
            self.stderr.write(
                f"Replies to others that were written with their words: {count}. They are kept:"
                " the admin and the API also erase them."
            )
