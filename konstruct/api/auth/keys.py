"""API keys: making, checking and revoking them."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.core.exceptions import ValidationError
from django.db.models import Q, functions
from django.utils import timezone

from konstruct.api.models import DEFAULT_SCOPES, ApiKey, KeyScope
from konstruct.orchestrator import models, usage
from memory.models.facts import Author, AuthorKind, FactAction, FactEvent
from tenants import context, exceptions, transaction
from tenants.audit import people, tombstones
from tenants.limits.quotas import UNLIMITED, Quota, QuotaExceeded, limits_of

_KEY = re.compile(r"ks_(?P<tenant>[0-9a-f]{32})_(?P<prefix>[0-9a-f]{12})_(?P<secret>[0-9a-f]{64})")


@dataclass(frozen=True)
class KeyText:
    """An API key: `ks_<tenant>_<prefix>_<secret>`.

    The tenant's id is for hosts that serve all tenants. The prefix identifies the row. Only the
    secret authenticates.
    """

    tenant_id: UUID
    prefix: str
    secret: str

    def __str__(self) -> str:
        return f"ks_{self.tenant_id.hex}_{self.prefix}_{self.secret}"

    def __repr__(self) -> str:
        return f"<API key {self.prefix}>"

    @property
    def digest(self) -> str:
        """The stored digest: a plain SHA-256, because 256 random bits cannot be guessed."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def matches(self, digest: str) -> bool:
        """Compare with the stored digest in constant time."""
        return hmac.compare_digest(self.digest, digest)


def new_key(tenant_id: UUID) -> KeyText:
    """Make a key for the tenant."""
    return KeyText(tenant_id, prefix=secrets.token_hex(6), secret=secrets.token_hex(32))


def parse_key(text: str) -> KeyText | None:
    """Read a key's text; None if it is not one."""
    found = _KEY.fullmatch(text)
    return found and KeyText(UUID(found["tenant"]), found["prefix"], found["secret"])


def bearer_key(authorization: str) -> str | None:
    """Return the key of an Authorization header; None for another scheme.

    The scheme is `Bearer`, or `Token` for clients of mem0.
    """
    scheme, _, credentials = authorization.strip().partition(" ")
    return credentials.strip() if scheme.lower() in ("bearer", "token") else None


# Valid keys of a tenant without a hard limit of them.
MAX_API_KEYS: Final = 200
# The last use of a key is stored at most once in this time, to save writes.
LAST_USE_INTERVAL = timedelta(minutes=5)


class KeyInvalid(exceptions.KonstructError):
    """An API key cannot be created or rolled with these values."""

    is_usage_error = True


class KeyTooWide(exceptions.KonstructError):
    """An API key cannot make a key that allows more than it allows itself."""


@dataclass(frozen=True)
class Program:
    """The `request.user` of a request with an API key."""

    key: ApiKey
    # The agent that the request names, read together with the key.
    agents: Mapping[str, models.Agent] = field(default_factory=dict, compare=False, repr=False)
    is_authenticated: bool = True
    is_staff: bool = False

    def __str__(self) -> str:
        return self.key.name


def issue_key(
    *,
    tenant_id: UUID,
    name: str,
    scopes: Iterable[str] = DEFAULT_SCOPES,
    extra_keys: int = 0,
    **columns: Any,
) -> tuple[ApiKey, KeyText]:
    """Create a key, and return its text, which is not stored.

    Args:
        tenant_id: its tenant.
        name: the name of the program that uses it.
        scopes: the scopes; by default read and write.
        extra_keys: number of keys that are allowed above the tenant's limit.
        columns: further columns of the key: `agent_id` and `user_id`, to which it is restricted (by
            default it is not); `expires_at`; `created_by`, the id of a person; `program_id`, the
            first key of the program, and `parent_id`, the key that makes it.

    Raises:
        KeyInvalid: a key cannot have these values; the message names the field.
        QuotaExceeded: the tenant has reached its limit of valid keys.
        LimitReached: it has no limit of its own, and MAX_API_KEYS valid keys.
        PersonBeingErased: an erasure of the user is requested, and not done yet.
    """
    text = new_key(tenant_id)
    requested = [str(scope) for scope in scopes]
    key = ApiKey(
        id=uuid4(),
        name=name,
        prefix=text.prefix,
        secret_digest=text.digest,
        scopes=[scope for scope in KeyScope.values if scope in requested] or requested,
        **columns,
    )
    with context.tenant_scope(tenant_id), transaction.atomic():
        _require_quota(extra_keys)
        try:
            key.full_clean()
        except ValidationError as error:
            problems = (
                f"{field}: {' '.join(messages)}" for field, messages in error.message_dict.items()
            )
            raise KeyInvalid("; ".join(problems).removeprefix("__all__: ")) from error
        people.hold_people([key.user_id])
        key.save(force_insert=True)
    return key, text


def _require_quota(extra_keys: int) -> None:
    """Raise QuotaExceeded or LimitReached if the tenant has its maximum of valid keys."""
    limit = limits_of(usage.tenant_row().quotas).get(Quota.API_KEYS, UNLIMITED).hard
    if limit is None:
        maximum = MAX_API_KEYS + extra_keys
        usage.require_fewer(ApiKey.objects.valid(), maximum)
        return
    usage.lock_quotas()
    used = ApiKey.objects.valid().count()
    if used >= limit + extra_keys:
        raise usage.count_refusal(QuotaExceeded(Quota.API_KEYS, limit=limit, used=used))


