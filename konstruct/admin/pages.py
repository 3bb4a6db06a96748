"""Parts of pages: parameters of addresses, people, forms, and messages about results."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode
from django.utils.timezone import is_aware
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from konstruct.admin.lists import agent_choices
from konstruct.api.models import valid_id
from konstruct.orchestrator.identities.channel_identities import find_people, main_id
from konstruct.orchestrator.models import Agent
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


@dataclass(frozen=True, slots=True)
class AgentAndUser:
    """One agent and one user."""

    agent: Agent
    user_id: str

    @classmethod
    def from_request(cls, request: HttpRequest) -> Self:
        """Return the agent and user of a request.

        Raises:
            Http404: the address names no agent of this tenant, or no user.
        """
        agent_id, user_id = as_uuid(request.GET.get("agent")), as_user_id(request.GET.get("user"))
        agent = Agent.objects.filter(pk=agent_id).first() if agent_id else None
        if agent is None or not user_id:
            raise Http404("The address names no agent of this tenant, or no user.")
        return cls(agent, user_id)

    @property
    def query(self) -> str:
        """The two as parameters of an address."""
        return agent_user_query(self.agent.pk, self.user_id)


MAX_CHOICES: Final = 10


@dataclass(frozen=True, slots=True)
class PersonChoice:
    """The person that a text names, or the reason why it names no person."""

    typed: str = ""
    user_id: str = ""
    """The id of the person; empty if no text was typed, or it does not name one person."""
    problem: str = ""
    """Why the text names no person, or not one."""
    people: tuple[tuple[str, str], ...] = ()
    """The people that the text could name: their ids and names."""

    @classmethod
    def of(cls, typed: str, *, whole: bool = False) -> Self:
        """Return the choice for a text, see `find_people`."""
        if not typed:
            return cls()
        found = find_people(typed, whole=whole) if as_user_id(typed) else []
        if len(found) == 1:
            return cls(typed, found[0])
        if not found:
            return cls(typed, problem=gettext("No person has this id or name."))
        names = displayed_names(found[:MAX_CHOICES])
        people = tuple((user_id, names.get(user_id, "")) for user_id in found[:MAX_CHOICES])
        listed = ", ".join(f"{name} ({user_id})" if name else user_id for user_id, name in people)
        problem = gettext("Several people have this name: %(people)s. Choose one by the id.")
        return cls(typed, problem=problem % {"people": listed}, people=people)

    @classmethod
    def of_request(cls, request: HttpRequest) -> Self:
        """Return the choice for the parameter `user` of a page."""
        choice = cls.of(request.GET.get("user", "").replace("\0", ""))
        return cls(choice.typed, main_id(choice.user_id)) if choice.user_id else choice


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
            choices=agent_choices(none),
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
        """Return the id of the user."""
        typed = super().clean(value)
        choice = PersonChoice.of(typed or "", whole=not self._is_known)
        if choice.people or (self._is_known and choice.problem):
            raise ValidationError(choice.problem)
        return choice.user_id or typed


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
