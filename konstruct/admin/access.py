"""The access log: the base of model pages, functions for other pages, and its own pages."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Model, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from konstruct.admin import pages
from konstruct.api.auth.keys import owns_proposal
from konstruct.api.http.problems import current_request_id
from konstruct.api.models import ApiKey
from konstruct.apps import translated_choices
from konstruct.orchestrator.models import Agent
from memory.browse.lists import displayed_names
from memory.models import AuthorKind, PersonName, facts
from tenants import transaction
from tenants.admin import exports, recorded_admin as base, sites
from tenants.audit.access_log import Actor, ids_of, record_access
from tenants.audit.changes import row_state
from tenants.audit.models import AccessEvent, Action, ActorKind, ListExport, about_people
from tenants.audit.people import Person
from tenants.error_texts import translate_error
from tenants.exceptions import KonstructError


def actor_of(request: HttpRequest) -> Actor:
    """Return the person who sent the request, as an actor of the log."""
    user = request.user
    if not user.is_authenticated:
        return Actor(ActorKind.UNKNOWN, "", "")
    return Actor.person(user)


def author_of(request: HttpRequest) -> facts.Author:
    """Return the person who sent the request, as the author of a change."""
    actor = actor_of(request)
    own = partial(owns_proposal, person_id=actor.id)
    return facts.Author(AuthorKind.PERSON, actor.id, actor.name, owns_proposal=own)


def author_name(address: str) -> str:
    """Return the name of a member of the team or of an API key, from the address of an author."""
    kind, _, key = address.partition(":")
    rows: QuerySet[Any] | None = None
    if kind == AuthorKind.PERSON and key.isdigit():
        rows = get_user_model()._default_manager.filter(pk=key).values_list("username", flat=True)
    elif kind == AuthorKind.PROGRAM and pages.as_uuid(key):
        rows = ApiKey.objects.filter(pk=key).values_list("name", flat=True)
    return (rows is not None and rows.first()) or address


def log_access(
    request: HttpRequest,
    action: Action,
    subject: str,
    *,
    by: Actor | None = None,
    **detail: Any,
) -> None:
    """Log an action on the current tenant, in the transaction of the change.

    Args:
        request: the request of the person.
        action: the action of the person.
        subject: the kind of thing that it was done with.
        by: the actor, if it is not the person who is logged in.
        detail: further arguments of `record_access`, such as `subject_id`, `agent_id`, `user_id`,
            `people`, `before` and `after`, and numbers.
    """
    record_access(
        action, subject, by=by or actor_of(request), request_id=current_request_id(), **detail
    )


def log_row_access(
    request: HttpRequest, action: Action, row: Model, subject: str = "", **detail: Any
) -> None:
    """Log an action on a row, with its agent and user.

    Args:
        request: the request of the person.
        action: the action of the person.
        row: the row; its primary key is the subject's id.
        subject: the kind of thing; by default the English name of the row's model.
        detail: further arguments of `log_access`.
    """
    detail = {**ids_of(row), **detail}
    log_access(request, action, subject or row._meta.verbose_name_raw, **detail)


@contextmanager
def logged_change(
    request: HttpRequest, row: Model, action: Action = Action.EDIT, **detail: Any
) -> Iterator[None]:
    """Log the change of a row by the block, in the transaction of both.

    Args:
        request: the request of the person.
        row: the row, which is read again after the block.
        action: the action of the person.
        detail: further arguments of `log_access`.
    """
    before = row_state(row)
    with transaction.atomic():
        yield
        row.refresh_from_db()
        log_row_access(request, action, row, before=before, after=row_state(row), **detail)


def log_site_access(
    request: HttpRequest, action: str, *, user: Any = None, username: str = "", **detail: Any
) -> None:
    """Log logins, logouts, changed passwords and refusals of the site."""
    by = Actor.person(user) if user is not None else actor_of(request)
    if by.kind == ActorKind.UNKNOWN and username:
        # What was typed is logged only if a member of the team has this name.
        members = get_user_model()._default_manager.filter(username=username)
        by = Actor(ActorKind.UNKNOWN, "", username if members.exists() else "")
    log_access(
        request,
        Action(action),
        "admin" if action != Action.EDIT else get_user_model()._meta.verbose_name_raw,
        by=by,
        subject_id=user.pk if action == Action.EDIT and user is not None else None,
        user_id=request.GET.get("user") or None,
        **detail,
    )


sites.tenant_site.recorder = log_site_access


def newest_name() -> Subquery:
    """Return the newest name of the user of a row."""
    names = PersonName.objects.filter(user_id=OuterRef("user_id"))
    return Subquery(names.order_by("-first_seen", "name").values("name")[:1])


class AuditedAdmin(base.RecordedAdmin):
    """The pages of a model. The access log keeps every request."""

    log_list = "audit_accessevent"
    paginator = pages.BoundedPaginator
    show_full_result_count = False
    # Rendering rows takes most of the time of a list: 2 ms each.
    list_per_page = 25

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return the field of a form: check boxes for an array of choices, names for a user."""
        base_field = getattr(db_field, "base_field", None)
        if db_field.name == "user_id":
            return pages.UserField(help_text=db_field.help_text)
        if base_field is None or not base_field.choices:
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        return forms.MultipleChoiceField(
            label=capfirst(db_field.verbose_name),
            choices=translated_choices(base_field.choices),
            required=not db_field.blank,
            widget=UnfoldAdminCheckboxSelectMultipleWidget,
            help_text=db_field.help_text,
        )

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form. If a service or a quota refuses it, it keeps what was entered."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except KonstructError as error:
            if request.method != "POST":
                raise
            request.refusal = translate_error(str(error))  # type: ignore[attr-defined]
        return super().changeform_view(request, *args, **kwargs)

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the class of the form, which has the reason for a refusal as its error."""
        form_class: Any = super().get_form(request, *args, **kwargs)
        reason = getattr(request, "refusal", "")

        class RefusedForm(form_class):
            def clean(self) -> None:
                super().clean()
                self.add_error(None, reason)

        return RefusedForm if reason else form_class

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any) -> HttpResponse:
        """Delete a row, or show the reason why a service refuses it."""
        with pages.show_outcome(request), transaction.atomic():
            return super().delete_view(request, object_id, *args)
        return redirect(pages.model_page(self.model, "change"), object_id)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out vectors, and add `person_name`, the newest name of the user of a row."""
        columns = self.opts.concrete_fields
        unreadable = [field.name for field in columns if isinstance(field, base.UNREADABLE_FIELDS)]
        rows: QuerySet[Any] = super().get_queryset(request).defer(*unreadable)
        if not any(field.name == "user_id" for field in columns):
            return rows
        return rows.annotate(person_name=newest_name())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by `search`, unless the query is blank."""
        query = search_term.strip()
        return (self.search(request, queryset, query) if query else queryset), False

    def search(self, request: HttpRequest, rows: Any, query: str) -> Any:
        """Return the rows that match a query. By default Django searches in `search_fields`."""
        return super().get_search_results(request, rows, query)[0]

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show users by their names and ids."""
        columns = super().get_list_display(request)
        return [pages.user if column == "user_id" else column for column in columns]

    def export_columns(self, request: HttpRequest) -> dict[str, Any]:
        """Return the columns of an export, with the name that the list shows for a user's id."""
        columns = super().export_columns(request)
        return columns | ({"person_name": "person_name"} if "user_id" in columns else {})

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Whether the user may run actions: the permission to change rows, also read-only ones."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def record_list(self, request: HttpRequest, action: str, rows: Any, **detail: Any) -> None:
        """Log that rows were listed or searched, with the people in them."""
        people = [row.user_id for row in rows if getattr(row, "user_id", None)]
        self.record(request, action, people=people, **detail)

    def record(
        self, request: HttpRequest, action: str, row: Model | None = None, **detail: Any
    ) -> None:
        """Log an action on a row, or on the list, with the user of its address."""
        if row is not None:
            log_row_access(request, Action(action), row, **detail)
            return
        subject = self.list_name or self.opts.verbose_name_raw
        log_access(
            request, Action(action), subject, user_id=request.GET.get("user") or None, **detail
        )


