"""All that is known of a person, as JSON that is sent while it is read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model
from django.utils import timezone

from konstruct.orchestrator.models import Agent, ChannelIdentity, Escalation, ToolCall
from memory.browse import people
from memory.conversations.short_term import get_recent_messages
from tenants.audit.models import AccessEvent
from tenants.context import required_tenant_id

_encode: Callable[[Any], str] = DjangoJSONEncoder(ensure_ascii=False).encode


def person_as_json(user_id: str, agents: Sequence[Agent]) -> Iterator[str]:
    """One JSON document in pieces, so that no export is too large for memory."""
    yield f'{{"user_id": {_encode(user_id)}, "exported_at": {_encode(timezone.now())}, "agents": ['
    for number, agent in enumerate(agents):
        yield ",\n" if number else "\n"
        yield f'{{"id": {_encode(agent.pk)}, "name": {_encode(agent.name)}'
        for name, rows in (
            ("messages", people.messages_of(user_id, agent.pk)),
            ("stored_directly", people.direct_embeddings_of(user_id, agent.pk)),
            ("recalls", people.recalls_of(user_id, agent.pk)),
            ("window", get_recent_messages(required_tenant_id(), agent.pk, user_id)),
            ("items", people.items_of(user_id, agent.pk)),
            ("cleared_windows", people.cleared_windows_of(user_id, agent.pk)),
        ):
            yield f', "{name}": '
            yield from _array(rows)
        yield "}"
    yield '], "facts": '
    yield from _array(people.facts_of(user_id))
    for name, row in (
        ("identities", ChannelIdentity),
        ("escalations", Escalation),
        ("tool_calls", ToolCall),
    ):
        yield f', "{name}": '
        yield from _array(_rows(row, user_id))
    yield ', "access_log": '
    yield from _array(_accesses(user_id))
    yield "}\n"


def _array(rows: Iterable[Any]) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield (",\n" if number else "\n") + _encode(row)
    yield "]"


def _rows(model: type[Model], user_id: str) -> Iterator[dict[str, Any]]:
    """What a table has of the user, whole."""
    names = [field.attname for field in model._meta.concrete_fields if field.name != "tenant_id"]
    yield from model._default_manager.filter(user_id=user_id).order_by("pk").values(*names)


def _accesses(user_id: str) -> Iterator[dict[str, Any]]:
    """The activity on this person's memory."""
    rows = (
        AccessEvent.objects.filter(user_id=user_id)
        .order_by("-id")
        .values("created_at", "actor_kind", "actor", "action", "subject")[:10_000]
    )
    yield from map(dict, rows)
