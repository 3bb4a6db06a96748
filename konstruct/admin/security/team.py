"""The people of a tenant: each has one role, and is invited by a mail or a link."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm
from unfold.widgets import UnfoldAdminRadioSelectWidget

from konstruct.admin.access import AuditedAdmin, log_row_access
from konstruct.admin.lists import link
from tenants import transaction
from tenants.admin.columns import Colours
from tenants.admin.passwords import mail_invitation, password_link
from tenants.admin.recorded_admin import RecordedGroupAdmin, RecordedPeopleAdmin
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action
from tenants.audit.roles import ROLE_DESCRIPTIONS, admins
from tenants.audit.tombstones import MEMBER, enqueue_tombstones

SUPERUSER = "superuser"
OWN_ROLE = "a role of your own, see Roles"
CHANGE = "auth.change_user"
INVITATION = _("""{by} invites you to the Konstruct of {tenant}, as {name}.

To choose a password, open this link. It can be used once:

{link}
""")


class PersonForm(forms.ModelForm):
    """A person with one role."""

    role = forms.ChoiceField(label=_("Role"), widget=UnfoldAdminRadioSelectWidget)
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
        remains_admin = cleaned.get("is_active", True) and cleaned.get("role") in (
            "admin",
            SUPERUSER,
        )
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


@admin.register(User, site=tenant_site)
class PersonAdmin(RecordedPeopleAdmin, AuditedAdmin):  # type: ignore[misc]  # unfold has no types
    """People of a tenant. They are deactivated and not deleted, because the log names them."""

    form = add_form = PersonForm
    change_password_form = AdminPasswordChangeForm
    add_form_template = None
    redirects_after_add = True
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

    @display(description=_("Role"))
    def role(self, user: User) -> str:
        """The role of a person."""
        if user.is_superuser:
            return gettext("superuser")
        return ", ".join(sorted(group.name for group in user.groups.all())) or gettext("none")

    @display(
        description=_("State"),
        label=Colours({"active": "success", "invited": "info", "deactivated": "warning"}),
    )
    def state(self, user: User) -> str:
        """Whether a person can log in."""
        if not user.is_active:
            return gettext("deactivated")
        return gettext("active") if user.has_usable_password() else gettext("invited")

    @display(description=_("Password"))
    def access(self, user: User) -> SafeString | str:
        """Links to invite a person, and to set the password."""
        if user.pk is None:
            return ""
        return format_html(
            "{} · {}",
            link(gettext("Invite, or send a new link"), "invite_person", user.pk),
            link(gettext("Set a password"), "auth_user_password_change", user.pk),
        )

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False

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


@tenant_site.page("team/<int:user_id>/invite/", permission=CHANGE)
def invite_person(request: HttpRequest, user_id: int) -> HttpResponse:
    """Mail a link with which a person sets their password, or show it."""
    user = get_object_or_404(User, pk=user_id, is_active=True)
    if not may_change(request, user):
        raise PermissionDenied
    context: dict[str, Any] = {"title": gettext("Invite a person"), "person": user}
    if request.method != "POST":
        log_row_access(request, Action.VIEW, user)
        return tenant_site.render(request, "konstruct/invite_person.html", **context)
    by_mail = request.POST.get("by") == "mail" and bool(user.email)
    link = password_link(request, user)
    with transaction.atomic():
        log_row_access(request, Action.EDIT, user, invited="mail" if by_mail else "link")
    if by_mail:
        text = INVITATION.format(
            by=request.user.get_username(),
            tenant=request.tenant.name,  # type: ignore[attr-defined]
            name=user.get_username(),
            link=link,
        )
        problem = mail_invitation(request, user.email, text)
        if not problem:
            return redirect("admin:auth_user_changelist")
        messages.error(request, problem)
    return tenant_site.render(request, "konstruct/invite_person.html", link=link, **context)


@admin.register(Group, site=tenant_site)
class RoleAdmin(RecordedGroupAdmin, AuditedAdmin):  # type: ignore[misc]  # unfold has no types
    """Roles: groups with their permissions."""
