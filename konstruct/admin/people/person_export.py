"""All data of a person as a page for people, such as for a request by Art. 15 GDPR."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.admin.utils import display_for_field, display_for_value
from django.db.models import ForeignKey, JSONField, Model, UUIDField
from django.template.loader import render_to_string
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.orchestrator.identities.person_export import PersonExport, exported_models
from konstruct.templatetags.texts import translated
from memory.models import Message

# The page leaves out these kinds, which repeat messages, and columns about how memory works.
NOT_ON_PAGE: Final = ("memory_conversationembedding", "memory_scope")
TECHNICAL: Final = (
    *("hits", "cut", "injected", "prompt", "embedding_model", "number", "message_ids", "folded"),
    *("valid_from_precision", "valid_to_precision", "milliseconds", "author_id", "start", "end"),
    "erasures",
)
# The text of a row in the page, by the first of these columns that it has.
TEXTS: Final = ("content", "quote", "name", "query", "question", "reason")
# Columns with words in English, which the page translates.
TRANSLATED: Final = ("review_reason", "reason", "subject")
TITLES: Final = {"recent_turns": _("Recent turns"), "sessions": _("Sessions")}
_LABELS: Final = {"agent": _("agent"), "at": _("created at"), "unreadable": _("Not readable")}
TURN_LABELS: Final = {field.attname: field.verbose_name for field in Message._meta.fields} | _LABELS


class PersonPage(PersonExport):
    """All data of a person, as a page.

    Args:
        user_ids: all ids of the person.
        agents: the names of all agents.
    """

    def __init__(self, user_ids: Sequence[str], agents: dict[UUID, str]) -> None:
        super().__init__(user_ids, agents)
        self._facts: dict[UUID, str] = {}

    def as_page(self, **context: Any) -> str:
        """Return a page. Ids of rows are left out, as are empty values.

        Args:
            context: values of person_export.html.
        """
        sections: list[tuple[Any, list[Any]]] = []
        for table, model in exported_models().items():
            if table not in NOT_ON_PAGE:
                labels = {field.attname: field.verbose_name for field in model._meta.fields}
                texts = (self._as_text(model, row) for row in self.rows_of(model))
                printed = [_printed_row(text, labels) for text in texts]
                sections.append((model._meta.verbose_name_plural, printed))
        for name, rows in self.rows_without_model():
            printed = [_printed_row(_turn_as_text(row), TURN_LABELS) for row in rows]
            sections.append((TITLES[name], printed))
        return render_to_string("konstruct/person_export.html", {**context, "sections": sections})

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
