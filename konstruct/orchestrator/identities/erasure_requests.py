"""Requests to erase a person or messages, and their receipts. The owner's worker carries them out.

A receipt has a keyed digest that shows whether it was changed. A session of a graph belongs to the
user in its metadata. Without one, it belongs to the user of the messages in the thread with the
same id, if all messages are of one user.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet

from konstruct.orchestrator.identities.channel_identities import linked_ids
from konstruct.orchestrator.models import ChannelIdentity
from konstruct.strict_json import read_json
from memory import arguments, models
from memory.exceptions import InvalidArgument
from memory.text.lexical import fold
from tenants import context, exceptions, jobs, secret_keys, transaction
from tenants.audit import access_log, models as audit
from tenants.models import Tenant
from tenants.outbox.events import record_event
from tenants.outbox.models import EventType

ERASURES = jobs.owner_kind("erasure")
MESSAGE_ERASURES = jobs.owner_kind("message erasure")


class ThreadOfOthers(exceptions.KonstructError):
    """A thread in a request for an erasure has messages or a session of another user."""

    is_usage_error = True


class ReasonNamesPerson(exceptions.KonstructError):
    """The reason of an erasure has an id or a name of the person, and would stay on the receipt."""


def refuse_name_in_reason(reason: str, user_id: str) -> None:
    """Refuse a reason with an id or a whole name of a person, also in the genitive.

    Case, accents, invisible characters, the form of Unicode, and the characters between the words
    of a name make no difference. One word of several, such as "Art" or "Support", is no name.

    Raises:
        ReasonNamesPerson: the reason names the person.
    """
    if not reason:
        return
    user_ids = linked_ids(user_id)
    own_accounts = Q(user_id__in=user_ids) | Q(own_id__in=user_ids)
    accounts = ChannelIdentity.objects.filter(own_accounts).values_list("native_id", "name")
    names = {*models.PersonName.objects.filter(user_id__in=user_ids).values_list("name", flat=True)}
    names.update(name for _, name in accounts)
    searched = names | {*user_ids} | {native_id for native_id, _ in accounts}
    text = _comparable(reason)
    for name in sorted(filter(None, map(_comparable, searched)), key=len, reverse=True):
        if _pattern_of(name).search(text):
            raise ReasonNamesPerson(
                f"The reason stays on the receipt, and names the person: {name!r}. Leave it out."
            )


def _comparable(text: str) -> str:
    """Return a text without case, accents and invisible characters."""
    return "".join(
        character
        for character in fold(text)
        if unicodedata.category(character) not in ("Cf", "Mn", "Me")
    )


def _pattern_of(name: str) -> re.Pattern[str]:
    """Return the pattern of a name as words of a text.

    Scripts without case, such as Chinese and Arabic, write names together with other words.
    """
    words = re.findall(r"[^\W_]+", name) or [name]
    first, last = (
        unicodedata.category(character) == "Lo" for character in (words[0][0], words[-1][-1])
    )
    before, after = "" if first else r"(?<![^\W_])", "" if last else r"s?(?![^\W_])"
    return re.compile(before + r"[\W_]*".join(map(re.escape, words)) + after)


def request_erasure(
    user_id: str,
    *,
    by: access_log.Actor,
    agent_id: UUID | None = None,
    threads: Sequence[str] = (),
    reason: str = "",
    request_id: str = "",
    by_bound_key: bool = False,
    all_replies: bool = False,
    reply_ids: Collection[UUID] = (),
    **detail: Any,
) -> audit.ErasureRequest:
    """Request the erasure of a person, with all ids that are linked to this one.

    From the commit on, nothing is written about the person (`tenants.audit.people.hold_people`).

    Args:
        user_id: one id of the person.
        by: the person or program that requests it.
        agent_id: the agent that forgets the person. None: all agents.
        threads: ids of further threads with sessions of the person. They are needed if neither the
            transcript nor the metadata of the sessions name the person.
        reason: a text for the receipt.
        request_id: the id of the HTTP request, for the access log.
        by_bound_key: whether an API key that is bound to an agent or a user requests it. Such a key
            cannot claim a session by the id of its thread alone.
        all_replies: whether to erase all `replies_to_others`, also those that are written until
            the erasure begins.
        reply_ids: those of them to erase. The others are kept.
        detail: further fields of the entry in the access log.

    Raises:
        ReasonNamesPerson: the reason has an id or a name of the person.
        ThreadOfOthers: another user spoke in one of these threads, or its session is another's.
        InvalidArgument: a reply is none of `replies_to_others`.

    Returns:
        The new request, or the open request for the same user and agent.
    """
    if problem := arguments.pseudonym_problem(arguments.id_argument("user_id", user_id)):
        raise InvalidArgument(f"user_id={user_id[:80]!a} {problem}")
    refuse_name_in_reason(reason, user_id)
    user_ids = linked_ids(user_id)
    of_others = [
        thread.thread_id
        for thread in (
            threads_of(user_ids, agent_id=agent_id, requested=threads) if threads else ()
        )
        if thread.is_requested and not thread.session_belongs_to_person(strict=by_bound_key)
    ]
    if of_others:
        listed = ", ".join(repr(thread) for thread in of_others[:5])
        raise ThreadOfOthers(
            f"Not of {user_ids[0]!r} alone: {listed}. Nothing was noted; leave these threads out."
        )
    affected = replies_to_others(user_ids, agent_id=agent_id).filter(pk__in=reply_ids)
    if unknown := {*reply_ids} - {*affected.values_list("pk", flat=True)}:
        raise InvalidArgument(f"reply {min(unknown)} to another was not written with their words")
    with transaction.atomic():
        request, is_new = audit.ErasureRequest.objects.get_or_create(
            user_id=user_id,
            agent_id=agent_id,
            done_at=None,
            defaults={
                "user_ids": user_ids,
                "threads": list(threads),
                "reason": arguments.text_argument("reason", reason),
                "requested_by": by.name,
                "by_bound_key": by_bound_key,
                "all_replies": all_replies,
                "reply_ids": sorted(reply_ids),
            },
        )
        if is_new:
            ERASURES.enqueue(request.pk)
            record_event(EventType.ERASURE_REQUESTED, request.pk)
        access_log.record_access(
            audit.Action.ERASE,
            "person",
            by=by,
            subject_id=request.pk,
            agent_id=agent_id,
            user_id=user_id,
            request_id=request_id,
            **detail,
        )
    return request


def request_message_erasure(
    *,
    agent_id: UUID,
    user_id: str,
    thread_id: str,
    message_id: UUID | None = None,
    reply_ids: Collection[UUID] = (),
    by: access_log.Actor,
    reason: str = "",
) -> audit.MessageErasure:
    """Request the erasure of a message or of a whole conversation.

    The caller writes the access log, in the same transaction.

    Args:
        message_id: the message. None: the whole conversation.
        reply_ids: replies that quote the message, to erase too.
        by: the person or program that requests it.
        reason: a text for the receipt.

    Returns:
        The new request, or the open request for the same messages.

    Raises:
        ReasonNamesPerson: the reason has an id or a name of the person.
    """
    refuse_name_in_reason(reason, user_id)
    with transaction.atomic():
        request, is_new = audit.MessageErasure.objects.get_or_create(
            agent_id=agent_id,
            user_id=user_id,
            thread_id=thread_id,
            message_id=message_id,
            done_at=None,
            defaults={
                "reason": arguments.text_argument("reason", reason),
                "requested_by": by.name,
                "reply_ids": sorted(reply_ids),
            },
        )
        if is_new:
            MESSAGE_ERASURES.enqueue(request.pk)
            record_event(EventType.ERASURE_REQUESTED, request.pk)
    return request


VERSION: Final = 1
ALGORITHM: Final = "hmac-sha256"
_PURPOSE: Final = b"konstruct.receipts"
MAX_RECEIPT_BYTES: Final = 20_000_000


class ReceiptInvalid(exceptions.KonstructError):
    """A file is no receipt of this deployment, or was changed."""


def receipt_document(erasure: audit.ErasureRequest, tenant: Tenant) -> dict[str, Any]:
    """Return the receipt of a completed erasure, with its digest. It names no person.

    Args:
        erasure: the request, with digests instead of ids.
        tenant: the tenant of the request.
    """
    document = {
        "version": VERSION,
        "tenant": tenant.slug,
        "tenant_id": str(tenant.pk),
        "erasure": str(erasure.pk),
        "user_id": erasure.user_id,
        "user_ids": erasure.user_ids,
        "agent_id": erasure.agent_id and str(erasure.agent_id),
        "reason": erasure.reason,
        "requested_by": erasure.requested_by,
        "requested_at": erasure.created_at.isoformat(),
        "done_at": erasure.done_at and erasure.done_at.isoformat(),
        "receipt": erasure.receipt,
    }
    digest = {"algorithm": ALGORITHM, "value": secret_keys.signature(document, _PURPOSE)}
    return {**document, "digest": digest}


def verify_receipt(content: bytes) -> dict[str, Any]:
    """Check the digest of a receipt, under each SECRET_KEY that is or was in use.

    Args:
        content: the JSON of a file.

    Returns:
        The receipt.

    Raises:
        ReceiptInvalid: it is no receipt, was changed, or is of another deployment.
    """
    if len(content) > MAX_RECEIPT_BYTES:
        raise ReceiptInvalid(f"a receipt has at most {MAX_RECEIPT_BYTES:,} bytes")
    try:
        # A person could read one value of a duplicate name, and the digest cover the other.
        document = read_json(content.decode(json.detect_encoding(content)))
        digest = document.pop("digest")
        algorithm, value = digest["algorithm"], str(digest["value"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReceiptInvalid("this is not a receipt of an erasure") from error
    if algorithm != ALGORITHM or document.get("version") != VERSION:
        raise ReceiptInvalid("this version cannot check such a receipt")
    if secret_keys.is_signed(document, _PURPOSE, value):
        return dict(document)
    raise ReceiptInvalid(
        "the digest does not fit: the receipt was changed, or is of a deployment with another"
        " SECRET_KEY"
    )


_OF_PERSON = "user_id = ANY(%(users)s) AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)"


def replies_to_others(
    user_ids: Sequence[str], *, agent_id: UUID | None = None
) -> "QuerySet[models.Message]":
    """Return the replies to others that were written with words or facts of a person.

    Args:
        user_ids: all ids of the person.
        agent_id: the agent that forgets the person. None: all agents.
    """
    of_agent = {} if agent_id is None else {"agent_id": agent_id}
    said = models.Message.objects.filter(user_id__in=user_ids, **of_agent).order_by().values("pk")
    facts = models.MemoryEntry.objects.filter(user_id__in=user_ids, **of_agent).values("pk")
    # One sub-query, so that Postgres begins with the sources.
    sources = models.PromptSource.objects.filter(source_id__in=said.union(facts, all=True))
    events = models.RecallEvent.objects.filter(pk__in=sources.values("event_id"))
    written = events.exclude(user_id__in=user_ids).values("reply_id")
    return models.Message.objects.filter(pk__in=written, **of_agent)


_MESSAGES: Final = f"""
    SELECT thread_id, bool_or({_OF_PERSON}), bool_or(NOT ({_OF_PERSON})),
           min(created_at) FILTER (WHERE {_OF_PERSON})
    FROM memory_message
    WHERE thread_id IN (
        SELECT thread_id FROM memory_message WHERE {_OF_PERSON}
        UNION SELECT unnest(%(requested)s::text[])
    )
    GROUP BY thread_id
