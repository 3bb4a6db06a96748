"""Celery tasks that ask Slack for something."""

from celery import shared_task

from konstruct.channels.slack import users
from tenants.serving.tenant_task import TenantTask


@shared_task(base=TenantTask)
def learn_name(tenant_id: str, workspace: str, slack_id: str, user_id: str) -> None:
    """Ask Slack what a user is called. Nothing waits for it."""
    users.learn_name(workspace, slack_id, user_id)
