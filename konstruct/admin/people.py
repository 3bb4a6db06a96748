"""People: their list, the page of each with its timeline, and their accounts in channels."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import admin, messages
from django.core import exceptions, signing
from django.db.models import Q, QuerySet
from django.db.models.functions import Left, Now
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import dateparse, http, timezone
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin import access, pages
from konstruct.orchestrator.identities import channel_identities, timeline
from konstruct.orchestrator.identities.timeline import EntryKind
from konstruct.orchestrator.models import ChannelIdentity, Escalation
from konstruct.templatetags.texts import translated
from memory.arguments import as_code_points, time_zones
from memory.browse.lists import channel_of_thread, last_of_threads, names_of, people, with_text
from memory.models import AuthorKind, FactAction, FactState, MemoryEntry, Message
from tenants.admin.sites import Content, tenant_site
from tenants.audit.models import Action, ErasureRequest
from tenants.audit.people import Person, set_time_zone, time_zone_of
from tenants.error_texts import TranslatedModelForm

VIEW: Final = "memory.view_scope"
VIEW_ACCOUNTS: Final = "orchestrator.view_channelidentity"
CHANGE: Final = "orchestrator.change_channelidentity"
# Rows of each part of the page. Lists have the rest.
MAX_FACTS: Final = 20
MAX_THREADS: Final = 8


@tenant_site.page("people/person/", permission=VIEW, title=_("Person"))
def person(request: HttpRequest) -> Content:
    """One person, with all their ids and every agent; with `at`, as of the end of that day."""
    requested_id = pages.as_user_id(request.GET.get("user"))
    user_id = channel_identities.main_id(requested_id) if requested_id else ""
    user_ids = channel_identities.linked_ids(user_id)
    erasure = ErasureRequest.objects.about(*user_ids).first() if user_id else None
    known_now = bool(user_id) and channel_identities.is_known(user_ids)
    if not known_now and erasure is None:
        messages.warning(
            request, gettext("Nothing is known of %(asked)r.") % {"asked": requested_id}
        )
        return redirect(reverse("admin:people", query={"q": requested_id}))
    zone = time_zone_of(user_id)
    if request.method == "POST" and request.user.has_perm(CHANGE):
        name = request.POST.get("zone", "")
        if name and name not in time_zones():
            raise exceptions.BadRequest("unknown time zone")
        access.log_access(request, Action.EDIT, "time zone", user_id=user_id, zone=name)
        set_time_zone(user_ids, name)
        return redirect(reverse("admin:person", query={"user": user_id}))
    day, moment = _as_of(request, zone)
    access.log_access(request, Action.VIEW, "person", user_id=user_id)
    names_by_id = pages.agent_names()
    rows = Message.objects.annotate(origin=channel_of_thread(), beginning=Left("content", 200))
    threads = last_of_threads(rows.defer("content"), agent_ids=names_by_id, user_ids=user_ids)
    accounts: list[ChannelIdentity] = []
    if request.user.has_perm(VIEW_ACCOUNTS):
        is_own = Q(user_id__in=user_ids) | Q(own_id__in=user_ids)
        accounts = list(ChannelIdentity.objects.filter(is_own)[:50])
    profile = Person.objects.filter(pk=user_id).first()
    names = names_of(user_ids) or [account.name for account in accounts if account.name]
    return {
        "user_id": user_id,
        "spelled": as_code_points(user_id),
        "query": http.urlencode({"user": user_id}),
        "name": next(iter(names), ""),
        "other_names": names[1:],
        "linked": user_ids[1:],
        "threads": [
            (thread, names_by_id[thread.agent_id])
            for thread in threads.order_by("-created_at", "-number")[:MAX_THREADS]
        ],
        "facts": _facts(request, user_ids, moment),
        "day": day,
        "moment": moment,
        "erasure": erasure,
        "known_now": known_now,
        "zone": zone.key,
        "profile": profile,
        "zones": sorted(time_zones()) if request.user.has_perm(CHANGE) else (),
        "accounts": accounts,
        **_timeline(request, user_ids, moment, names_by_id),
    }


def _as_of(request: HttpRequest, zone: ZoneInfo) -> tuple[date, datetime] | tuple[None, None]:
    """Return the day that the page is to show, and the moment of its end; None for now."""
    try:
        day = dateparse.parse_date(request.GET.get("at", ""))
        if day is None:
            return None, None
        moment = datetime.combine(day + timedelta(days=1), time.min, zone)
    except (ValueError, OverflowError):
        return None, None
    return (None, None) if moment > timezone.now() else (day, moment)


def _facts(
    request: HttpRequest, user_ids: Sequence[str], moment: datetime | None
) -> dict[str, Any] | None:
    """Return the current facts and the former ones, or those of a moment, for who may see facts."""
    if not request.user.has_perm("memory.view_memoryentry"):
        return None
    rows = MemoryEntry.objects.filter(user_id__in=user_ids).defer("embedding")
    current = list(rows.as_of(moment).order_by("-valid_from", "memory_id")[: MAX_FACTS + 1])
    # Facts that are not given to agents any more.
    closed = Q(state__in=(FactState.SUPERSEDED, FactState.RETRACTED, FactState.REJECTED))
    ended = Q(state=FactState.ACTIVE) & (Q(valid_to__lte=Now()) | Q(expires_at__lte=Now()))
    former_rows = rows.entries().filter(closed | ended).order_by("-updated_at")
    former = [] if moment else list(former_rows[: MAX_FACTS + 1])
    return {
        name: {"rows": facts[:MAX_FACTS], "has_more": len(facts) > MAX_FACTS}
        for name, facts in (("current", current), ("former", former))
    }


PER_PAGE: Final = 30
POSITION: Final = "konstruct.timeline"
LABELS: Final = {
    (EntryKind.MESSAGE, "user"): _("wrote"),
    (EntryKind.MESSAGE, "assistant"): _("replied"),
    (EntryKind.RECALL, "recalled"): _("Recalled for"),
    (EntryKind.RECALL, "abstained"): _("Nothing recalled for"),
    (EntryKind.ESCALATION, "opened"): _("Person requested"),
    (EntryKind.ESCALATION, "handed_over"): _("Transferred to another agent"),
    (EntryKind.ESCALATION, "resolved"): _("Escalation resolved"),
    (EntryKind.CONSENT, "asked"): _("Consent requested"),
    (EntryKind.EXCLUSION, "excluded"): _("Excluded from recall"),
    (EntryKind.EXCLUSION, "corrected"): _("Excluded from recall by a correction"),
    (EntryKind.WINDOW, "cleared"): _("Recent turns cleared"),
    (EntryKind.ACCOUNT, "linked"): _("Account linked"),
    (EntryKind.ERASURE, "requested"): _("Erasure requested"),
    (EntryKind.ERASURE, "done"): _("Erased"),
    (EntryKind.ERASURE, "message"): _("Erasure of a message requested"),
    (EntryKind.ERASURE, "conversation"): _("Erasure of a conversation requested"),
}
# Kinds of authors. An entry whose author has no name has the kind in `by`.
AUTHOR_KINDS: Final[Mapping[EntryKind, Collection[str]]] = {
    EntryKind.FACT: {*AuthorKind.values, "extraction"},
    EntryKind.ESCALATION: Escalation.OpenedBy.values,
}
_PAGES: Final = {
    EntryKind.FACT: "memory_memoryentry_change",
    EntryKind.ESCALATION: "escalation",
    EntryKind.CONSENT: "orchestrator_toolcall_change",
    EntryKind.ACCOUNT: "orchestrator_channelidentity_change",
    EntryKind.ACCESS: "audit_accessevent_change",
}


def _timeline(
    request: HttpRequest,
    user_ids: Sequence[str],
    moment: datetime | None,
    agents: Mapping[UUID, str],
) -> dict[str, Any]:
    """Return a page of the timeline until the end of a day, and before the entry `before`."""
    kinds = [kind for kind in EntryKind if request.user.has_perm(kind.permission)]
    before = timeline.Position(moment) if moment else None
    with suppress(signing.BadSignature):
        at, key = signing.loads(request.GET.get("before", ""), salt=POSITION)
        before = timeline.Position(datetime.fromisoformat(at), key)
    entries = timeline.timeline(user_ids, kinds=kinds, before=before, limit=PER_PAGE + 1)
    last = entries[PER_PAGE - 1] if len(entries) > PER_PAGE else None
    return {
        "sees_timeline": len(kinds) > 1,
        "entries": [_entry_context(entry, agents) for entry in entries[:PER_PAGE]],
        "earlier": last and signing.dumps((last.at.isoformat(), str(last.key)), salt=POSITION),
    }


def _entry_context(entry: timeline.Entry, agents: Mapping[UUID, str]) -> dict[str, Any]:
    is_reply = entry.kind is EntryKind.MESSAGE and entry.action == "assistant"
    by = entry.by or (agents.get(entry.agent_id, "") if entry.agent_id and is_reply else "")
    # Subjects of the log, reasons and kinds of authors are the platform's texts.
    return {
        **entry._asdict(),
        "by": gettext(by) if entry.by in AUTHOR_KINDS.get(entry.kind, ()) else by,
        "text": gettext(entry.text) if entry.kind is EntryKind.ACCESS else entry.text,
        "note": translated(entry.note) if entry.kind is EntryKind.FACT else entry.note,
        "label": _label(entry),
        "is_turn": entry.kind is EntryKind.MESSAGE,
        "is_nameless": entry.action == "user" and not entry.by,
        "shown_id": pages.id_html(entry.user_id),
        "address": _entry_url(entry),
    }


def _label(entry: timeline.Entry) -> str:
    if entry.kind is EntryKind.FACT:
        return gettext("Fact %(label)s") % {"label": gettext(FactAction(entry.action).label)}
    if entry.kind is EntryKind.ACCESS:
        return gettext(dict(Action.choices).get(entry.action, entry.action))
    if entry.kind is EntryKind.CONSENT and entry.action != "asked":
        return gettext("Consent: %(action)s") % {"action": gettext(entry.action)}
    return str(LABELS[entry.kind, entry.action])


def _entry_url(entry: timeline.Entry) -> str:
    """Return the address of the row that an entry is about; "" without a page."""
    subject = entry.subject_id
    match entry.kind:
        case EntryKind.WINDOW:
            query = {"agent": entry.agent_id, "user": entry.user_id}
            return reverse("admin:window", query=query)
        case EntryKind.RECALL | EntryKind.MESSAGE | EntryKind.EXCLUSION if subject:
            why = (
                f"?why={subject}" if entry.action in ("assistant", "recalled", "abstained") else ""
            )
            return f"{reverse('admin:conversation', args=[subject])}{why}#m{subject}"
        case EntryKind.ERASURE:
            of_message = entry.action in ("message", "conversation")
            model = "messageerasure" if of_message else "erasurerequest"
            return reverse(f"admin:audit_{model}_change", args=[subject])
        case _:
            return reverse(f"admin:{_PAGES[entry.kind]}", args=[subject]) if subject else ""


class PersonList(access.PageList):
    """Users in the order of their ids, found by names, ids and accounts."""

    list_name = "people"
    permission = VIEW
    list_display = (
        *("person", "user_id", pages.column("last_at", _("Last message"))),
        *(pages.column("channel", _("Channel")), "agents", pages.column("facts", _("Facts"))),
    )
    search_fields = ("user_id",)
    search_help_text = _("A name, an id, or the id of a linked account.")
    ordering = ("user_id",)
    time_column = "pk"

    def row_url(self, row: Any) -> str:
        return reverse("admin:person", query={"user": row.user_id})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return people()

    def search(self, request: HttpRequest, rows: Any, query: str) -> Any:
        """Search by names and ids, and by accounts for users who may view them."""
        may_view = request.user.has_perm(VIEW_ACCOUNTS)
        accounts = channel_identities.users_of_accounts(query) if may_view else ()
        return rows.filter(with_text(query, also_ids=accounts))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list; the id of an erased person leads to the receipt."""
        asked = pages.as_user_id(request.GET.get("q"))
        if (
            asked
            and not channel_identities.is_known([asked])
            and ErasureRequest.objects.about(asked).exists()
        ):
            return redirect(reverse("admin:person", query={"user": asked}))
        return super().changelist_view(request, extra_context)

    @admin.display(description=_("Person"))
    def person(self, user: Any) -> str:
        """The name, and other names."""
        return ", ".join(dict.fromkeys([user.name, *user.names])) or user.user_id

    @admin.display(description=_("Agents"))
    def agents(self, user: Any) -> int:
        """The number of agents with messages of the person."""
        return len(user.agents)