class AuditedReadOnlyAdmin(AuditedAdmin):
    """Read-only rows, and a record of who reads them."""

    refused = base.READ_ONLY
    actions: Any = None

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Return the declared fields, or the columns of the list and then all others.

        The page of a row names its person.
        """
        fields = self.fields
        if fields is None:
            columns = {f.attname: f.name for f in self.opts.concrete_fields if base.is_readable(f)}
            names = [getattr(column, "__name__", column) for column in self.list_display]
            shown = [columns.get(name, name) for name in names if name != "__str__"]
            fields = list(dict.fromkeys([*shown, *columns.values()]))
        return [pages.person if obj and name == "user_id" else name for name in fields]


class AgentNameAdmin(AuditedAdmin):
    """Rows with an agent's id: the name of the agent is read in the same query."""

    agent_columns: ClassVar[dict[str, str]] = {"agent_name": "agent_id"}
    """Columns with an agent's id, by the annotations that hold the names."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        names = {
            name: Subquery(Agent.objects.filter(pk=OuterRef(column)).values("name")[:1])
            for name, column in self.agent_columns.items()
        }
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(**names)

    @admin.display(description=_("Agent"))
    def agent(self, row: Any) -> str:
        """The agent's name, or its id if there is no such agent any more."""
        return row.agent_name or str(row.agent_id or gettext("all agents"))


