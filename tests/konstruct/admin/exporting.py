"""Exports of lists, as a member of the team and a worker make them."""

import csv
import io
from typing import Any
from uuid import UUID

from django.test import Client

from memory.models import Message
from tenants.admin.exports import write_file
from tenants.audit.people import hold_people
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.conftest import Program


def add_messages(program: Program, *contents: str, **fields: Any) -> None:
    """Record messages of Maria, without a pipeline."""
    row = {"user_id": "maria", "thread_id": "t", "channel": "rest", "role": "user", **fields}
    with tenant_scope(program.tenant.id):
        hold_people(["maria"])
        for content in contents:
            Message.objects.create(agent_id=program.agent.pk, content=content, **row)


def request_export(client: Client, page: str, query: str = "") -> UUID:
    """Press Export on a list. Return the id of the export."""
    answer = client.post(f"{page}export/{query}")
    assert answer.status_code == 302, answer.content
    return UUID(answer["Location"].split("/")[-2])


def write(client: Client, export_id: UUID) -> None:
    """Do the job of an export, as a worker does."""
    slug = client.defaults["HTTP_HOST"].partition(".")[0]
    write_in(Tenant.objects.get(slug=slug).pk, export_id)


def write_in(tenant_id: UUID, export_id: UUID) -> None:
    """Do the job of an export of a tenant, as a worker does."""
    with tenant_scope(tenant_id):
        write_file(export_id)


def download(client: Client, export_id: UUID) -> str:
    """Download the file of an export."""
    answer = client.get(f"/admin/exports/{export_id}/download/")
    assert answer.status_code == 200, answer
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="')
    return answer.getvalue().decode()


def export(client: Client, page: str, query: str = "") -> str:
    """Export a list. Return the file."""
    export_id = request_export(client, page, query)
    write(client, export_id)
    return download(client, export_id)


def exported(client: Client, page: str, query: str = "") -> list[dict[str, Any]]:
    """Export a list. Return its rows."""
    return list(csv.DictReader(io.StringIO(export(client, page, query), newline="")))
