"""All data of a person: as JSON, and as a page for people, such as for a request by Art. 15 GDPR.

What there is of a person comes from the declarations of personal data (tenants/personal_data.py),
by the conditions that an erasure uses.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.contrib.admin.utils import display_for_field, display_for_value
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import BinaryField, ForeignKey, JSONField, Model, UUIDField
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.orchestrator.identities.erasure_requests import threads_of
from konstruct.templatetags.texts import translated
from memory.context import SessionStore
from memory.context.exceptions import CheckpointRefused, UnreadableSession
from memory.conversations.short_term import get_recent_messages
from memory.models import Message
from tenants.admin.list_tools import UNREADABLE_FIELDS, in_batches
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
    "audit_person": "the pseudonym in the access log",
    "checkpoints": "exported as the messages of sessions",
    "checkpoint_blobs": "exported as the messages of sessions",
    "checkpoint_writes": "exported as the messages of sessions",
}
# The page has these first, in this order.
FIRST: Final = (
    *("memory_personname", "orchestrator_channelidentity", "memory_memoryentry"),
    *("memory_factevidence", "memory_factevent", "memory_message", "memory_recallexclusion"),
    *("orchestrator_extractionrun", "orchestrator_escalation", "orchestrator_toolcall"),
)
# Columns of the access log: the others may have data of other people.
ACCESS_LOG: Final = ("created_at", "actor_kind", "actor", "action", "subject")
MAX_ACCESS_EVENTS: Final = 10_000
MAX_SESSION_MESSAGES: Final = 10_000
# The page leaves out these kinds, which repeat messages, and columns about how memory works.
NOT_ON_PAGE: Final = ("memory_conversationembedding", "memory_scope")
TECHNICAL: Final = (
    *("hits", "cut", "injected", "prompt", "embedding_model", "number", "message_ids", "folded"),
    *("valid_from_precision", "valid_to_precision", "milliseconds", "author_id", "start", "end"),
)
# The text of a row in the page, by the first of these columns that it has.
TEXTS: Final = ("content", "quote", "name", "query", "question", "reason")
# Columns with words in English, which the page translates.
TRANSLATED: Final = ("review_reason", "reason", "subject")
TITLES: Final = {"recent_turns": _("Recent turns"), "sessions": _("Sessions")}
_LABELS: Final = {"agent": _("agent"), "at": _("created at"), "unreadable": _("Not readable")}
TURN_LABELS: Final = {field.attname: field.verbose_name for field in Message._meta.fields} | _LABELS
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
_OF_MESSAGES: Final = "IN (SELECT id FROM memory_message WHERE user_id = ANY(%(users)s))"

Rows = Iterator[dict[str, Any]]


class ExportEncoder(DjangoJSONEncoder):
    """Times in the current time zone, with all of their digits."""

    def default(self, o: Any) -> Any:
        return timezone.localtime(o).isoformat() if isinstance(o, datetime) else super().default(o)


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
        self._facts: dict[UUID, str] = {}

    def as_json(self) -> Iterator[str]:
        """Yield one JSON document in pieces, so that no export is too large for memory."""
        encode = partial(json.dumps, cls=ExportEncoder, ensure_ascii=False)
        head = {
            "user_id": self.user_ids[0],
            "user_ids": self.user_ids,
            "exported_at": timezone.now(),
            "agents": [{"id": pk, "name": name} for pk, name in self.agents.items()],
        }
        yield encode(head)[:-1]
        parts = ((part_name(model), self._rows_of(model)) for model in exported_models().values())
        for name, rows in chain(parts, self._without_model()):
            yield f', "{name}": ['
            for number, row in enumerate(rows):
                yield (",\n" if number else "\n") + encode(row)
            yield "]"
        yield "}\n"

    def as_page(self, **context: Any) -> str:
        """Return a page. Ids of rows are left out, as are empty values.

        Args:
            context: values of person_export.html.
        """
        sections: list[tuple[Any, list[Any]]] = []
        for table, model in exported_models().items():
            if table not in NOT_ON_PAGE:
                labels = {field.attname: field.verbose_name for field in model._meta.fields}
                texts = (self._as_text(model, row) for row in self._rows_of(model))
                printed = [_printed_row(text, labels) for text in texts]
                sections.append((model._meta.verbose_name_plural, printed))
        for name, rows in self._without_model():
            printed = [_printed_row(_turn_as_text(row), TURN_LABELS) for row in rows]
            sections.append((TITLES[name], printed))
        return render_to_string("konstruct/person_export.html", {**context, "sections": sections})

    def _rows_of(self, model: type[Model]) -> Rows:
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

    def _without_model(self) -> Iterator[tuple[str, Rows]]:
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
        store = SessionStore(required_tenant_id())
        for thread in threads_of(self.user_ids):
            if thread.has_session and thread.session_belongs_to_person(strict=False):
                try:
                    found = store.get_session_messages(thread.thread_id, MAX_SESSION_MESSAGES)
                except (UnreadableSession, CheckpointRefused) as error:
                    found = [{"unreadable": str(error)}]
                yield from ({"thread_id": thread.thread_id, **message} for message in found)

    def _as_text(self, model: type[Model], row: dict[str, Any]) -> dict[str, Any]:
        """Return the values of a row as people read them, without the ids of rows."""
        texts = {}
        for name, value in row.items():
            field: Any = model._meta.get_field(name)
            if field.attname == "memory_id" and not field.primary_key:
                text: Any = self._facts.get(value, "")
            elif name == "agent_id":
                text = self.agents.get(value, "")
            elif is_internal(field):
                text = ""
            elif name in TRANSLATED:
                text = translated(value)
            elif isinstance(value, bool):
                text = gettext("Yes") if value else gettext("No")
            elif isinstance(field, JSONField):
                text = json.dumps(value, ensure_ascii=False) if value else ""
            else:
                text = display_for_field(value, field, "")
            texts[name] = text
        if "memory_id" in row and "content" in row:
            self._facts[row["memory_id"]] = row["content"]
        return texts


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


def is_internal(field: Any) -> bool:
    is_key = field.primary_key or isinstance(field, UUIDField | ForeignKey)
    return is_key or field.name in TECHNICAL


def _turn_as_text(turn: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a turn as people read them, without the id of its message."""
    texts = {**turn, "message_id": "", "role": gettext(turn.get("role", ""))}
    if turn.get("at"):
        texts["at"] = display_for_value(datetime.fromisoformat(turn["at"]), "")
    return texts


def _printed_row(row: Mapping[str, Any], labels: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Return the text of a row, and its other values with their labels."""
    shown = {name: value for name, value in row.items() if value not in (None, "", [], {})}
    text = shown.pop(next((name for name in TEXTS if name in shown), ""), "")
    return text, [(labels.get(name, name), value) for name, value in shown.items()]
