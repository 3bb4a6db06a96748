"""Columns and filters of lists: colours, numbers and times, and the columns of both logs."""

import json
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display


class Colours(dict[str, str]):
    """Colours by the English word of a badge, found by the word in the reader's language too."""

    def __missing__(self, word: str) -> str:
        for key, colour in self.items():
            if gettext(key) == word:
                return colour
        raise KeyError(word)

    def __contains__(self, word: object) -> bool:
        return super().__contains__(word) or any(gettext(key) == word for key in self)


def format_number(number: float | Decimal, decimals: int = 0) -> str:
    """Return a number with the separators of the reader's language, rounded to some decimals."""
    # Django's function cuts decimals off.
    return str(number_format(f"{number:.{decimals}f}", decimals, force_grouping=True))


def time_text(moment: datetime) -> str:
    """Return a time as templates show it: `1 Jul 2026, 14:30:15 CEST`."""
    return date_format(timezone.localtime(moment), "DATETIME_FORMAT")


class ChoiceFilter(admin.SimpleListFilter):
    """A filter with known values: a subclass declares `values` (or `lookups`) and `narrow`."""

    values: ClassVar[dict[str, Any]]
    """The label of each value of the parameter."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.values.items())

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        value = self.value()
        return self.narrow(queryset, value) if value in dict(self.lookup_choices) else queryset

    def narrow(self, rows: Any, value: str) -> Any:
        """Return the rows that match a value."""
        raise NotImplementedError


MAX_CELL_CHARACTERS = 120
_SEPARATE_FIELDS = ("before", "after")


class EventColumns:
    """Columns and fields of an admin page of logged events."""

    counted: Any = (_("entry"), _("entries"))
    ordering = ("-id",)
    sortable_by = ()

    @display(description=_("Action"))
    def what(self, event: Any) -> str:
        """The label of the action."""
        return str(event.get_action_display())

    @display(description=_("Subject"))
    def subject_label(self, event: Any) -> str:
        """The kind of thing, which the log has in English."""
        return gettext(event.subject)

    @display(description=_("Before → after, or parameters"))
    def changed(self, event: Any) -> str:
        """The changed fields or the parameters, abridged."""
        changes = [f"{name}: {old} → {new}" for name, old, new in _fields(event.detail)]
        others = [f"{name}: {_value_text(value)}" for name, value in event.detail.items() if value]
        text = "; ".join(changes or others)
        return text if len(text) <= MAX_CELL_CHARACTERS else f"{text[:MAX_CELL_CHARACTERS]}…"

    @display(description=_("Changes"))
    def changes(self, event: Any) -> SafeString | str:
        """Each field with its values before and after."""
        rows = _fields(event.detail)
        if not rows:
            return gettext("Nothing.")
        return format_html(
            '<table class="k-table"><thead><tr><th scope="col">{}</th>'
            '<th scope="col">{}</th><th scope="col">{}</th></tr></thead>'
            "<tbody>{}</tbody></table>",
            gettext("Field"),
            gettext("Before"),
            gettext("After"),
            format_html_join("", '<tr><th scope="row">{}</th><td>{}</td><td>{}</td></tr>', rows),
        )

    @display(description=_("Parameters"))
    def asked(self, event: Any) -> SafeString:
        """The parameters and other details of the action."""
        detail = {
            name: value for name, value in event.detail.items() if name not in _SEPARATE_FIELDS
        }
        return format_html(
            '<pre class="k-pre">{}</pre>', json.dumps(detail, indent=2, ensure_ascii=False)
        )


def _fields(detail: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return each changed field with its values before and after, but not those of secrets."""
    before, after = detail.get("before") or {}, detail.get("after") or {}
    names = [*before, *(name for name in after if name not in before)]
    values = [(name, _value_text(before.get(name)), _value_text(after.get(name))) for name in names]
    secrets = detail.get("withheld", [])
    return [*values, *((name, gettext("not shown"), gettext("changed")) for name in secrets)]


def _value_text(value: Any) -> str:
    if value in (None, "", [], {}):
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
