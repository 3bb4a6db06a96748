"""Forms of rows that several people save: an update that would be lost is refused once.

The form of a row has a hidden field with a digest of each value that it was opened with. When it
is sent, values that were stored since are compared with those that were entered.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from django import forms
from django.db.models import Model
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import Truncator
from django.utils.translation import gettext

VERSION: Final = "row_version"
DIGEST_CHARACTERS: Final = 12
MAX_SHOWN_CHARACTERS: Final = 300

LastChange = Callable[[Any], tuple[str, datetime] | None]
"""Returns who changed a row last, and when; None if it is not known."""


class RowForm(forms.ModelForm):
    """The form of a row that exists."""

    last_change: LastChange
    is_refused = False
    """Whether this form was refused, because values that were stored since would be lost."""

    @property
    def row_version(self) -> str:
        """The hidden field: of a form that was refused, what the next one confirms."""
        sent: str = self.data.get(VERSION, "")
        if sent and not self.is_refused:
            return sent
        return ",".join(f"{name}:{digest}" for name, digest in self._digests().items())

    def full_clean(self) -> None:
        """Check the entries; then refuse to replace values that were stored since, unless equal.

        A form without the hidden field is one of a program, which replaces what is stored.
        """
        super().full_clean()
        sent = dict(pair.partition(":")[::2] for pair in self.data.get(VERSION, "").split(","))
        stored = self._digests()
        lost = [name for name in self.changed_data if sent.get(name, stored[name]) != stored[name]]
        if lost:
            self.is_refused = True
            self.add_error(None, self._refusal(lost))
            for name in lost:
                text = _shown(self.fields[name], self._stored(name))
                self.add_error(name, gettext("Stored now: “%(value)s”.") % {"value": text})

    def _refusal(self, lost: Iterable[str]) -> str:
        names = ", ".join(str(self[name].label) for name in lost)
        entered = gettext(
            "What you entered is kept below, and is not saved. Save again to replace what is"
            " stored."
        )
        if (last := self.last_change(self.instance)) is None:
            changed = gettext("This was changed after you had opened it: %(fields)s.")
            return f"{changed % {'fields': names}} {entered}"
        by, at = last
        changed = gettext(
            "%(name)s changed this on %(time)s, after you had opened it: %(fields)s."
        ) % {
            "name": by,
            "time": date_format(timezone.localtime(at), "DATETIME_FORMAT"),
            "fields": names,
        }
        return f"{changed} {entered}"

    def _stored(self, name: str) -> Any:
        return self.get_initial_for_field(self.fields[name], name)

    def _digests(self) -> dict[str, str]:
        names = [name for name, field in self.fields.items() if not field.disabled]
        return {name: _digest(self._stored(name)) for name in names}


def row_form(form: type[forms.ModelForm], last_change: LastChange) -> type[forms.ModelForm]:
    """Return the form with the check of a `RowForm`.

    Args:
        form: the form of a model.
        last_change: finds who changed the row last.
    """
    metaclass: Any = type(form)
    checked: type[forms.ModelForm] = metaclass(
        form.__name__,
        (RowForm, form),
        {"last_change": staticmethod(last_change), "__module__": form.__module__},
    )
    return checked


def _digest(value: Any) -> str:
    text = json.dumps(_plain(value), default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


def _plain(value: Any) -> Any:
    """Return a value that is the same for the same rows in another order."""
    if isinstance(value, Model):
        return str(value.pk)
    if isinstance(value, list) and all(isinstance(each, Model) for each in value):
        return sorted(str(each.pk) for each in value)
    return value


def _shown(field: forms.Field, value: Any) -> str:
    """Return a stored value as people read it."""
    values = value if isinstance(value, list | tuple) else [value]
    choices = {str(key): str(label) for key, label in getattr(field, "choices", ())}
    return Truncator(", ".join(_text(each, choices) for each in values)).chars(MAX_SHOWN_CHARACTERS)


def _text(value: Any, choices: dict[str, str]) -> str:
    if isinstance(value, bool):
        return gettext("Yes") if value else gettext("No")
    if isinstance(value, datetime):
        return date_format(timezone.localtime(value), "DATETIME_FORMAT")
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    text = str(value.pk if isinstance(value, Model) else "" if value is None else value)
    return choices.get(text, text)
