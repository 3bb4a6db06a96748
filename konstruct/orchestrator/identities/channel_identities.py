"""Identities: the user that a sender of a channel belongs to.

A new sender becomes a new user. If the sender is linked to another user, the earlier messages are
moved to that user (konstruct/privacy/jobs). All linked ids are one person.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID, uuid4

from django.db.models import Q
from django.db.models.functions import Length, Now

from konstruct.orchestrator.exceptions import NothingToLink, RowNotFound
from konstruct.orchestrator.models.identities import ChannelIdentity, HistoryMerge
from memory import arguments, models
from memory.browse.lists import similar_user_ids
from memory.text.lexical import fold
from tenants import context, jobs, personal_data, transaction
from tenants.audit.people import Person, hold_people

# UNION removes ids that were found before, so that the recursion ends.
_LINKED = """
    WITH RECURSIVE person (user_id) AS (
        SELECT unnest(%s::text[])
        UNION
        SELECT unnest(ARRAY[identity.own_id, identity.user_id])
        FROM person JOIN orchestrator_channelidentity AS identity
          ON person.user_id IN (identity.own_id, identity.user_id)
    )
    SELECT user_id FROM person
"""


def linked_ids(*user_ids: str) -> list[str]:
    """Return these ids, followed by all ids that are linked to them.

    Links are followed in both directions, and through chains. Removed links are ignored.
    """
    ids = set(context.fetch_column(_LINKED, [list(user_ids)]))
    return [*user_ids, *sorted(ids - set(user_ids))]


def main_id(user_id: str) -> str:
    """Return the id of the user that an id is linked to; the id itself if it is not linked."""
    linked = ChannelIdentity.objects.filter(own_id=user_id).values_list("user_id", flat=True)
    return linked.first() or user_id


def users_of_accounts(text: str) -> list[str]:
    """Return the ids of the users of channel accounts with this text in their id or their name."""
    matches = Q(own_id__icontains=text) | Q(native_id=text) | Q(name__icontains=text)
    user_ids = ChannelIdentity.objects.filter(matches).values_list("user_id", flat=True)
    return sorted(set(user_ids.order_by()[:MAX_NAMES]))


def is_known(user_ids: Sequence[str]) -> bool:
    """Return whether any row of the current tenant has one of these ids."""
    probes = " OR ".join(
        f"EXISTS (SELECT FROM {table} WHERE {subject} = ANY(%(users)s))"
        for table, data in personal_data.personal_tables().items()
        if data.on_erasure is personal_data.OnErasure.DELETE
        for subject in data.subjects
    )
    return bool(context.fetch_value(f"SELECT {probes}", {"users": list(user_ids)}))


# A text that is a part of more names is no name of one person.
MAX_NAMES: Final = 1_000


def find_people(text: str, *, whole: bool = False) -> list[str]:
    """Return the ids of the people that a text names, each person once, sorted.

    The text is an id; or else a name, or the id of an account in its channel; or else words of a
    name; or else an id in another case or with other white space. Case and accents of names make no
    difference.

    Args:
        text: the typed text.
        whole: whether words of a name and similar ids are no names of a person.
    """
    if is_known([text]):
        return [text]
    if not text.strip():
        return []
    name = fold(text)
    words = set(name.split())
    holds_words = Q(*(("folded__contains", word) for word in words))
    named = models.PersonName.objects.filter(holds_words).order_by(Length("folded"))
    names = [*named.values_list("user_id", "folded")[:MAX_NAMES]] if words else []
    accounts = ChannelIdentity.objects.filter(Q(native_id=text) | Q(name__iexact=text.strip()))
    found = {user_id for user_id, folded in names if folded == name}
    chosen = Person.objects.filter(chosen_name__iexact=text.strip()).values_list("user_id")
    found |= {user_id for (user_id,) in accounts.values_list("user_id").union(chosen)}
    if not whole:
        found = found or {user_id for user_id, folded in names if words <= {*folded.split()}}
        found = found or {*similar_user_ids(text)}
    linked = ChannelIdentity.objects.filter(own_id__in=found).values_list("own_id", "user_id")
    main_ids = dict(linked)
    return sorted({main_ids.get(user_id, user_id) for user_id in found})


HISTORY_MERGES = jobs.owner_kind("history merge")

# The limit of ids in the API and in indexes of Postgres.
MAX_ID_CHARACTERS = 255


def user_of(channel: str, workspace: str, native_id: str, name: str = "") -> str:
    """Return the user that a sender's messages belong to, in the current tenant.

    A new sender becomes the user with the same id. If another identity, such as one of another
    workspace, has this user already, the sender gets a new user: identities that are not linked
    must not share a memory.

    Args:
        channel: the channel, such as slack.
        workspace: the workspace in the channel; empty for a channel without workspaces.
        native_id: the sender's id in the channel.
        name: the sender's display name in the channel, if known.

    Raises:
        InvalidArgument: a value cannot be stored; the message names it.
    """
    return identity_of(channel, workspace, native_id, name).user_id


def identity_of(channel: str, workspace: str, native_id: str, name: str = "") -> ChannelIdentity:
    """Return the identity of a sender; create it if it is new. See `user_of`."""
    place = {
        "channel": arguments.new_id_argument("channel", channel),
        "workspace": arguments.text_argument("workspace", workspace),
        "native_id": arguments.new_id_argument("native_id", native_id),
    }
    arguments.text_argument("name", name)
    identity = ChannelIdentity.objects.filter(**place).first()
    if identity is None:
        with transaction.atomic():
            _lock_identities()
            identity = ChannelIdentity.objects.filter(**place).first()
            if identity is None:
                own_id = _free_id(**place)
                hold_people([own_id])
                identity = ChannelIdentity.objects.create(
                    **place, own_id=own_id, user_id=own_id, name=name
                )
    if name and identity.name != name:
        identity.name = name
        identity.save(update_fields=["name"])
    return identity


def find_identity(identity_id: UUID) -> ChannelIdentity:
    """Return the identity with this id. Raises RowNotFound."""
    identity = ChannelIdentity.objects.filter(pk=identity_id).first()
    if identity is None:
        raise RowNotFound(f"No identity has the id {identity_id}.")
    return identity


def link(identity: ChannelIdentity, user_id: str, *, by: str) -> ChannelIdentity:
    """Link the identity to a user. Its earlier messages are moved to that user.

    Identities that are linked to this identity are linked to the new user too. If `user_id` is an
    identity that is linked to another user, that user is taken.

    Args:
        identity: the identity.
        user_id: the user that it belongs to from now on.
        by: the name of the person or program that links it.

    Raises:
        InvalidArgument: the user's id is invalid.
        NothingToLink: the identity belongs to this user already.
        PersonBeingErased: an erasure of one of the two users is requested, and not done yet.
    """
    new_user_id = arguments.new_id_argument("user_id", user_id)
    with transaction.atomic():
        _lock_identities()
        existing = find_identity(identity.pk)
        other = ChannelIdentity.objects.filter(own_id=new_user_id).first()
        target = new_user_id if other is None else other.user_id
        if target == existing.user_id:
            raise NothingToLink(f"{existing} speaks as {target!r} already.")
        hold_people(linked_ids(existing.own_id, target))
        ChannelIdentity.objects.filter(Q(user_id=existing.own_id) | Q(pk=existing.pk)).update(
            user_id=target, linked_at=Now(), linked_by=by
        )
        HistoryMerge.objects.filter(user_id=existing.own_id, done_at=None).update(user_id=target)
        merge, is_new = HistoryMerge.objects.get_or_create(
            from_user=existing.own_id,
            done_at=None,
            defaults={"user_id": target, "requested_by": by},
        )
        HISTORY_MERGES.enqueue(merge.pk)
        if not is_new:  # other columns must not be updated, as update_or_create would
            merge.user_id, merge.requested_by = target, by
            merge.save(update_fields=["user_id", "requested_by"])
        return find_identity(identity.pk)


def unlink(identity: ChannelIdentity) -> ChannelIdentity:
    """Make the identity a user of its own again. Messages that were moved are not moved back.

    Raises:
        NothingToLink: the identity is not linked.
        PersonBeingErased: an erasure of the person is requested, and not done yet.
    """
    with transaction.atomic():
        _lock_identities()
        existing = find_identity(identity.pk)
        if existing.user_id == existing.own_id:
            raise NothingToLink(f"{existing} is not linked: it speaks as {existing.own_id!r}.")
        hold_people(linked_ids(existing.own_id))
        existing.user_id, existing.linked_at, existing.linked_by = existing.own_id, None, ""
        existing.save(update_fields=["user_id", "linked_at", "linked_by"])
        # A merge that has not begun is cancelled.
        HistoryMerge.objects.filter(from_user=existing.own_id, done_at=None).update(
            done_at=Now(), last_error="Unlinked before it was finished."
        )
        return existing


def _free_id(channel: str, workspace: str, native_id: str) -> str:
    """Return an unused user id for a new identity: the channel's id, if no identity has it."""
    qualified = f"{channel}:{workspace}:{native_id}"
    for candidate in (native_id, qualified):
        taken = ChannelIdentity.objects.filter(Q(own_id=candidate) | Q(user_id=candidate))
        if len(candidate) <= MAX_ID_CHARACTERS and not taken.exists():
            return candidate
    # Both are used or too long.
    return f"{channel[:100]}:{uuid4()}"


def _lock_identities() -> None:
    """Lock the tenant's identities until the transaction ends."""
    context.execute("SELECT public.wait_for_tenant_lock(%s)", ["konstruct.identities"])
