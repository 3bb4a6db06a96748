"""Parts of pages: parameters of addresses, people, forms, and messages about results."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode
from django.utils.timezone import is_aware
from django.utils.translation import gettext, gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from konstruct.admin.lists import agent_names
from konstruct.api.models import valid_id
from konstruct.orchestrator.identities.channel_identities import find_people
from memory.arguments import id_argument
from memory.browse.people import displayed_names
from memory.exceptions import InvalidArgument
from tenants.exceptions import KonstructError


def as_uuid(text: str | None) -> UUID | None:
    """Return a UUID, or None for any other text."""
    try:
        return UUID(text or "")
    except ValueError:
        return None


def as_number(text: str | None) -> int | None:
    """Return a whole number that fits a bigint, or None for any other text."""
    if text and text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    return None


def as_position(text: str | None) -> tuple[datetime, str] | None:
    """Return the moment and the key of `position_text`, or None for any other text."""
    moment, _, key = (text or "").replace("\0", "").partition(" ")
    try:
        at = parse_datetime(moment)
    except ValueError:
        return None
    return (at, key) if at and is_aware(at) else None


def position_text(at: datetime, key: object) -> str:
    """Return the position of a row in a list by time, as a parameter of an address."""
    return f"{at.astimezone(UTC).isoformat()} {key}"


def as_user_id(text: str | None) -> str:
    """Return a user's id exactly as in the address, or "" if it is missing or invalid."""
    try:
        return id_argument("user", text or "")
    except InvalidArgument:
        return ""


def agent_user_query(agent_id: UUID | None, user_id: str | None, **more: int | str) -> str:
    """Return an agent and a user, or one of them, as parameters of an address."""
    values = {"agent": str(agent_id or ""), "user": user_id or ""}
    return urlencode({**{name: value for name, value in values.items() if value}, **more})


MAX_CHOICES: Final = 10


class PageForm(forms.Form):
    """A form with fields that look like those of the site."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.RadioSelect):
                field.widget.attrs.setdefault("class", "k-input")


class AgentField(forms.TypedChoiceField):
    """An agent of a row, or none.

    Args:
        none: the label of the choice of no agent.
    """

    def __init__(self, none: Any, **options: Any) -> None:
        super().__init__(
            label=_("Agent"),
            required=False,
            coerce=lambda value: UUID(str(value)),
            empty_value=None,
            choices=lambda: [("", none), *((str(pk), name) for pk, name in agent_names().items())],
            widget=UnfoldAdminSelectWidget,
            **options,
        )


class UserField(forms.CharField):
    """A user by an id or a name, or none.

    Args:
        is_known: whether the user must exist. Otherwise a text that is neither an id nor a whole
            name is the id of a new user.
    """

    def __init__(self, *, is_known: bool = False, **options: Any) -> None:
        self._is_known = is_known
        super().__init__(
            **{"label": _("User"), "required": False, **options},
            strip=False,
            max_length=255,
            empty_value=None,
            validators=[valid_id],
            widget=UnfoldAdminTextInputWidget,
        )

    def clean(self, value: Any) -> Any:
        """Return the id of the user.

        Raises:
            ValidationError: several people have the name, or no person has it who must exist.
        """
        typed = super().clean(value)
        found = find_people(typed, whole=not self._is_known) if typed else []
        if len(found) == 1:
            return found[0]
        if found:
            names = displayed_names(found[:MAX_CHOICES])
            people = ((names.get(user_id), user_id) for user_id in found[:MAX_CHOICES])
            listed = ", ".join(
                f"{name} ({user_id})" if name else user_id for name, user_id in people
            )
            problem = gettext("Several people have this name: %(people)s. Choose one by the id.")
            raise ValidationError(problem % {"people": listed})
        if typed and self._is_known:
            raise ValidationError(gettext("No person has this id or name."))
        return typed


@contextmanager
def show_outcome(
    request: HttpRequest,
    success: str = "",
    *,
    form: forms.BaseForm | None = None,
    field: str | None = None,
) -> Iterator[None]:
    """Show that the block succeeded, or why a service refused it, which ends the block.

    Args:
        request: the request of the person.
        success: the message of success; empty: none.
        form: the form that shows a refusal as its error; None: a message shows it.
        field: the field of the form that the refusal is about; None: the form as a whole.
    """
    try:
        yield
    except KonstructError as error:
        if form is None:
            messages.warning(request, str(error))
        else:
            form.add_error(field, str(error))
    else:
        if success:
            messages.success(request, success)
