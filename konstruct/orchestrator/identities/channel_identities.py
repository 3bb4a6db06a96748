"""Identities: as whom somebody speaks whom a channel knows by an id of its own.

By themselves everybody is a user apart. Linked, they speak as somebody who is known already, and
what they said before follows them (konstruct/privacy/merge).
"""

from uuid import UUID, uuid4

from django.db.models import Q
from django.db.models.functions import Now

from konstruct.orchestrator.exceptions import IdentityNotFound, NothingToLink, PersonBeingErased
from konstruct.orchestrator.identities.linked_ids import linked_ids
from konstruct.orchestrator.models.identities import ChannelIdentity, HistoryMerge
from memory.arguments import text_argument
from memory.ids import new_id_argument
from tenants import transaction
from tenants.audit.models import ErasureRequest
from tenants.context import execute
from tenants.jobs import owner_kind

HISTORY_MERGES = owner_kind("history merge")

# Within what Postgres keeps in an index, and what the API takes for an id.
MAX_ID_CHARACTERS = 255


def user_of(channel: str, workspace: str, native_id: str, name: str = "") -> str:
    """Return the user whose memory it becomes what somebody says, in the tenant that we are in.

    Whoever is heard for the first time is the user of that very id; unless that user is another
    identity already (of another workspace, say): then they are one of their own, for two who were
    never linked must not share a memory.

    Args:
        channel: slack …
        workspace: where in the channel; empty for a channel that has no such.
        native_id: as the channel knows them there.
        name: what the channel calls them, if it said.

    Raises:
        InvalidArgument: a value that cannot be stored; the message names it.
    """
    return identity_of(channel, workspace, native_id, name).user_id


def identity_of(channel: str, workspace: str, native_id: str, name: str = "") -> ChannelIdentity:
    """Return the identity, made now if it is new. As `user_of`."""
    place = {
        "channel": new_id_argument("channel", channel),
        "workspace": text_argument("workspace", workspace),
        "native_id": new_id_argument("native_id", native_id),
    }
    text_argument("name", name)
    identity = ChannelIdentity.objects.filter(**place).first()
    if identity is None:
        identity = _first_heard(place, name)
    if name and identity.name != name:
        identity.name = name
        identity.save(update_fields=["name"])
    return identity


def find_identity(identity_id: UUID) -> ChannelIdentity:
    """Return the identity of that id. Raises IdentityNotFound."""
    found = ChannelIdentity.objects.filter(pk=identity_id).first()
    if found is None:
        raise IdentityNotFound(f"No identity has the id {identity_id}.")
    return found


def link(identity: ChannelIdentity, user_id: str, *, by: str) -> ChannelIdentity:
    """Let the identity speak as this user from now on; what it said before follows.

    Whoever speaks as the identity's own user comes along, for they are one person. A user who is an
    identity that is linked itself stands for whom that one speaks as.

    Raises:
        InvalidArgument: the user's id cannot be one.
        NothingToLink: the identity speaks as this user already.
        PersonBeingErased: the erasure of one of the two is asked for, and not done yet.
    """
    wanted = new_id_argument("user_id", user_id)
    with transaction.atomic():
        _one_at_a_time()
        existing = find_identity(identity.pk)
        other = ChannelIdentity.objects.filter(own_id=wanted).first()
        target = wanted if other is None else other.user_id
        if target == existing.user_id:
            raise NothingToLink(f"{existing} speaks as {target!r} already.")
        _refuse_while_erased(existing.own_id, target)
        ChannelIdentity.objects.filter(Q(user_id=existing.own_id) | Q(pk=existing.pk)).update(
            user_id=target, linked_at=Now(), linked_by=by
        )
        HistoryMerge.objects.filter(user_id=existing.own_id, done_at=None).update(user_id=target)
        _move(existing.own_id, target, by)
        return find_identity(identity.pk)


def unlink(identity: ChannelIdentity) -> ChannelIdentity:
    """Let the identity speak for itself again from now on. What was moved stays where it is.

    Raises:
        NothingToLink: it does already.
        PersonBeingErased: the erasure of the person is asked for, and not done yet.
    """
    with transaction.atomic():
        _one_at_a_time()
        existing = find_identity(identity.pk)
        if existing.user_id == existing.own_id:
            raise NothingToLink(f"{existing} is not linked: it speaks as {existing.own_id!r}.")
        _refuse_while_erased(existing.own_id)
        existing.user_id, existing.linked_at, existing.linked_by = existing.own_id, None, ""
        existing.save(update_fields=["user_id", "linked_at", "linked_by"])
        # What has not begun yet is not wanted any more.
        HistoryMerge.objects.filter(from_user=existing.own_id, done_at=None).update(
            done_at=Now(), last_error="Unlinked before it was finished."
        )
        return existing


def _refuse_while_erased(*user_ids: str) -> None:
    """Let an erasure reach the person who was named, and nobody who became one with them since."""
    everybody = linked_ids(*user_ids)
    being_erased = ErasureRequest.objects.open().filter(user_id__in=everybody).first()
    if being_erased is not None:
        raise PersonBeingErased(
            f"The erasure of {being_erased.user_id!r} is asked for: link or unlink when it is done."
        )


def _first_heard(place: dict[str, str], name: str) -> ChannelIdentity:
    with transaction.atomic():
        _one_at_a_time()
        existing = ChannelIdentity.objects.filter(**place).first()
        if existing is not None:
            return existing
        own_id = _free_id(**place)
        return ChannelIdentity.objects.create(**place, own_id=own_id, user_id=own_id, name=name)


def _free_id(channel: str, workspace: str, native_id: str) -> str:
    """An id for the user whom this is by itself: that of the channel, if nobody else is it."""
    qualified = f"{channel}:{workspace}:{native_id}"
    for candidate in (native_id, qualified):
        taken = ChannelIdentity.objects.filter(Q(own_id=candidate) | Q(user_id=candidate))
        if len(candidate) <= MAX_ID_CHARACTERS and not taken.exists():
            return candidate
    # Too long, or somebody chose an id that reads like a qualified one.
    return f"{channel[:100]}:{uuid4()}"


def _move(from_user: str, user_id: str, by: str) -> None:
    move, made = HistoryMerge.objects.get_or_create(
        from_user=from_user, done_at=None, defaults={"user_id": user_id, "requested_by": by}
    )
    HISTORY_MERGES.enqueue_if_missing(move.pk)
    if not made:
        move.user_id, move.requested_by = user_id, by
        move.save(update_fields=["user_id", "requested_by"])


def _one_at_a_time() -> None:
    """Wait for whoever names or links an identity of this tenant, until the transaction ends."""
    execute("SELECT public.wait_for_tenant_lock(%s)", ["konstruct.identities"])