"""  # noqa: S608  (our constants)
_BY_METADATA = (
    "metadata ->> 'user_id' = ANY(%(users)s)"
    " AND (%(agent)s::uuid IS NULL OR metadata ->> 'agent_id' = %(agent)s::text)"
)
# The first checkpoint of a session has no parent. If it was pruned, the begin is NULL.
_SESSIONS: Final = f"""
    SELECT thread_id, coalesce(bool_or({_BY_METADATA}), false),
           coalesce(bool_or(metadata ->> 'user_id' IS NOT NULL AND NOT ({_BY_METADATA})), false),
           min(checkpoint ->> 'ts') FILTER (WHERE parent_checkpoint_id IS NULL)
    FROM checkpoints
    WHERE thread_id = ANY(%(threads)s)
       OR thread_id IN (SELECT thread_id FROM checkpoints WHERE {_BY_METADATA})
    GROUP BY thread_id
"""  # noqa: S608  (our constants)


@dataclass(frozen=True, slots=True)
class PersonThread:
    """A thread, and the relation of one person to it."""

    thread_id: str
    is_requested: bool = False
    """Whether the request for an erasure names the thread."""
    has_messages: bool = False
    """Whether the person has messages in the thread."""
    has_messages_of_others: bool = False
    first_message_at: datetime | None = None
    """Time of the first message of the person."""
    has_session: bool = False
    session_names_person: bool = False
    session_names_others: bool = False
    session_began_at: datetime | None = None

    @property
    def belongs_to_person(self) -> bool:
        """Whether the thread has messages, all of the person."""
        return self.has_messages and not self.has_messages_of_others

    def session_belongs_to_person(self, *, strict: bool) -> bool:
        """Return whether the thread's session belongs to the person.

        Args:
            strict: whether the request is not trusted. Then the session does not belong to the
                person only because the request names it, or because of a message that is younger
                than the session.
        """
        if self.session_names_others:
            return False
        if self.session_names_person:
            return True
        if self.has_messages_of_others:
            return False
        if not self.has_messages:
            return self.is_requested and not strict
        if not (strict and self.has_session):
            return True
        began, first = self.session_began_at, self.first_message_at
        return began is not None and first is not None and first <= began


def threads_of(
    user_ids: Sequence[str], *, agent_id: UUID | None = None, requested: Iterable[str] = ()
) -> list[PersonThread]:
    """Return the threads with messages or sessions of the person, and the requested threads."""
    requested = set(requested)
    values: dict[str, Any] = {
        "users": list(user_ids),
        "agent": agent_id,
        "requested": sorted(requested),
    }
    messages = {thread: row for thread, *row in context.fetch_all(_MESSAGES, values)}
    values["threads"] = sorted(requested | messages.keys())
    sessions = {thread: row for thread, *row in context.fetch_all(_SESSIONS, values)}
    found = []
    for thread in sorted(requested | messages.keys() | sessions.keys()):
        # As the fields of PersonThread.
        of_messages = messages.get(thread, (False, False, None))
        *names, began = sessions.get(thread, (False, False, None))
        of_session = (thread in sessions, *names, _moment(began))
        found.append(PersonThread(thread, thread in requested, *of_messages, *of_session))
    return found


def _moment(text: str | None) -> datetime | None:
    """Return the time of a checkpoint; None for a text that is no time."""
    with suppress(ValueError, TypeError):
        moment = datetime.fromisoformat(text or "")
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
