"""Who has access: people with a role, who are invited by a link; and API keys."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery, TextField, functions
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import html, timezone
from django.utils.translation import gettext, gettext_lazy as _
from unfold import decorators, widgets
from unfold.forms import AdminPasswordChangeForm

from konstruct.admin.access import AuditedAdmin, log_row_access, logged_change
from konstruct.admin.pages import PageForm, link, show_outcome
from konstruct.api.auth.keys import KeyText, issue_key, revoke_key, roll_key
from konstruct.api.models import DEFAULT_SCOPES, ApiKey
from tenants import context, error_texts
from tenants.admin import recorded_admin, sites
from tenants.audit.changes import row_state
from tenants.audit.models import Action
from tenants.audit.roles import ROLE_DESCRIPTIONS, admins
from tenants.audit.tombstones import MEMBER, enqueue_tombstones

SUPERUSER = "superuser"
OWN_ROLE = "a role of your own, see Roles"
CHANGE = "auth.change_user"


class PersonForm(error_texts.TranslatedModelForm):
    """A person with one role."""

    role = forms.ChoiceField(label=_("Role"), widget=widgets.UnfoldAdminRadioSelectWidget)
    granter: User
    """The person who fills in the form, who grants no more than they have themselves."""

    class Meta:
        model = User
        fields = ("username", "first_name", "last_name", "email", "is_active")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        role: Any = self.fields["role"]
        if self.instance.is_superuser:
            role.choices = [(SUPERUSER, gettext("superuser: everything, also other superusers"))]
            role.initial, role.disabled = SUPERUSER, True
            return
        role.choices = [
            (group.name, f"{group.name}: {gettext(ROLE_DESCRIPTIONS.get(group.name, OWN_ROLE))}")
            for group in _grantable(self.granter)
        ]
        current_roles = list(self.instance.groups.all()) if self.instance.pk else []
        if len(current_roles) == 1:
            role.initial = current_roles[0].name
        role.help_text = gettext("It takes the place of all roles and permissions until now.")

    def clean(self) -> dict[str, Any]:
        """Keep one admin who can log in."""
        cleaned: dict[str, Any] = super().clean() or {}
        is_admin = cleaned.get("role") in ("admin", SUPERUSER)
        remains_admin = cleaned.get("is_active", True) and is_admin
        if self.instance.pk and "role" in cleaned and not remains_admin:
            # Two admins who demote each other simultaneously wait for each other here.
            ids = [user.pk for user in admins().select_for_update(of=("self",))]
            if ids == [self.instance.pk]:
                raise forms.ValidationError(
                    gettext("This is the last admin who can log in: make another one first.")
                )
        return cleaned


def _grantable(granter: User) -> list[Group]:
    """Return the roles with no permission that the granter lacks, those with fewer ones first."""
    roles = Group.objects.prefetch_related("permissions__content_type").order_by("name")
    groups = sorted(roles, key=lambda group: [*ROLE_DESCRIPTIONS, group.name].index(group.name))
    if granter.is_superuser:
        return groups
    permissions = granter.get_all_permissions()
    return [
        group
        for group in groups
        if permissions.issuperset(
            f"{permission.content_type.app_label}.{permission.codename}"
            for permission in group.permissions.all()
        )
    ]


@admin.register(User, site=sites.tenant_site)
class PersonAdmin(recorded_admin.RecordedPeopleAdmin, AuditedAdmin):  # type: ignore[misc]  # unfold has no types
    """People of a tenant. They are deactivated and not deleted, because the log names them."""

    form = add_form = PersonForm
    change_password_form = AdminPasswordChangeForm
    add_form_template = None
    redirects_after_add = True
    refused = frozenset({"delete"})
    list_display = ("username", "email", "first_name", "last_name", "role", "state", "last_login")
    list_filter = ("is_active", "groups")
    filter_horizontal = ()
    readonly_fields = ("access", "last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "first_name", "last_name", "email", "role", "is_active")}),
        (None, {"fields": ("last_login", "date_joined")}),
        (None, {"fields": ("access",)}),
    )
    add_fieldsets = ((None, {"fields": ("username", "first_name", "last_name", "email", "role")}),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        people: QuerySet[Any] = super().get_queryset(request)
        return people.prefetch_related("groups")

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        may_invite = obj is None or self.has_change_permission(request, obj)
        return fieldsets if may_invite else fieldsets[:-1]

    def get_form(
        self, request: HttpRequest, obj: User | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.granter = request.user
        return form

    @decorators.display(description=_("Role"))
    def role(self, user: User) -> str:
        """The role of a person."""
        if user.is_superuser:
            return gettext("superuser")
        return ", ".join(sorted(group.name for group in user.groups.all())) or gettext("none")

    @decorators.display(description=_("State"), label=recorded_admin.BADGES)
    def state(self, user: User) -> str:
        """Whether a person can log in."""
        if not user.is_active:
            return gettext("deactivated")
        return gettext("active") if user.has_usable_password() else gettext("invited")

    @decorators.display(description=_("Password"))
    def access(self, user: User) -> str:
        """Links to invite a person, and to set the password."""
        if user.pk is None:
            return ""
        return html.format_html(
            "{} · {}",
            link(gettext("Invite, or send a new link"), "invite_person", user.pk),
            link(gettext("Set a password"), "auth_user_password_change", user.pk),
        )

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Change only people who may do no more: with a new password one could log in as them."""
        if obj is not None and not may_change(request, obj):
            return False
        return bool(super().has_change_permission(request, obj))

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Save a person; a new one has no password until they follow the link."""
        obj.is_staff = True
        if not change:
            obj.set_unusable_password()
        super().save_model(request, obj, form, change)
        if "is_active" in form.changed_data and not obj.is_active:
            enqueue_tombstones(MEMBER, obj.pk)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Make the chosen role the only one."""
        super().save_related(request, form, formsets, change)
        if form.cleaned_data["role"] != SUPERUSER:
            form.instance.groups.set(Group.objects.filter(name=form.cleaned_data["role"]))
            form.instance.user_permissions.clear()

    def response_add(
        self, request: HttpRequest, obj: User, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Lead to the invitation."""
        return redirect("admin:invite_person", obj.pk)


def may_change(request: HttpRequest, user: User) -> bool:
    """Return whether the sender of the request has all permissions of the user."""
    by: Any = request.user
    if by.is_superuser:
        return True
    return not user.is_superuser and by.get_all_permissions() >= user.get_all_permissions()


@sites.tenant_site.page("team/<int:user_id>/invite/", permission=CHANGE, title=_("Invite a person"))
def invite_person(request: HttpRequest, user_id: int) -> dict[str, Any]:
    """Show a link with which a person sets their password."""
    user = get_object_or_404(User, pk=user_id, is_active=True)
    if not may_change(request, user):
        raise PermissionDenied
    link = sites.password_link(request, user) if request.method == "POST" else ""
    if link:
        log_row_access(request, Action.EDIT, user, invited="link")
    else:
        log_row_access(request, Action.VIEW, user)
    return {"person": user, "link": link}


@admin.register(Group, site=sites.tenant_site)
class RoleAdmin(GroupAdmin, AuditedAdmin):  # type: ignore[misc]  # unfold has no types
    """Roles: groups with their permissions."""


ADD_KEY, CHANGE_KEY = "api.add_apikey", "api.change_apikey"


class RollForm(PageForm):
    """How long the old key works beside the new one."""

    grace = forms.TypedChoiceField(
        label=_("The old key works for"),
        coerce=int,
        choices=[(0, _("no time")), (1, _("an hour")), (24, _("a day")), (168, _("7 days"))],
        initial=24,
    )


@admin.register(ApiKey, site=sites.tenant_site)
class ApiKeyAdmin(AuditedAdmin):
    """Keys of programs. The key itself is shown once, after it is made."""

    redirects_after_add = True
    # A key is created, rolled and revoked, not edited. Revoked keys show who had access.
    refused = frozenset({"change", "delete"})
    list_display = (
        "name", "prefix", "state", "change", "expires_at", "revoked_at", "last_used_at",
        "scope_names", "agent", "user_id", "creator", "created_at",
    )  # fmt: skip
    list_select_related = ("agent",)
    search_fields = ("name", "prefix", "user_id")
    fields = ("name", "scopes", "agent", "user_id", "expires_at")
    actions = ("revoke",)

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """A key that exists shows its scopes as words."""
        return self.fields if obj is None else ("name", "scope_names", *self.fields[2:])

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"scopes": DEFAULT_SCOPES, **super().get_changeform_initial_data(request)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        people = User.objects.annotate(key=functions.Cast("pk", TextField()))
        names = people.filter(key=OuterRef("created_by")).values("username")
        keys: QuerySet[Any] = super().get_queryset(request)
        return keys.annotate(creator_name=Subquery(names))

    @decorators.display(description=_("state"), label=recorded_admin.BADGES)
    def state(self, key: ApiKey) -> str:
        """Return the word for the row's state."""
        if key.revoked_at is not None:
            return gettext("revoked")
        is_valid = key.expires_at is None or key.expires_at > timezone.now()
        return gettext("valid") if is_valid else gettext("expired")

    @decorators.display(description=_("Change"))
    def change(self, key: ApiKey) -> str:
        """A link to roll a key that is valid."""
        is_valid = self.state(key) == gettext("valid")
        return link(gettext("Roll"), "roll_key", key.pk) if is_valid else ""

    @decorators.display(description=_("Scopes"))
    def scope_names(self, key: ApiKey) -> str:
        """Return the scopes of the key."""
        return ", ".join(gettext(scope) for scope in key.scopes)

    @decorators.display(description=_("Created by"))
    def creator(self, key: Any) -> str:
        """The name of the person who made the key, or the command."""
        return key.creator_name or key.created_by or gettext("a command")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Create the key with the service that the command uses."""
        key, text = issue_key(
            tenant_id=context.required_tenant_id(),
            name=obj.name,
            scopes=obj.scopes,
            agent_id=obj.agent_id,
            user_id=obj.user_id,
            expires_at=obj.expires_at,
            created_by=str(request.user.pk),
        )
        obj.pk = key.pk
        obj.text = text

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key once."""
        return _show(request, obj, obj.text)

    @admin.action(description=_("Revoke"), permissions=["act"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Revoke the selected keys that are valid. A revoked key cannot be restored."""
        revoked = 0
        for key in queryset.filter(revoked_at__isnull=True):
            with logged_change(request, key):
                revoked += revoke_key(key.pk)
        messages.success(request, gettext("%(revoked)s revoked.") % {"revoked": revoked})


@sites.tenant_site.page(
    "api-keys/<uuid:key_id>/roll/",
    name="roll_key",
    permission=CHANGE_KEY,
    title=_("Roll an API key"),
)
def roll(request: HttpRequest, key_id: UUID) -> sites.Content:
    """Ask how long the old key works yet, then make a new one and show it once."""
    if not request.user.has_perm(ADD_KEY):
        raise PermissionDenied
    key = get_object_or_404(ApiKey, pk=key_id)
    form = RollForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        grace = timedelta(hours=form.cleaned_data["grace"])
        with show_outcome(request), logged_change(request, key):
            new, text = roll_key(key, grace=grace, created_by=str(request.user.pk))
            log_row_access(request, Action.CREATE, new, after=row_state(new), rolled=key.prefix)
            return _show(request, new, text, old=key)
        return redirect("admin:api_apikey_changelist")
    log_row_access(request, Action.VIEW, key)
    return {"key": key, "form": form}


def _show(
    request: HttpRequest, key: ApiKey, text: KeyText, *, old: ApiKey | None = None
) -> HttpResponse:
    """Show the text of a key. No cookie keeps it, nor a cache: all pages of the site forbid it."""
    return sites.tenant_site.render(
        request,
        "konstruct/new_key.html",
        title=gettext("Copy the key now"),
        key=key,
        text=text,
        old=old,
    )
