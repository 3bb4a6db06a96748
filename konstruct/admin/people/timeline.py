"""The timeline of a person, prepared for the person page: filters, labels, links and pages."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from konstruct.admin.lists import id_html
from konstruct.admin.pages import agent_user_query, as_position, position_text
from konstruct.orchestrator.identities.timeline import (
    PERMISSIONS,
    Entry,
    EntryKind,
    Position,
    timeline,
)
from konstruct.orchestrator.models import Escalation
from konstruct.templatetags.texts import translated
from memory.models.facts import AuthorKind, FactAction
from tenants.audit.models import Action

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


def timeline_context(
    request: HttpRequest,
    user_ids: Sequence[str],
    query: Mapping[str, str],
    *,
    day: str,
    moment: datetime | None,
    agents: Mapping[UUID, str],
) -> dict[str, Any]:
    """Return a page of the timeline for person.html.

    Args:
        request: its parameters `kind` and `before` choose the entries.
        user_ids: the ids of the person.
        query: the parameters that name the person.
        day: the day of `moment`, as a parameter.
        moment: only entries before it; None: up to now.
        agents: the names of agents.
    """
    allowed = [kind for kind in EntryKind if request.user.has_perm(PERMISSIONS[kind])]
    chosen = next((kind for kind in allowed if kind == request.GET.get("kind")), None)
    position = as_position(request.GET.get("before"))
    before = Position(*position) if position else None if moment is None else Position(moment)
    entries = timeline(
        user_ids,
        kinds=allowed if chosen is None else [chosen],
        before=before,
        limit=PER_PAGE + 1,
    )
    base_query = {**query, **({"at": day} if day else {})}
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
    return {
        **entry._asdict(),
        "by": entry.by or (agents.get(entry.agent_id, "") if entry.agent_id and is_reply else ""),
        **_translated(entry),
        "label": _label(entry),
        "is_turn": entry.kind is EntryKind.MESSAGE,
        "is_nameless": entry.action == "user" and not entry.by,
        "shown_id": id_html(entry.user_id),
        "address": _entry_url(entry),
    }


def _translated(entry: Entry) -> dict[str, str]:
    """Return the texts of an entry that are the platform's: subjects of the log, and reasons."""
    if entry.kind is EntryKind.ACCESS:
        return {"text": gettext(entry.text)}
    note = translated(entry.note) if entry.kind is EntryKind.FACT else entry.note
    is_kind = entry.by in AUTHOR_KINDS.get(entry.kind, ())
    return {"note": note, **({"by": gettext(entry.by)} if is_kind else {})}


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
