"""Parts of pages without a model: forms, and messages about the result of an action."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from konstruct.admin.lists import agent_choices
from konstruct.admin.person_choice import PersonChoice
from konstruct.api.models import valid_id
from tenants.exceptions import KonstructError


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
