"""API keys: making, checking and revoking them."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.core.exceptions import ValidationError
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from konstruct.api.models import USUAL_SCOPES, ApiKey, KeyScope
from konstruct.orchestrator.models import Agent
from konstruct.orchestrator.usage import count_refusal, lock_quotas, tenant_row
from tenants import transaction
from tenants.audit.tombstones import KEY, enqueue_tombstones
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.limits.quotas import UNLIMITED, Quota, QuotaExceeded, limits_of

_KEY = re.compile(r"ks_(?P<tenant>[0-9a-f]{32})_(?P<prefix>[0-9a-f]{12})_(?P<secret>[0-9a-f]{64})")


@dataclass(frozen=True)
class KeyText:
    """An API key: `ks_<tenant>_<prefix>_<secret>`.

    The tenant is in it so that a host which serves all tenants knows where to look; the prefix
    finds the row; only the secret proves anything.
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
        """The stored digest. The secret has 256 random bits: a plain hash cannot be searched."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def matches(self, digest: str) -> bool:
        """Compare with the stored digest, in a time that does not depend on where they differ."""
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


# A key's last use is written down this often at most, so that requests do not cost a write.
LAST_USE_EVERY = timedelta(minutes=5)


class KeyInvalid(KonstructError):
    """An API key cannot be made like this."""


@dataclass(frozen=True)
class Program:
    """Who a request with an API key comes from, in the place of a user."""

    key: ApiKey
    # The agent that the request names, read together with the key.
    agents: Mapping[str, Agent] = field(default_factory=dict, compare=False, repr=False)
    is_authenticated: bool = True
    is_staff: bool = False

    def __str__(self) -> str:
        return self.key.name


def issue_key(
    *,
    tenant_id: UUID,
    name: str,
    scopes: Iterable[str] = USUAL_SCOPES,
    agent_id: UUID | None = None,
    user_id: str | None = None,
    expires_at: datetime | None = None,
    created_by: str = "",
    key_id: UUID | None = None,
    spare: int = 0,
) -> tuple[ApiKey, KeyText]:
    """Create a key, and return its text, which is not stored.

    Args:
        scopes: the scopes; by default read and write.
        agent_id: restricts the key to one agent; by default all of them.
        user_id: restricts the key to one end user; by default all of them.
        created_by: the id of the person who creates it; empty: an operator's command.
        key_id: the id of its row; None: a new one.
        spare: how many keys there may be above the tenant's limit.

    Raises:
        KeyInvalid: a key cannot have these values; the message names the field.
        QuotaExceeded: the tenant has reached its limit of valid keys.
    """
    text = new_key(tenant_id)
    chosen = [str(scope) for scope in scopes]
    key = ApiKey(
        id=key_id or uuid4(),
        name=name,
        prefix=text.prefix,
        secret_digest=text.digest,
        scopes=[scope for scope in KeyScope.values if scope in chosen] or chosen,
        agent_id=agent_id,
        user_id=user_id,
        expires_at=expires_at,
        created_by=created_by,
    )
    with tenant_scope(tenant_id), transaction.atomic():
        _require_room(spare)
        try:
            key.full_clean()
        except ValidationError as error:
            problems = (
                f"{field}: {' '.join(messages)}" for field, messages in error.message_dict.items()
            )
            raise KeyInvalid("; ".join(problems).removeprefix("__all__: ")) from error
        key.save(force_insert=True)
    return key, text


def _require_room(spare: int) -> None:
    """Raise if a hard limit leaves no room for a key."""
    limit = limits_of(tenant_row().quotas).get(Quota.API_KEYS, UNLIMITED).hard
    if limit is None:
        return
    lock_quotas()
    used = ApiKey.objects.valid().count()
    if used >= limit + spare:
        raise count_refusal(QuotaExceeded(Quota.API_KEYS, limit=limit, used=used))


def roll_key(
    key: ApiKey, *, grace: timedelta = timedelta(), created_by: str = ""
) -> tuple[ApiKey, KeyText]:
    """Make a key with the same rights; the old one expires. Its text is returned here alone.

    A key that was made for some time gets a successor for as long.

    Args:
        key: the key of the current tenant that is replaced.
        grace: how long the old key works yet; never longer than it would have.
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
            spare=1,  # the old one, which expires
        )
        old.expires_at = min(filter(None, [old.expires_at, now + grace]))
        old.save(update_fields=["expires_at"])
        enqueue_tombstones(KEY, old.pk)
    key.refresh_from_db()
    return new, text


def keys_of_person(user_id: str) -> list[str]:
    """Return the ids of all keys that a person made, also of revoked ones."""
    return [
        str(pk) for pk in ApiKey.objects.filter(created_by=user_id).values_list("pk", flat=True)
    ]


def note_use(key: ApiKey) -> None:
    """Write down that the key was used, unless that was done a moment ago."""
    used, now = key.last_used_at, timezone.now()
    if used is not None and now - used < LAST_USE_EVERY:
        return
    # Of several simultaneous requests, the first one writes.
    long_ago = Q(last_used_at__isnull=True) | Q(last_used_at__lte=now - LAST_USE_EVERY)
    ApiKey.objects.filter(long_ago, pk=key.pk).update(last_used_at=now)


def revoke_key(key_id: UUID) -> bool:
    """Revoke a key for good. Return whether it was valid until now."""
    with transaction.atomic():
        valid = ApiKey.objects.filter(pk=key_id, revoked_at__isnull=True)
        is_revoked = bool(valid.update(revoked_at=Now()))
        if is_revoked:
            enqueue_tombstones(KEY, key_id)
    return is_revoked
