"""Facts: added, edited with their history, and ended."""

import json
from collections.abc import Iterator
from copy import copy
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import display_for_field, display_for_value
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q, QuerySet, functions
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget

from konstruct.admin import fact_review, pages
from konstruct.admin.access import AgentNameAdmin, author_of, log_row_access
from konstruct.orchestrator.usage import admit_memories
from memory import arguments, exceptions
from memory.context.recall_traces import with_queries
from memory.facts import LongTermMemory, recalls_with, rows
from memory.models import FactEvent, FactState, MemoryEntry, attributes
from memory.models.facts import FactChanges
from tenants.admin import recorded_admin, sites
from tenants.audit.models import Action
from tenants.context import required_tenant_id
from tenants.error_texts import TranslatedModelForm

# The history shows the others at their own places.
_COMPARED: Final = FactChanges.__annotations__.keys() - {
    *("content", "metadata", "valid_from", "valid_to")
}


class FactForm(TranslatedModelForm):
    """A fact. Its agent and its user are chosen when it is created."""

    agent_id = pages.AgentField(
        _("All agents"), help_text=_("The agent that knows the fact. Empty: all agents.")
    )
    user_id = pages.UserField(help_text=_("The user that the fact is about. Empty: no user."))
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=2000,
        widget=UnfoldAdminTextInputWidget,
        help_text=_("Why it is changed, for its history and for the exclusions from recall."),
    )

    class Meta:
        model = MemoryEntry
        fields = (
            *("content", "value", "metadata", "agent_id", "user_id"),
            *("valid_from", "valid_to", "expires_at"),
        )
        widgets = {"value": UnfoldAdminTextInputWidget}
        labels = {
            "valid_from": _("Valid from"),
            "valid_to": _("Valid until"),
            "expires_at": _("Expires"),
        }
        help_texts = {
            "valid_from": _(
                "This version of the fact is valid from this time. The version before it"
                " stays, and ends then. Empty: now."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            # Agent and user do not change; the page shows them as text.
            for name in ("agent_id", "user_id"):
                self.fields.pop(name, None)
        if "valid_from" in self.fields:
            self.fields["valid_from"].required = False
        # Django sets the new values on the instance.
        self.stored = copy(self.instance)

    def clean_metadata(self) -> dict[str, Any]:
        """Refuse metadata that searches cannot filter by."""
        metadata = self.cleaned_data["metadata"] or {}
        try:
            attributes.metadata_values(metadata)
        except exceptions.InvalidArgument as error:
            raise ValidationError(str(error)) from error
        return dict(metadata)

    def clean_valid_from(self) -> Any:
        """Refuse a start in the future, or before the version that it replaces."""
        since = self.cleaned_data["valid_from"]
        existing = self.instance
        if since is None or "valid_from" not in self.changed_data:
            return since
        if since > timezone.now():
            raise ValidationError(gettext("This is in the future. Give an earlier time, or none."))
        if not existing._state.adding and since <= self.initial["valid_from"]:
            raise ValidationError(gettext("This is not after the start of the version before."))
        return since

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        content = cleaned.get("content", "")
        if content and arguments.is_blank(content):
            self.add_error("content", gettext("The content is blank."))
        since, until = cleaned.get("valid_from"), cleaned.get("valid_to")
        if "valid_to" in self.changed_data and since and until and until < since:
            self.add_error("valid_to", gettext("This is before Valid from. Give a later time."))
        self._refuse_expired_before(cleaned)
        if "value" in self.fields:
            fact_review.refuse_lost_value(self, self.stored, self.changed_data)
        if self.errors.get("content"):
            return cleaned
        entry = MemoryEntry(
            tenant_id=required_tenant_id(),
            content=content,
            agent_id=cleaned.get("agent_id", self.instance.agent_id),
            user_id=cleaned.get("user_id", self.instance.user_id),
            external_id=self.instance.external_id,
        )
        other = rows.existing_entry(entry)
        if other is not None and other.pk != self.instance.pk:
            self.add_error(
                "content", gettext("Another fact of the same agent and user has the same text.")
            )
        return cleaned

    def _refuse_expired_before(self, cleaned: dict[str, Any]) -> None:
        """Refuse a fact that expires when its validity begins, or earlier."""
        changed, since, expires = set(self.changed_data), cleaned.get("valid_from"), None
        if not changed.isdisjoint({"valid_from", "expires_at"}):
            expires = cleaned.get("expires_at")
        if since is None or ("valid_from" not in changed and changed & {"content", "value"}):
            since = timezone.now()
        if expires and expires <= since:
            text = gettext("%(expires)s is not after Valid from, %(since)s. Give a later time.")
            times = {"expires": expires, "since": since}
            shown = {name: display_for_value(time, "") for name, time in times.items()}
            self.add_error("expires_at", text % shown)

    def _get_validation_exclusions(self) -> set[str]:
        # The constraint on the same text is checked above, by the digest that Postgres computes.
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]  # Django's own
        return {*excluded, "content_digest", "embedding"}


class StateFilter(recorded_admin.ChoiceFilter):
    """Current facts, ended facts, or old versions. Old versions are shown only on request."""

    title = _("state")
    parameter_name = "state"
    values = {
        "now": _("current"),
        "proposed": _("proposed"),
        "superseded": _("superseded"),
        "retracted": _("retracted"),
        "rejected": _("rejected"),
        "ended": _("ended or expired"),
        "old": _("old versions"),
    }

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() == "now":
            return queryset.as_of()
        if self.value() == "old":
            return queryset.filter(version_of__isnull=False)
        facts = queryset.entries()
        if self.value() in FactState.values:
            return facts.filter(state=self.value())
        over = Q(valid_to__lte=functions.Now()) | Q(expires_at__lte=functions.Now())
        return facts.filter(over) if self.value() == "ended" else facts


class FactUserFilter(pages.UserFilter):
    """Facts about one user, also those that all agents share."""

    def rows_of(self, user_id: str, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(user_id=user_id)


@admin.register(MemoryEntry, site=sites.tenant_site)
class MemoryEntryAdmin(AgentNameAdmin):
    """Facts. Every change keeps the state before as a version."""

    form = FactForm
    list_display = (pages.shortened, "agent", "user_id", "status", "valid_from", "updated_at")
    list_filter = (StateFilter, pages.AgentFilter, FactUserFilter, "updated_at")
    search_fields = ("content", "=user_id")
    ordering = ("-created_at", "-memory_id")
    readonly_fields = ("agent", "created_at", "updated_at", "embedding_model", "memory_id")

    sortable_by = ()
    change_form_outer_before_template = "konstruct/fact_panel.html"
    delete_confirmation_template = "konstruct/delete_fact.html"

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The form of a fact, with its evidence, its events and the replies that used it."""
        fact = kwargs.get("obj")
        context["known"] = _fact_context(fact) if fact and not _is_old(fact) else None
        return super().render_change_form(request, context, *args, **kwargs)

    def get_fields(self, request: HttpRequest, obj: MemoryEntry | None = None) -> Any:
        if obj is None:
            return ("content", "metadata", "agent_id", "user_id", "valid_from", "expires_at")
        return (
            *(("content", "value") if obj.slot else ("content",)),
            *(("reason",) if self.has_change_permission(request, obj) else ()),
            *("metadata", "agent", pages.person, "valid_from", "valid_to"),
            *("expires_at", "created_at", "updated_at", "embedding_model", "memory_id"),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: MemoryEntry | None = None) -> Any:
        return (*self.readonly_fields, pages.person) if obj else self.readonly_fields

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """An old version cannot be changed."""
        return not _is_old(obj) and bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not _is_old(obj) and bool(super().has_delete_permission(request, obj))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store or change the fact by the service that the API uses."""
        given = form.cleaned_data
        if not change:
            obj.tenant_id = required_tenant_id()
            if given.get("valid_from") is None:
                obj.valid_from = MemoryEntry._meta.get_field("valid_from").get_default()
            with admit_memories(1):
                obj.memory_id = LongTermMemory().remember(obj, author=author_of(request)).memory_id
            return
        changed = {name: given[name] for name in form.changed_data}
        if changed.get("valid_from") is None:  # empty: from now
            changed.pop("valid_from", None)
        fact_review.update_fact(request, obj, replaces_metadata=True, **changed)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Forget it, with its versions."""
        LongTermMemory().delete(obj.pk, required_tenant_id())

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show all versions, each with its changes."""
        fact: Any = self.get_object(request, object_id)
        if fact is None or not self.has_view_permission(request, fact):
            raise PermissionDenied
        log_row_access(request, Action.VIEW, fact)
        identity = fact.version_of or fact.pk
        current = MemoryEntry.objects.entries().defer("embedding").filter(pk=identity).first()
        return sites.tenant_site.render(
            request,
            "konstruct/fact_history.html",
            title=gettext("History of a fact"),
            original=current,
            identity=identity,
            versions=_versions(identity),
        )

    @display(description=_("State"), label=recorded_admin.BADGES)
    def status(self, fact: MemoryEntry) -> str:
        """The word for the state of the fact, as on its page."""
        return fact_review.status_of(fact)


def _is_old(fact: MemoryEntry | None) -> bool:
    return fact is not None and fact.version_of is not None


def _fact_context(fact: MemoryEntry) -> dict[str, Any]:
    """Return the context of a fact's page."""
    evidence = fact_review.evidence_of(fact)
    return {
        "status": fact_review.status_of(fact),
        "decisions": fact_review.decisions_for(fact),
        "reason": fact_review.ReasonForm(auto_id="decide_%s")["reason"],
        "evidence": [item for item in evidence if item.memory_id == fact.pk],
        "former_evidence": [item for item in evidence if item.memory_id != fact.pk],
        "also_said": fact_review.also_said(fact),
        "events": FactEvent.objects.filter(memory=fact).order_by("-number")[:50],
        "replies": with_queries(recalls_with(fact).order_by("-created_at")[:20]),
    }


def _versions(identity: UUID) -> list[dict[str, Any]]:
    """Return all versions, newest first, each with its changes to the previous one, and events."""
    versions = LongTermMemory().history(identity, required_tenant_id())
    pairs = zip(versions, [*versions[1:], *versions[-1:]], strict=True)
    events = rows.events_by_version(MemoryEntry.objects.versions_of(identity))
    return [
        {
            "version": version,
            "events": events[version.pk],
            "content": pages.mark_difference(before.content, version.content),
            "metadata": pages.mark_difference(_metadata_text(before), _metadata_text(version)),
            "values": list(_compared_values(before, version)),
        }
        for version, before in pairs
    ]


def _compared_values(before: MemoryEntry, version: MemoryEntry) -> Iterator[tuple[str, str]]:
    """Yield the label and the difference of each other field that one of the versions has."""
    for field in MemoryEntry._meta.concrete_fields:
        if field.name not in _COMPARED:
            continue
        old, new = (
            gettext("Yes") if value is True else value and str(display_for_field(value, field, ""))
            for value in (getattr(before, field.name), getattr(version, field.name))
        )
        if old or new:
            yield capfirst(str(field.verbose_name)), pages.mark_difference(old or "", new or "")


def _metadata_text(fact: MemoryEntry) -> str:
    text = json.dumps(fact.metadata, indent=1, sort_keys=True, ensure_ascii=False)
    return text if fact.metadata else ""
