"""What lists can be narrowed by, and how: the same names everywhere."""

from collections.abc import Mapping
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from konstruct.api.auth.caller import Caller
from konstruct.api.http.bodies.fields import ChannelIdField, MomentField, StrictSerializer

M = TypeVar("M", bound=Model)


class OfAgentAndUser(StrictSerializer):
    """Filters of what belongs to an agent and a user."""

    agent = ChannelIdField(required=False, help_text="Only of this agent (name or id).")
    user_id = ChannelIdField(required=False, help_text="Only of this user.")


class InTime(StrictSerializer):
    """Filters of what has a moment."""

    since = MomentField(required=False, help_text="Only from this moment on (with a time zone).")
    until = MomentField(required=False, help_text="Only before this moment (with a time zone).")


def narrowed(rows: "QuerySet[M]", filters: Mapping[str, Any], caller: Caller) -> "QuerySet[M]":
    """Return what of the rows the caller may see and asks for, by the filters of this module."""
    rows = caller.rows(rows)
    if "agent" in filters:
        rows = rows.filter(agent_id=caller.agent(filters["agent"]).id)
    if "user_id" in filters:
        rows = rows.filter(user_id=caller.user(filters["user_id"]))
    if "since" in filters:
        rows = rows.filter(created_at__gte=filters["since"])
    if "until" in filters:
        rows = rows.filter(created_at__lt=filters["until"])
    return rows