def derive_key(
    parent: ApiKey,
    *,
    name: str,
    scopes: Iterable[str],
    agent_id: UUID | None,
    user_id: str | None,
    expires_at: datetime | None,
) -> tuple[ApiKey, KeyText]:
    """Create a key that allows at most what another key does, and is revoked with it.

    Raises what `issue_key` raises, and KeyTooWide if it would allow more, or `parent` is not valid.
    """
    with transaction.atomic():
        own = ApiKey.objects.select_for_update().valid().filter(pk=parent.pk).first()
        if own is None:
            raise KeyTooWide(f"The key {parent.prefix} is not valid any more.")
        if wider := set(scopes).difference(own.scopes):
            raise KeyTooWide(f"Your key does not have the scope {', '.join(sorted(wider))}.")
        if own.agent_id not in (None, agent_id) or own.user_id not in (None, user_id):
            raise KeyTooWide("Your key is bound: the new key needs the same agent and user.")
        if own.expires_at is not None and (expires_at is None or expires_at > own.expires_at):
            raise KeyTooWide(
                f"Your key expires at {own.expires_at.isoformat()}: give no later time."
            )
        return issue_key(
            tenant_id=own.tenant_id,
            name=name,
            scopes=scopes,
            agent_id=agent_id,
            user_id=user_id,
            expires_at=expires_at,
            created_by=own.created_by,
            program_id=own.program_id or own.pk,
            parent_id=own.pk,
        )


def roll_key(
    key: ApiKey, *, grace: timedelta = timedelta(), created_by: str = ""
) -> tuple[ApiKey, KeyText]:
    """Create a key with the same rights, and let the old one expire. The text is not stored.

    A key that expires gets a successor with the same lifetime. Keys that the old one made belong to
    the new one.

    Args:
        key: the key of the current tenant that is replaced.
        grace: how long the old key stays valid, at most until its own expiry.
        created_by: the id of the person who does it.

    Raises KeyInvalid if the key is revoked or expired, or is changed at the same moment.
    """
    now = timezone.now()
    with transaction.atomic():
        old = ApiKey.objects.select_for_update().valid().filter(pk=key.pk).first()
        if old is None or old.expires_at != key.expires_at:
            raise KeyInvalid(f"the key {key.prefix} is not valid any more, or was rolled already")
        new, text = issue_key(
            tenant_id=old.tenant_id,
            name=old.name,
            scopes=old.scopes,
            agent_id=old.agent_id,
            user_id=old.user_id,
            expires_at=old.expires_at and now + (old.expires_at - old.created_at),
            created_by=created_by,
            extra_keys=1,  # the old one, which expires
            program_id=old.program_id or old.pk,
            parent_id=old.parent_id,
        )
        ApiKey.objects.filter(parent_id=old.pk).update(parent_id=new.pk)
        old.expires_at = min(filter(None, [old.expires_at, now + grace]))
        old.save(update_fields=["expires_at"])
        tombstones.enqueue_tombstones(tombstones.KEY, old.pk)
    key.refresh_from_db()
    return new, text


def owns_proposal(memory_id: UUID, *, person_id: str, key_id: UUID | None = None) -> bool:
    """Return whether a person or a program proposed a fact, or requested the run that did.

    All keys that a person made are the person's, and all keys that replaced or made one another are
    one program's, also those that are revoked.

    Args:
        memory_id: the fact.
        person_id: the person; empty: none.
        key_id: a key of the program.
    """
    with_program = ApiKey.objects.annotate(program=functions.Coalesce("program_id", "id"))
    own = Q(pk=key_id) | (Q(created_by=person_id) if person_id else Q(pk=None))
    programs = with_program.filter(own).values("program")
    of_programs = with_program.filter(program__in=programs)
    keys = {str(pk) for pk in of_programs.values_list("pk", flat=True)}
    proposals = FactEvent.objects.filter(memory_id=memory_id, action=FactAction.PROPOSE)
    authors = set(proposals.values_list("author_kind", "author_id"))
    if any(kind == AuthorKind.PROGRAM and author_id in keys for kind, author_id in authors):
        return True
    run_ids = [author_id for kind, author_id in authors if kind == AuthorKind.RUN]
    requesters = [Author(AuthorKind.PROGRAM, key).address for key in keys]
    return models.ExtractionRun.objects.filter(pk__in=run_ids, requested_by__in=requesters).exists()


def record_use(key: ApiKey) -> None:
    """Store the time of the key's use, unless it was stored within LAST_USE_INTERVAL."""
    last_used_at, now = key.last_used_at, timezone.now()
    if last_used_at is not None and now - last_used_at < LAST_USE_INTERVAL:
        return
    # Of concurrent requests, only the first one writes.
    long_ago = Q(last_used_at__isnull=True) | Q(last_used_at__lte=now - LAST_USE_INTERVAL)
    ApiKey.objects.filter(long_ago, pk=key.pk).update(last_used_at=now)


def revoke_key(key_id: UUID) -> bool:
    """Revoke a key for good, with the keys that it made. Return whether it was valid until now."""
    with transaction.atomic():
        unrevoked = ApiKey.objects.filter(revoked_at__isnull=True)
        is_revoked = bool(unrevoked.filter(pk=key_id).update(revoked_at=functions.Now()))
        revoked = new = [key_id] if is_revoked else []
        while new:  # each round revokes keys, also those that were rolled since the round before
            tombstones.enqueue_tombstones(tombstones.KEY, *new)
            new = [*unrevoked.filter(parent_id__in=revoked).values_list("pk", flat=True)]
            unrevoked.filter(pk__in=new).update(revoked_at=functions.Now())
            revoked = [*revoked, *new]
    return is_revoked