class AgentRowsAdmin(AgentNameAdmin, AuditedReadOnlyAdmin):
    """Read-only rows of an agent, by default the newest first."""

    ordering: Any = ("-created_at", "id")


class RowPageAdmin(AgentRowsAdmin):
    """Rows that have a page instead of a form."""

    template: ClassVar[str]
    title: ClassVar[Any]

    def change_view(self, request: HttpRequest, object_id: str, *args: Any) -> HttpResponse:
        """Show the page of a row."""
        row = self.get_object(request, object_id)
        is_read = request.method in ("GET", "HEAD")
        if row is None or not is_read or not self.has_view_permission(request, row):
            raise PermissionDenied
        log_row_access(request, Action.VIEW, row)
        context = {"title": self.title, **self.page_context(request, row)}
        return sites.tenant_site.render(request, self.template, **context)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the values of the template."""
        raise NotImplementedError


class PageList(AgentRowsAdmin):
    """A list with search, filters and export, at the address of a page.

    `serve` registers the page; the model keeps its list of all rows, if it has one.
    """

    list_name: ClassVar[str]
    """The name of the page, which is its address, too."""
    permission: ClassVar[str]
    sortable_by: Any = ()

    @classmethod
    def serve(cls, model: type[Model]) -> None:
        """Serve the list of a model, and its export."""
        shown = exports.page_sources[cls.list_name] = cls(model, sites.tenant_site)
        at, name, export = f"{cls.list_name}/", cls.list_name, f"{cls.list_name}_export"
        sites.tenant_site.page(at, name=name, permission=cls.permission)(shown.changelist_view)
        serve_export = sites.tenant_site.post_page(
            f"{at}{base.EXPORT_ROUTE}", name=export, permission=cls.permission
        )
        serve_export(shown.export_view)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list with the title of the page instead of the model's."""
        title = capfirst(gettext(self.list_name))
        request.list_title = title  # type: ignore[attr-defined]  # for header_title.html
        return super().changelist_view(request, {**(extra_context or {}), "title": title})

    def row_url(self, row: Any) -> str:
        """Return the address of the page of a row."""
        raise NotImplementedError

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(self.permission)


