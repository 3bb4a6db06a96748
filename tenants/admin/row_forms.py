"""Forms of rows: an update that would be lost, and a second row of one form, are refused once.

The form of a row has a hidden field with a digest of each value that it was opened with. When it
is sent, values that were stored since are compared with those that were entered. The form of a new
row has the id that the row gets.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from django import forms
from django.db.models import Model
from django.forms.formsets import DELETION_FIELD_NAME
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.text import Truncator
from django.utils.translation import gettext

from tenants.context import execute

VERSION: Final = "row_version"
ROW_ID: Final = "row_id"
DIGEST_CHARACTERS: Final = 12
MAX_SHOWN_CHARACTERS: Final = 300

LastChange = Callable[[Any], tuple[str, datetime] | None]
"""Returns who changed a row last, and when; None if it is not known."""


class RowForm(forms.ModelForm):
    """The form of a row that exists, or a form of an inline, which can also be one of a new row."""

    last_change: LastChange
    is_refused = False
    """Whether this form was refused, because values that were stored since would be lost."""

    @property
    def row_version(self) -> str:
        """The hidden field: of a form that was refused, what the next one confirms."""
        if (sent := self._sent_version()) and not self.is_refused:
            return sent
        return ",".join(f"{name}:{digest}" for name, digest in self._digests().items())

    def full_clean(self) -> None:
        """Check the entries; then refuse to replace values that were stored since, unless equal.

        A form without the hidden field was sent by a program, and replaces the stored values. A
        form of an inline is also refused if it deletes a row with such values.
        """
        super().full_clean()
        if self.instance._state.adding:
            return
        sent = dict(pair.partition(":")[::2] for pair in self._sent_version().split(","))
        stored = self._digests()
        lost = [name for name in self.changed_data if sent.get(name, stored[name]) != stored[name]]
        if lost:
            self.is_refused = True
            self.add_error(None, self._refusal(lost))
            for name in lost:
                text = _display_text(self.fields[name], self._stored(name))
                self.add_error(name, gettext("Stored now: “%(value)s”.") % {"value": text})
            # A formset ignores errors of a form that deletes its row.
            self.cleaned_data.pop(DELETION_FIELD_NAME, None)

    def _sent_version(self) -> str:
        version: str = self.data.get(self.add_prefix(VERSION), "")
        return version

    def _refusal(self, lost: Iterable[str]) -> str:
        names = ", ".join(str(self[name].label) for name in lost)
        entered = gettext(
            "Your input is kept below, and is not saved. Save again to replace the stored values."
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


class FormWithId(forms.BaseForm):
    """A form that has an id, by which it is known when it is sent twice."""

    @cached_property
    def row_id(self) -> UUID:
        """The id of what the form makes."""
        try:
            return UUID(self.data.get(ROW_ID, ""))
        except ValueError:
            return uuid4()


class NewRowForm(FormWithId):
    """The form of a new row. If it is sent twice, also at the same time, it makes one row.

    Check it in the transaction that saves the row.
    """

    row_model: type[Model]
    sent_twice = ""
    """A sentence for the error, after the one that names the row."""

    def full_clean(self) -> None:
        """Check the entries, and that no form with the same id has saved its row."""
        super().full_clean()
        if not self.is_bound:
            return
        lock_form(f"{self.row_model._meta.label_lower} {self.row_id}")
        saved = self.row_model._default_manager.filter(pk=self.row_id).first()
        if saved is not None:
            self.row_id = uuid4()
            text = gettext(
                "This form was sent twice, and %(row)s is saved already. Save again only to add"
                " another one."
            )
            self.add_error(None, " ".join(filter(None, [text % {"row": saved}, self.sent_twice])))


def row_form(form: type[forms.ModelForm], last_change: LastChange) -> type[forms.ModelForm]:
    """Return the form with the check of a `RowForm`.

    Args:
        form: the form of a model.
        last_change: finds who changed the row last.
    """
    return _derive_form(form, RowForm, last_change=staticmethod(last_change))


def new_row_form(
    form: type[forms.ModelForm], row_model: type[Model], sent_twice: str = ""
) -> type[forms.ModelForm]:
    """Return the form with the check of a `NewRowForm`; the arguments are its attributes."""
    return _derive_form(form, NewRowForm, row_model=row_model, sent_twice=sent_twice)


def lock_form(key: str) -> None:
    """Wait for other transactions that have called this with the same key.

    Rows are locked later, in the order that each service chooses.
    """
    execute("SELECT public.wait_for_tenant_lock(%s)", [f"form {key}"])


def _derive_form(form: Any, check: type[forms.BaseForm], **attributes: Any) -> Any:
    metaclass: Any = type(form)
    return metaclass(form.__name__, (check, form), {"__module__": form.__module__, **attributes})


def _digest(value: Any) -> str:
    text = json.dumps(_plain(value), default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


def _plain(value: Any) -> Any:
    """Return a value that is the same for the same rows in another order."""
    if isinstance(value, Model):
        return str(value.pk)
    if isinstance(value, list) and all(isinstance(item, Model) for item in value):
        return sorted(str(row.pk) for row in value)
    return value


def _display_text(field: forms.Field, value: Any) -> str:
    """Return a stored value as people read it."""
    values = value if isinstance(value, list | tuple) else [value]
    choices = {str(key): str(label) for key, label in getattr(field, "choices", ())}
    texts = (_text(item, choices) for item in values)
    return Truncator(", ".join(texts)).chars(MAX_SHOWN_CHARACTERS)


def _text(value: Any, choices: dict[str, str]) -> str:
    if isinstance(value, bool):
        return gettext("Yes") if value else gettext("No")
    if isinstance(value, datetime):
        return date_format(timezone.localtime(value), "DATETIME_FORMAT")
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    text = str(value.pk if isinstance(value, Model) else "" if value is None else value)
    return choices.get(text, text)
