"""Count the rows of a sent message, and read the fields of a problem document."""

from typing import Any

from konstruct.orchestrator.models import PendingReply
from memory.models import Message, PendingEmbedding
from tenants.context import tenant_scope
from tests.konstruct.conftest import Program


def rows(program: Program) -> tuple[int, int, int]:
    """Count the rows of a message."""
    with tenant_scope(program.tenant.id):
        return (
            Message.objects.count(),
            PendingReply.objects.count(),
            PendingEmbedding.objects.count(),
        )


def refused_fields(response: Any) -> list[str]:
    """Return the fields that a problem document names."""
    assert response.headers["Content-Type"] == "application/problem+json"
    return [error["field"] for error in response.json()["errors"]]
