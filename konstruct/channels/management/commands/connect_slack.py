"""manage.py connect_slack: connects a workspace by its bot's token, without OAuth."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from konstruct.channels.models import SlackInstallation
from konstruct.channels.slack.installations import check_token, connect
from konstruct.orchestrator.agents import find_agent
from tenants.audit import access_log, changes
from tenants.audit.models import Action
from tenants.context import tenant_scope
from tenants.management.base import KonstructCommand, UsageError, tenant_of

VARIABLE = "SLACK_BOT_TOKEN"


class Command(KonstructCommand):
    """Connects a workspace to a tenant's agent."""

    help = (
        "Connects a Slack workspace to an agent. The bot's token is read from the environment "
        f"({VARIABLE}) or from standard input, never from the command line."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tenant", required=True, metavar="SLUG", help="Tenant of the workspace."
        )
        parser.add_argument(
            "--agent",
            required=True,
            metavar="NAME_OR_ID",
            help="Agent that answers in the workspace.",
        )
        parser.add_argument(
            "--workspace", required=True, metavar="T…", help="Slack team id of the workspace."
        )
        parser.add_argument(
            "--bot-user",
            metavar="U…",
            help="Slack user id of the bot. If given, the token is not checked with Slack.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        token = (os.environ.get(VARIABLE) or sys.stdin.readline()).strip()
        if not token:
            raise UsageError(f"no token: set {VARIABLE}, or give it on standard input")
        with tenant_scope(tenant.id):
            agent = find_agent(options["agent"], active=True)
        workspace, bot, name = options["workspace"], options["bot_user"], ""
        if bot is None:
            name, bot = check_token(token, workspace=workspace)
        connect(
            tenant_id=tenant.id,
            agent_id=agent.id,
            workspace=workspace,
            name=name,
            bot_user_id=bot,
            token=token,
            by="connect_slack",
            on_change=self._record,
        )
        self.stdout.write(
            f"connected Slack workspace {name or workspace} with {agent.name} of {tenant.slug}"
        )

    def _record(self, was: changes.RowState, installation: SlackInstallation) -> None:
        action = Action.CREATE if was is changes.NO_STATE else Action.EDIT
        access_log.record_command(
            self.name,
            action,
            "Slack workspace",
            subject_id=installation.pk,
            agent_id=installation.agent_id,
            before=was,
            after=changes.row_state(installation),
        )
