"""Parts of pages and lists: addresses, people, forms, filters, texts, and the middleware."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import SequenceMatcher
from typing import Any, Final
from urllib.parse import unquote
from uuid import UUID
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import formats, html, timezone
from django.utils.functional import cached_property
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from konstruct.api.models import valid_id
from konstruct.orchestrator.identities.channel_identities import find_people
from konstruct.orchestrator.models import Agent
from memory.arguments import id_argument, time_zones
from memory.browse.lists import displayed_names
from memory.exceptions import InvalidArgument
from tenants import context, error_texts, exceptions
from tenants.admin.recorded_admin import ChoiceFilter


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


def as_user_id(text: str | None) -> str:
    """Return a user's id exactly as in the address, or "" if it is missing or invalid."""
    try:
        return id_argument("user", text or "")
    except InvalidArgument:
        return ""


MAX_CHOICES: Final = 10


class PageForm(error_texts.TranslatedErrors, forms.Form):
    """A form with fields that look like those of the site."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.RadioSelect):
                field.widget.attrs["class"] = "k-input"
            if isinstance(field.widget, forms.Select):
                field.widget.template_name = forms.Select.template_name  # without Unfold's arrow


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
            raise forms.ValidationError(problem % {"people": listed})
        if typed and self._is_known:
            raise forms.ValidationError(gettext("No person has this id or name."))
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
    except exceptions.KonstructError as error:
        if form is None:
            messages.warning(request, error_texts.translate_error(str(error)))
        else:
            form.add_error(field, str(error))
    else:
        if success:
            messages.success(request, success)


# A script sets it to the time zone of the browser.
COOKIE: Final = "time_zone"
# Pages read by index; a statement that takes longer is a mistake or an attack.
PAGE_STATEMENT_SECONDS: Final = 5


class AdminMiddleware:
    """Shows times in the browser's time zone, and has Postgres cancel slow statements of pages.

    Forms that are sent may take longer.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith("/admin/"):
            return self.get_response(request)
        name = unquote(request.COOKIES.get(COOKIE, ""))
        zone = ZoneInfo(name) if name in time_zones() else None
        is_form = request.method == "POST"
        limit = nullcontext() if is_form else context.statement_timeout(PAGE_STATEMENT_SECONDS)
        with timezone.override(zone), limit:
            return self.get_response(request)


class AtLeast(int):
    """A number where counting stopped."""

    def __str__(self) -> str:
        return f"{formats.number_format(int(self), force_grouping=True)}+"


class BoundedPaginator(Paginator):
    """Counts at most 10,000 rows, because counting a million takes long. Filters reach the rest."""

    max_count = 10_000

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return len(rows)
        count = rows.order_by().values("pk")[: self.max_count + 1].count()
        return AtLeast(self.max_count) if count > self.max_count else count


def agent_names() -> dict[Any, str]:
    """Every agent's name."""
    return dict(Agent.objects.values_list("pk", "name"))


class AgentFilter(ChoiceFilter):
    """Rows of one agent."""

    title = _("agent")
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(pk), name) for pk, name in agent_names().items()]

    def narrow(self, rows: Any, value: str) -> Any:
        return rows.filter(agent_id=value)