class UserOfLogFilter(pages.UserFilter):
    """The activity on one user's memory; links name the user."""

    def rows_of(self, user_id: str, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The entries about the user, and those of pages and exports that showed them."""
        return queryset.filter(about_people(user_id))


@admin.register(AccessEvent, site=sites.tenant_site)
class AccessEventAdmin(base.EventColumns, AgentRowsAdmin):
    """Actions and refusals, with the values before and after, the address and the time.

    An entry has pseudonyms. Pages and exports show the people whose rows exist.
    """

    list_display = (
        *("created_at", "actor", "action", "subject_label", "user_id", "people_count", "changed"),
        "address",
    )
    list_filter = ("action", "actor_kind", UserOfLogFilter, "created_at")
    search_fields = ("=actor", "=subject_id", "=address")
    search_help_text = _(
        "The name of the actor, the id of the user, the id of the row, or an address."
    )
    fields = (
        *("created_at", "actor", "actor_kind", "actor_id", "address", "action", "subject_label"),
        *("subject_id", "agent", "user_id", "people_count", "shown_people", "detail"),
        "request_id",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Add the user of the pseudonym, and the name of the user."""
        known = Person.objects.filter(pseudonym=OuterRef("pseudonym")).values("user_id")
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(user_id=Subquery(known)).annotate(person_name=newest_name())

    def search(self, request: HttpRequest, rows: Any, query: str) -> Any:
        """Search by an actor, the id of a row or an address, or by the id of a person."""
        return super().search(request, rows, query) | rows.filter(about_people(query))

    @admin.display(description=_("User"))
    def user_id(self, event: Any) -> str:
        """The id of the user; empty once the person is erased."""
        return event.user_id or ""

    @admin.display(description=_("Who was shown"))
    def shown_people(self, event: Any) -> str:
        """The names and ids of the people that were shown, of those that are not erased."""
        if not hasattr(event, "known_people"):
            _read_people([event])
        return ", ".join(event.known_people)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Read the people of exported rows."""
        _read_people(rows)

    def export_columns(self, request: HttpRequest) -> dict[str, Any]:
        """Return the columns of an export, with people in place of pseudonyms."""
        columns = super().export_columns(request)
        people = {"user_id": "user_id", "person_name": "person_name", "people": self.shown_people}
        left_out = ("pseudonym", "pseudonyms")
        return {name: columns[name] for name in columns if name not in left_out} | people


def _read_people(events: Iterable[Any]) -> None:
    """Set `known_people` of entries: the names and ids of the people that were shown."""
    events = list(events)
    pseudonyms = {pseudonym for event in events for pseudonym in event.pseudonyms or ()}
    people = Person.objects.filter(pseudonym__in=pseudonyms).values_list("pseudonym", "user_id")
    users: dict[UUID, str] = dict(people) if pseudonyms else {}
    names = displayed_names(users.values())
    for event in events:
        known = [users[pseudonym] for pseudonym in event.pseudonyms or () if pseudonym in users]
        event.known_people = [
            f"{names[user_id]} ({user_id})" if user_id in names else user_id for user_id in known
        ]


@admin.register(ListExport, site=sites.tenant_site)
class ListExportAdmin(AuditedReadOnlyAdmin):
    """Exports of the last day. Their files are for those who requested them."""

    list_display = (
        "title", "member", "query", "rows", "size", "created_at", "finished_at", "downloaded_at",
    )  # fmt: skip
    list_filter = ("created_at",)
    fields = (*list_display[:3], "time_zone", *list_display[3:], "error")
    ordering = ("-created_at", "id")

    @admin.display(description=_("list"), ordering="list_name")
    def title(self, row: ListExport) -> str:
        """Return the name of the list."""
        return exports.list_title(row.list_name)
