"""All data of a person as JSON, such as for a request by Art. 15 GDPR.

What there is of a person comes from the declarations of personal data (tenants/personal_data.py),
by the conditions that an erasure uses.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import BinaryField, Model
from django.utils import timezone

from konstruct.orchestrator.identities.erasure_requests import threads_of
from memory import context, exceptions
from memory.conversations.short_term import get_recent_messages
from tenants.admin.recorded_admin import UNREADABLE_FIELDS, in_batches
from tenants.audit.changes import is_secret
from tenants.context import required_tenant_id
from tenants.personal_data import personal_tables

# Tables that are not in an export, with the reason.
NOT_EXPORTED: Final = {
    "memory_posting": "the index of the words of messages",
    "memory_indexedmessage": "the index of the words of messages",
    "memory_messageattribute": "the metadata of messages, for searches",
    "memory_memoryattribute": "the metadata of facts, for searches",
    "memory_pendingembedding": "messages that wait for a vector",
    "tenants_job": "work that waits, without content",
    "api_creation": "digests of requests",
    "audit_listexport": "requests of the team for files, which an erasure deletes",
    "audit_listexportpart": "files of the team with rows of lists, which an erasure deletes",
    "orchestrator_historyimport": "files of the team with all people in them, which it deletes",
    "checkpoints": "exported as the messages of sessions",
    "checkpoint_blobs": "exported as the messages of sessions",
    "checkpoint_writes": "exported as the messages of sessions",
}
# An export has these first, in this order.
FIRST: Final = (
    *("memory_personname", "orchestrator_channelidentity", "memory_memoryentry"),
    *("memory_factevidence", "memory_factevent", "memory_message", "memory_recallexclusion"),
    *("orchestrator_extractionrun", "orchestrator_escalation", "orchestrator_toolcall"),
)
# Columns of the access log: the others may have data of other people.
ACCESS_LOG: Final = ("created_at", "actor_kind", "actor", "action", "subject")
MAX_ACCESS_EVENTS: Final = 10_000
MAX_SESSION_MESSAGES: Final = 10_000
PART_BYTES: Final = 200_000
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_OF_MESSAGES: Final = "IN (SELECT id FROM memory_message WHERE user_id = ANY(%(users)s))"

Rows = Iterator[dict[str, Any]]


def exported_models() -> dict[str, type[Model]]:
    """Return the models of an export by their tables, in the order of the page."""
    models = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}
    tables = [table for table in personal_tables() if table not in NOT_EXPORTED]
    return {table: models[table] for table in dict.fromkeys((*FIRST, *reversed(tables)))}


class PersonExport:
    """All data of a person, read when it is asked for.

    Args:
        user_ids: all ids of the person.
        agents: the names of all agents.
    """

    def __init__(self, user_ids: Sequence[str], agents: dict[UUID, str]) -> None:
        self.user_ids = user_ids
        self.agents = agents
        self.zone = timezone.get_current_timezone()

    def as_json(self) -> Iterator[bytes]:
        """Yield one JSON document in parts, so that no export is too large for memory.

        Each part may be read in another transaction. Times are in the time zone in which the
        export was made.
        """
        part = bytearray()
        for text in self._texts():
            part += text.encode()
            if len(part) >= PART_BYTES:
                yield bytes(part)
                part.clear()
        yield bytes(part)

    def _texts(self) -> Iterator[str]:
        encode = partial(json.dumps, default=self._encode, ensure_ascii=False)
        head = {
            "user_id": self.user_ids[0],
            "user_ids": self.user_ids,
            "exported_at": timezone.now(),
            "agents": [{"id": pk, "name": name} for pk, name in self.agents.items()],
        }
        yield encode(head)[:-1]
        parts = ((part_name(model), self.rows_of(model)) for model in exported_models().values())
        for name, rows in chain(parts, self.rows_without_model()):
            yield f', "{name}": ['
            for number, row in enumerate(rows):
                yield (",\n" if number else "\n") + encode(row)
            yield "]"
        yield "}\n"

    def _encode(self, value: Any) -> Any:
        """Return a time with all of its digits, and other values as Django's encoder does."""
        if isinstance(value, datetime):
            return timezone.localtime(value, self.zone).isoformat()
        return DjangoJSONEncoder().default(value)

    def rows_of(self, model: type[Model]) -> Rows:
        """Yield the person's rows of a table, the oldest first."""
        table = model._meta.db_table
        data = personal_tables()[table]
        conditions = [data.of_person] if data.of_person else []
        if data.message and table != "memory_message":
            conditions.append(f"{data.message} {_OF_MESSAGES}")
        where = " OR ".join(f"({condition})" for condition in conditions)
        users = list(self.user_ids)
        values = {"tenant": required_tenant_id(), "users": users, "agent": None, "names": []}
        rows = model._default_manager.extra(  # noqa: S610  # conditions of declarations
            where=[_PARAMETER.sub("%s", where)],
            params=[values[name] for name in _PARAMETER.findall(where)],
        )
        names = ACCESS_LOG if table == "audit_accessevent" else _columns(model)
        order = next((name for name in ("number", "created_at") if name in names), "pk")
        batches = in_batches(rows.only(*names), order, is_ascending=True)
        found = ({name: getattr(row, name) for name in names} for batch in batches for row in batch)
        return islice(found, MAX_ACCESS_EVENTS if names is ACCESS_LOG else None)

    def rows_without_model(self) -> Iterator[tuple[str, Rows]]:
        """Yield the turns of windows, and the messages of sessions of frameworks."""
        tenant_id = required_tenant_id()
        turns = (
            {"agent": name, **turn}
            for agent_id, name in self.agents.items()
            for user_id in self.user_ids
            for turn in get_recent_messages(tenant_id, agent_id, user_id)
        )
        yield "recent_turns", turns
        yield "sessions", self._sessions()

    def _sessions(self) -> Rows:
        store = context.SessionStore(required_tenant_id())
        for thread in threads_of(self.user_ids):
            if thread.has_session and thread.session_belongs_to_person(strict=False):
                try:
                    found = store.get_session_messages(thread.thread_id, MAX_SESSION_MESSAGES)
                except (exceptions.UnreadableSession, exceptions.CheckpointRefused) as error:
                    found = [{"unreadable": str(error)}]
                yield from ({"thread_id": thread.thread_id, **message} for message in found)


def part_name(model: type[Model]) -> str:
    """Return the name of the rows of a model in the JSON of an export."""
    data = personal_tables()[model._meta.db_table]
    return data.export.kind if data.export else str(model._meta.model_name)


def _columns(model: type[Model]) -> tuple[str, ...]:
    left_out = (*UNREADABLE_FIELDS, BinaryField)
    return tuple(
        field.attname
        for field in model._meta.concrete_fields
        if not (isinstance(field, left_out) or field.name == "tenant_id" or is_secret(field.name))
    )