class UserFilter(admin.SimpleListFilter):
    """Rows of one user. Links name the user, because a list of all users would be too long."""

    title = _("user")
    parameter_name = "user"

    def has_output(self) -> bool:
        return self.value() is not None

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        user_id = request.GET.get("user", "")
        return [(user_id, user_id[:40])] if user_id else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        user_id = self.value()
        return queryset if user_id is None else self.rows_of(user_id.replace("\0", ""), queryset)

    def rows_of(self, user_id: str, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of a user. All agents are named, because indexes begin with the agent."""
        return queryset.filter(agent_id__in=agent_names(), user_id=user_id)


def model_page(model: Model | type[Model], page: str) -> str:
    """Return the name of a page of a model, such as "change" or "changelist", for `reverse`."""
    return f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"


def link(text: str, page: str, *arguments: Any, **parts: Any) -> SafeString:
    """Return a link to a page of the admin, for a column or a field.

    Args:
        text: the words of the link.
        page: the name of the page.
        arguments: arguments of its address.
        parts: `query` and `fragment` of its address.
    """
    address = reverse(f"admin:{page}", args=arguments, **parts)
    return html.format_html('<a class="k-link" href="{}">{}</a>', address, text)


def id_html(value: Any) -> SafeString | str:
    """Return an id for a list, which cuts a long one."""
    return html.format_html('<bdi class="k-id" title="{0}">{0}</bdi>', value) if value else "-"


def link_column(name: str, description: Any, text: Any, page: str) -> Any:
    """Return a column of a list with a link to the page of the row whose id a field has."""

    @admin.display(description=description)
    def value(row: Any) -> SafeString | str:
        return link(text, page, key) if (key := getattr(row, name)) else ""

    value.__name__ = name
    return value


def column(name: str, description: Any, **options: Any) -> Any:
    """Return a column of a list for an annotation; the options are those of `display`."""

    @admin.display(description=description, **options)
    def value(row: Any) -> Any:
        return getattr(row, name)

    value.__name__ = name
    return value


def error_column(name: str, description: Any) -> Any:
    """Return a column of a list for a sentence of a service, in the reader's language."""

    @admin.display(description=description, empty_value="")
    def value(row: Any) -> Any:
        text = getattr(row, name)
        return text and error_texts.translate_error(text)

    value.__name__ = name
    return value


error = error_column("error", _("error"))


@admin.display(description=_("User"), ordering="user_id")
def user(row: Any) -> SafeString | str:
    """The name and the id of a row's user, for lists."""
    known, shown = getattr(row, "person_name", ""), id_html(row.user_id)
    return html.format_html("<bdi>{}</bdi> {}", known, shown) if known else shown


user.__name__ = "user_id"


@admin.display(description=_("User"))
def person(row: Any) -> str:
    """The name and the whole id of a row's user."""
    return f"{row.person_name} ({row.user_id})" if row.person_name else row.user_id or "-"


@admin.display(description=_("Content"))
def shortened(row: Any) -> str:
    """The beginning of a text, for lists."""
    return row.content if len(row.content) <= 100 else f"{row.content[:100]}…"


# An export has the column as a whole.
shortened.__name__ = "content"


# Comparing takes up to the cube of this number, a tenth of a second. Longer texts between the
# common beginning and end are shown as replaced.
MAX_WORDS = 250
_PARTS = re.compile(r"\s++|\w++|[^\w\s]")


def mark_difference(old: str, new: str) -> SafeString:
    """Return the new text with marked additions, and the removed text."""
    before, after = _PARTS.findall(old), _PARTS.findall(new)
    begin = _count_common_parts(before, after)
    end = _count_common_parts(before[begin:][::-1], after[begin:][::-1])
    opening, closing = after[:begin], after[len(after) - end :]
    before, after = before[begin : len(before) - end], after[begin : len(after) - end]
    if len(before) > MAX_WORDS or len(after) > MAX_WORDS:
        before, after = ["".join(before)], ["".join(after)]
    parts: list[str] = [html.conditional_escape("".join(opening))]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, j, k, n in matcher.get_opcodes():
        if kind == "equal":
            parts.append(html.conditional_escape("".join(after[k:n])))
            continue
        if j > i:
            parts.append(html.format_html("<del>{}</del>", "".join(before[i:j])))
        if n > k:
            parts.append(html.format_html("<ins>{}</ins>", "".join(after[k:n])))
    parts.append(html.conditional_escape("".join(closing)))
    return mark_safe("".join(parts))  # noqa: S308  (each part is escaped)


def _count_common_parts(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of equal parts at the beginning of two texts."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((n for n, (old, new) in pairs if old != new), min(len(before), len(after)))


def marked_spans(text: str, spans: Iterable[tuple[int, int]]) -> SafeString:
    """Return a text as HTML with these spans marked."""
    parts, position = [], 0
    for start, end in sorted(spans):
        start = max(start, position)
        if start < end and start < len(text):
            parts += [
                html.conditional_escape(text[position:start]),
                html.format_html("<mark>{}</mark>", text[start:end]),
            ]
            position = end
    return mark_safe("".join([*parts, html.conditional_escape(text[position:])]))  # noqa: S308  (escaped)
