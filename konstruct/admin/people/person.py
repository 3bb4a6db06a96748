"""The page of a person: names, accounts, pending work, facts, agents, and the timeline."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from operator import itemgetter
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.db.models import Exists, Model, OuterRef, Q
from django.db.models.functions import Left, Now
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy as _

from konstruct.admin.access import log_access
from konstruct.admin.lists import id_html, model_page
from konstruct.admin.pages import agent_user_query, as_position, as_user_id, position_text
from konstruct.orchestrator.identities.channel_identities import is_known, linked_ids, main_id
from konstruct.orchestrator.identities.timeline import (
    PERMISSIONS,
    Entry,
    EntryKind,
    Position,
    timeline,
)
from konstruct.orchestrator.models import (
    Agent,
    ChannelIdentity,
    Escalation,
    HistoryMerge,
    PendingReply,
    ToolCall,
)
from konstruct.orchestrator.replies import CLOSED
from konstruct.templatetags.texts import translated
from memory.arguments import time_zones
from memory.browse.people import names_of
from memory.browse.threads import channel_of_thread, last_of_threads
from memory.facts.search import fact_uses
from memory.ids import as_code_points
from memory.models import (
    AuthorKind,
    ConversationEmbedding,
    FactAction,
    FactEvent,
    FactEvidence,
    FactState,
    MemoryEntry,
    Message,
)
from tenants.admin.sites import tenant_site
from tenants.audit.models import Action, ErasureRequest, MessageErasure
from tenants.audit.people import Person, set_time_zone, time_zone_of
from tenants.models import Job

VIEW: Final = "memory.view_scope"
VIEW_ACCOUNTS: Final = "orchestrator.view_channelidentity"
CHANGE: Final = "orchestrator.change_channelidentity"
# Rows of each part of the page. Lists have the rest.
MAX_FACTS: Final = 20
MAX_WAITING: Final = 10
MAX_THREADS: Final = 8


@tenant_site.page("people/person/", permission=VIEW)
def person(request: HttpRequest) -> HttpResponseBase:
    """One person, with all their ids and every agent; with `at`, as of the end of that day."""
    requested_id = as_user_id(request.GET.get("user"))
    user_id = main_id(requested_id) if requested_id else ""
    user_ids = linked_ids(user_id)
    erasure = ErasureRequest.objects.about(*user_ids).first() if user_id else None
    known_now = bool(user_id) and is_known(user_ids)
    if not known_now and erasure is None:
        messages.warning(
            request, gettext("Nothing is known of %(asked)r.") % {"asked": requested_id}
        )
        return redirect(reverse("admin:people", query={"q": requested_id}))
    zone = time_zone_of(user_id)
    if request.method == "POST" and request.user.has_perm(CHANGE):
        name = request.POST.get("zone", "")
        if name and name not in time_zones():
            raise BadRequest("unknown time zone")
        log_access(request, Action.EDIT, "time zone", user_id=user_id, zone=name)
        set_time_zone(user_ids, name)
        return redirect(reverse("admin:person", query={"user": user_id}))
    day, moment = _as_of(request, zone)
    log_access(request, Action.VIEW, "person", user_id=user_id)
    of_both = {"agent_id": OuterRef("pk"), "user_id__in": user_ids}
    has_rows: Any = Exists(Message.objects.filter(**of_both))
    has_rows |= Exists(ConversationEmbedding.objects.filter(**of_both))
    has_rows |= Exists(MemoryEntry.objects.as_of().filter(**of_both))
    agents = list(Agent.objects.only("pk", "name", "extracts_facts").annotate(is_known=has_rows))
    names_by_id = {agent.pk: agent.name for agent in agents}
    rows = Message.objects.annotate(origin=channel_of_thread(), beginning=Left("content", 200))
    threads = last_of_threads(rows.defer("content"), agent_ids=names_by_id, user_ids=user_ids)
    accounts: dict[str, Any] | None = None
    if request.user.has_perm(VIEW_ACCOUNTS):
        found = ChannelIdentity.objects.filter(Q(user_id__in=user_ids) | Q(own_id__in=user_ids))
        merges = HistoryMerge.objects.open()
        merges = merges.filter(Q(user_id__in=user_ids) | Q(from_user__in=user_ids))
        accounts = {"identities": found[:50], "moves": merges[:50]}
    profile = Person.objects.filter(pk=user_id).first()
    names = names_of(user_ids) or [
        identity.name for identity in (accounts or {}).get("identities", ()) if identity.name
    ]
    return tenant_site.render(
        request,
        "konstruct/person.html",
        title=gettext("Person"),
        user_id=user_id,
        spelled=as_code_points(user_id),
        query=urlencode({"user": user_id}),
        name=next(iter(names), ""),
        other_names=names[1:],
        linked=[(other, urlencode({"user": other})) for other in user_ids[1:]],
        known=[(agent, agent_user_query(agent.pk, user_id)) for agent in agents if agent.is_known],
        threads=[
            (thread, names_by_id[thread.agent_id])
            for thread in threads.order_by("-created_at", "-number")[:MAX_THREADS]
        ],
        waiting=sorted(_waiting(request, user_ids), key=itemgetter(3)),
        facts=_facts(request, user_ids, moment),
        day=day,
        erasure=erasure,
        known_now=known_now,
        zone=zone.key,
        profile=profile,
        zones=sorted(time_zones()) if request.user.has_perm(CHANGE) else (),
        channels=accounts,
        **_timeline(request, user_ids, day, moment, names_by_id),
    )


def _as_of(request: HttpRequest, zone: ZoneInfo) -> tuple[str, datetime | None]:
    """Return the day that the page is to show, and the moment of its end; None for now."""
    try:
        day = parse_date(request.GET.get("at", ""))
        if day is None:
            return "", None
        moment = datetime.combine(day + timedelta(days=1), time.min, zone)
    except (ValueError, OverflowError):
        return "", None
    return ("", None) if moment > timezone.now() else (day.isoformat(), moment)


# --- Waiting --------------------------------------------------------------------------------------


def _waiting(
    request: HttpRequest, user_ids: Sequence[str]
) -> Iterator[tuple[str, str, str, datetime]]:
    """Yield rows that wait for a decision, a worker or an operator, by permission.

    Each is a label, a text, the address of its page and a time.
    """
    of_person = {"user_id__in": user_ids}
    of_message = {"message__user_id__in": user_ids}
    if request.user.has_perm("orchestrator.view_escalation"):
        for escalation in Escalation.objects.open().filter(**of_person)[:MAX_WAITING]:
            label = (
                gettext("Another agent answers")
                if escalation.to_agent_id
                else gettext("Waits for a person")
            )
            address = reverse("admin:escalation", args=[escalation.pk])
            yield label, escalation.reason, address, escalation.opened_at
    if request.user.has_perm("orchestrator.view_toolcall"):
        for call in ToolCall.objects.waiting().filter(**of_person)[:MAX_WAITING]:
            text = call.question or call.name
            yield gettext("Waits for consent"), text, _change_url(call), call.created_at
    if request.user.has_perm("memory.view_memoryentry"):
        proposed = MemoryEntry.objects.waiting_for_review().filter(**of_person)
        for fact in proposed.only("content", "created_at").order_by("created_at")[:MAX_WAITING]:
            yield gettext("Proposed fact"), fact.content, _change_url(fact), fact.created_at
    if request.user.has_perm("orchestrator.view_pendingreply"):
        pending = PendingReply.objects.filter(**of_message).exclude(error_code=CLOSED)
        pending = pending.select_related("message")
        for reply in pending.order_by("created_at")[:MAX_WAITING]:
            label = gettext("Reply failed") if reply.failed_at else gettext("Reply queued")
            label = gettext("Reply held") if reply.held_for else label
            address = f"{reverse('admin:conversation', args=[reply.pk])}#m{reply.pk}"
            yield label, reply.message.content, address, reply.created_at
    if request.user.has_perm("channels.view_delivery"):
        failed = Job.objects.filter(kind="delivery", failed_at__isnull=False).values("key")
        for message in Message.objects.filter(pk__in=failed, **of_person)[:MAX_WAITING]:
            address = reverse("admin:channels_delivery_change", args=[message.pk])
            yield gettext("Delivery failed"), message.content, address, message.created_at
    if request.user.has_perm("audit.view_erasurerequest"):
        for erasure in MessageErasure.objects.filter(done_at=None, **of_person)[:MAX_WAITING]:
            label = (
                gettext("Message to be erased")
                if erasure.message_id
                else gettext("Conversation to be erased")
            )
            yield label, erasure.reason, _change_url(erasure), erasure.created_at


def _change_url(row: Model) -> str:
    return reverse(model_page(row, "change"), args=[row.pk])


# --- Facts ----------------------------------------------------------------------------------------


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
    sources = _sources([*current, *former])
    uses = fact_uses([fact.fact_id for fact in (*current, *former)], user_ids, before=moment)
    return {
        name: {
            "rows": [
                {
                    "fact": fact,
                    **sources[fact.pk],
                    "uses": uses.get(fact.fact_id),
                    # It was not known yet at the moment, though it was valid then.
                    "learned_later": moment is not None and fact.updated_at > moment,
                }
                for fact in facts[:MAX_FACTS]
            ],
            "has_more": len(facts) > MAX_FACTS,
        }
        for name, facts in (("current", current), ("former", former))
    }


def _sources(facts: Iterable[MemoryEntry]) -> dict[UUID, dict[str, Any]]:
    """Return the latest quoted message of each fact, and the event that gave it its content.

    The event of a version is the first one after it was written.
    """
    facts = list(facts)
    ids = {pk for fact in facts for pk in (fact.pk, fact.fact_id)}
    evidence = FactEvidence.objects.filter(memory_id__in=ids).order_by("message__created_at")
    quoted = {
        row["memory_id"]: row
        for row in evidence.values("memory_id", "message_id", "quote", "message__created_at")
    }
    actions = (FactAction.ENTER, FactAction.PROPOSE, FactAction.CHANGE)
    events: dict[UUID, list[FactEvent]] = {}
    for event in FactEvent.objects.filter(memory_id__in=ids, action__in=actions).order_by("number"):
        events.setdefault(event.memory_id, []).append(event)
    return {
        fact.pk: {
            "quoted": quoted.get(fact.pk) or quoted.get(fact.fact_id),
            "author": next(
                (event for event in written if event.created_at >= fact.updated_at),
                written[-1] if written else None,
            ),
        }
        for fact in facts
        for written in [events.get(fact.fact_id, [])]
    }


PER_PAGE: Final = 30
KINDS: Final = {
    EntryKind.MESSAGE: _("Messages"),
    EntryKind.RECALL: _("Recalls"),
    EntryKind.FACT: _("Facts"),
    EntryKind.ESCALATION: _("Escalations"),
    EntryKind.CONSENT: _("Consents"),
    EntryKind.EXCLUSION: _("Excluded from recall"),
    EntryKind.WINDOW: _("Cleared turns"),
    EntryKind.ACCOUNT: _("Linked accounts"),
    EntryKind.ERASURE: _("Erasures"),
    EntryKind.ACCESS: _("Activity"),
}
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
    day: str,
    moment: datetime | None,
    agents: Mapping[UUID, str],
) -> dict[str, Any]:
    """Return a page of the timeline until the end of a day; `kind` and `before` choose entries."""
    allowed = [kind for kind in EntryKind if request.user.has_perm(PERMISSIONS[kind])]
    chosen = next((kind for kind in allowed if kind == request.GET.get("kind")), None)
    position = as_position(request.GET.get("before"))
    before = Position(*position) if position else None if moment is None else Position(moment)
    kinds = allowed if chosen is None else [chosen]
    entries = timeline(user_ids, kinds=kinds, before=before, limit=PER_PAGE + 1)
    base_query = {"user": user_ids[0], **({"at": day} if day else {})}
    query_of_page = {**base_query, **({"kind": chosen.value} if chosen else {})}
    last = entries[PER_PAGE - 1] if len(entries) > PER_PAGE else None
    return {
        "entries": [_entry_context(entry, agents) for entry in entries[:PER_PAGE]],
        "kinds": [
            (gettext("Everything"), urlencode(base_query), chosen is None),
            *(
                (KINDS[kind], urlencode({**base_query, "kind": kind}), kind == chosen)
                for kind in allowed
            ),
        ],
        "kind": chosen or "",
        "latest": urlencode(query_of_page) if request.GET.get("before") else "",
        "earlier": last
        and urlencode({**query_of_page, "before": position_text(last.at, last.key)}),
    }


def _entry_context(entry: Entry, agents: Mapping[UUID, str]) -> dict[str, Any]:
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
        "shown_id": id_html(entry.user_id),
        "address": _entry_url(entry),
    }


def _label(entry: Entry) -> str:
    if entry.kind is EntryKind.FACT:
        return gettext("Fact %(label)s") % {"label": gettext(FactAction(entry.action).label)}
    if entry.kind is EntryKind.ACCESS:
        return gettext(dict(Action.choices).get(entry.action, entry.action))
    if entry.kind is EntryKind.CONSENT and entry.action != "asked":
        return gettext("Consent: %(action)s") % {"action": gettext(entry.action)}
    return str(LABELS[entry.kind, entry.action])


def _entry_url(entry: Entry) -> str:
    """Return the address of the row that an entry is about; "" without a page."""
    subject = entry.subject_id
    match entry.kind:
        case EntryKind.WINDOW:
            return f"{reverse('admin:window')}?{agent_user_query(entry.agent_id, entry.user_id)}"
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