PersonList.serve(Person)


class LinkForm(TranslatedModelForm):
    """The user that an identity is linked to."""

    user_id = pages.UserField(
        help_text=_(
            "The id or the name of a user, as shown under People. Earlier messages are moved "
            "within two minutes, and cannot be separated again. Empty: it is a separate user from "
            "now on; moved messages stay."
        ),
    )

    class Meta:
        model = ChannelIdentity
        fields = ("user_id",)

    def clean_user_id(self) -> str | None:
        """Return the id of the user, who must exist: a link cannot be taken back."""
        user_id: str | None = self.cleaned_data["user_id"]
        if user_id and not channel_identities.is_known([user_id]):
            problem = gettext(
                "There is no user “%(user)s”. Give an id or a name as People shows it."
            )
            raise exceptions.ValidationError(problem % {"user": user_id})
        return user_id


@admin.register(ChannelIdentity, site=tenant_site)
class ChannelIdentityAdmin(access.AuditedAdmin):
    """Ids of channels, with the user that each is linked to."""

    form = LinkForm
    list_display = (
        *("native_id", "name", "channel", "workspace", "user_id", "linked_by", "linked_at"),
    )
    list_filter = (("linked_at", admin.EmptyFieldListFilter), "channel")
    search_fields = ("=native_id", "=user_id", "=own_id", "name")
    ordering = ("-created_at", "id")
    readonly_fields = (
        *("channel", "workspace", "native_id", "name", "own_id", "created_at"),
        *("linked_at", "linked_by"),
    )
    fields = ("user_id", *readonly_fields)
    refused = frozenset({"add", "delete"})
    actions = None

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Link the identity, or unlink it."""
        user_id = form.cleaned_data["user_id"]
        if user_id:
            channel_identities.link(obj, user_id, by=access.actor_of(request).name)
        else:
            channel_identities.unlink(obj)

    def record(self, request: HttpRequest, action: str, row: Any = None, **detail: Any) -> None:
        """Log a change as a link or its end, with the users before and after."""
        if action == Action.EDIT:
            users = [detail[name].fields["user_id"] for name in ("before", "after")]
            action = Action.UNLINK if users[1] == row.own_id else Action.LINK
            detail |= {"user_id": users[1], "people": users}
        super().record(request, action, row, **detail)
