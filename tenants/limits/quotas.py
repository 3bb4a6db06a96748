"""Quotas of a tenant, and the errors of requests that exceed them.

The limits are on the tenant's row. A tenant may read them; Postgres lets only operators write them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Self
from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils import formats, timezone
from django.utils.translation import gettext, gettext_lazy as _

from tenants import context, exceptions, transaction
from tenants.limits.rate_limit import Bucket
from tenants.models import Tenant

MAX_LIMIT: Final = Decimal(10**15)


class Quota(models.TextChoices):
    """A quantity that can be limited. Labels are in the language of the page."""

    MESSAGES = "messages", _("Messages in a month")
    MEMORIES = "memories", _("Memories")
    STORAGE = "storage_bytes", _("Storage in bytes")
    TOKENS = "tokens", _("Tokens in a month")
    COST = "cost", _("Money in a month")
    API_KEYS = "api_keys", _("API keys")
    REQUESTS = "requests_per_second", _("Requests in a second")

    @property
    def is_monthly(self) -> bool:
        """Whether it is counted anew each month (UTC)."""
        return self in MONTHLY

    @property
    def has_soft_limit(self) -> bool:
        """Whether it has a soft limit. Others have headers with the remaining number instead."""
        return self is not Quota.REQUESTS


MONTHLY: Final = frozenset({Quota.MESSAGES, Quota.TOKENS, Quota.COST})
_REMEDIES: Final = {
    Quota.MEMORIES: _(
        "Delete facts or erase conversations, or ask the operator for a higher limit."
    ),
    Quota.STORAGE: _("Erase conversations, or ask the operator for a higher limit."),
    Quota.API_KEYS: _("Revoke a key, or ask the operator for a higher limit."),
}
_WAIT: Final = _("Wait until then, or ask the operator of this service for a higher limit.")


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of one quota. None: unlimited."""

    soft: Decimal | None = None
    """From here on the team and the operators are warned."""
    hard: Decimal | None = None
    """Nothing is used beyond it."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Return the limits of a tenant's row."""
        return cls(**{name: Decimal(str(value)) for name, value in document.items()})

    def level(self, used: Decimal | int | None) -> str:
        """Return which limit is reached: "hard", "soft" or ""."""
        for name, limit in (("hard", self.hard), ("soft", self.soft)):
            if limit is not None and used is not None and used >= limit:
                return name
        return ""


UNLIMITED: Final = Limit()


class QuotaExceeded(exceptions.KonstructError):
    """A hard limit is reached. Nothing of the request was done."""

    code = "quota_exceeded"
    is_usage_error = True

    def __init__(self, quota: Quota, *, limit: Decimal, used: Decimal | int) -> None:
        self.quota, self.limit, self.used = quota, limit, Decimal(used)
        self.resets_at = next_month(timezone.now()) if quota.is_monthly else None
        self.remedy = str(_REMEDIES.get(quota, _WAIT))
        text = gettext(
            "The quota is used up: %(quota)s is limited to %(limit)s, and %(used)s are used."
        ) % {
            "quota": quota.label,
            "limit": _format_number(limit),
            "used": _format_number(self.used),
        }
        if self.resets_at is not None:
            text += " " + gettext("It begins anew on %(day)s.") % {
                "day": f"{self.resets_at:%Y-%m-%d}"
            }
        super().__init__(f"{text} {self.remedy}")

    @property
    def for_people(self) -> str:
        """The text for people who talk to an agent: without numbers and names of quotas."""
        if self.resets_at is None:
            return (
                "No more messages can be taken at the moment, and this one was not kept. Please ask"
                " the people who run this service."
            )
        return (
            "No more messages can be taken this month, and this one was not kept. Please write"
            f" again from {self.resets_at:%Y-%m-%d} on, or ask the people who run this service."
        )

    @property
    def retry_after(self) -> float | None:
        """Seconds until the quota is counted anew; None if time does not help."""
        if self.resets_at is None:
            return None
        return max(1.0, (self.resets_at - timezone.now()).total_seconds())


def _format_number(number: Decimal) -> str:
    """Return a number with the separators of the current language."""
    return str(formats.number_format(f"{number:f}", force_grouping=True))


def next_month(moment: datetime) -> datetime:
    """Return the beginning of the month after a moment (UTC)."""
    here = moment.astimezone(UTC)
    year, month = (here.year + 1, 1) if here.month == 12 else (here.year, here.month + 1)
    return datetime(year, month, 1, tzinfo=UTC)


def limits_of(quotas: Mapping[str, Any]) -> dict[Quota, Limit]:
    """Return the limits of a tenant's row; quotas without one are missing."""
    return {Quota(name): Limit.of(value) for name, value in quotas.items() if name in Quota}


def refuse_full_storage(tenant: Tenant) -> None:
    """Raise QuotaExceeded if the tenant's storage has reached its hard limit, as last measured."""
    limit = limits_of(tenant.quotas).get(Quota.STORAGE, UNLIMITED)
    used = tenant.usage.get(Quota.STORAGE.value)
    if limit.hard is not None and limit.level(used) == "hard":
        raise QuotaExceeded(Quota.STORAGE, limit=limit.hard, used=used)


def set_limits(tenant_id: UUID, limits: Mapping[Quota, Limit]) -> Tenant:
    """Set the limits of some quotas, which a form has checked, and return the changed tenant.

    Args:
        tenant_id: the tenant.
        limits: the new limits; UNLIMITED removes those of a quota.
    """
    with context.public_scope(), transaction.atomic():
        tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
        quotas = dict(tenant.quotas)
        for quota, limit in limits.items():
            values = {"soft": limit.soft, "hard": limit.hard}
            document = {name: f"{value:f}" for name, value in values.items() if value is not None}
            quotas.pop(quota.value, None)
            if document:
                quotas[quota.value] = document
        tenant.quotas = quotas
        tenant.save(update_fields=["quotas"])
    return tenant


def request_buckets(
    quotas: Mapping[str, Any], channel: str, key: str | None = None
) -> list[Bucket]:
    """Return the token buckets of a tenant's requests, and of its API key.

    The default sizes are RATE_LIMIT_…, and half of them for a key. A quota of the tenant changes
    all of them in proportion.

    Args:
        quotas: of the tenant's row.
        channel: the channel, such as rest.
        key: prefix of the API key; None: without a key.
    """
    limit = limits_of(quotas).get(Quota.REQUESTS, UNLIMITED).hard
    share = 1.0 if limit is None else float(limit) / settings.RATE_LIMIT_PER_SECOND

    def bucket(name: str, burst: float, per_second: float) -> Bucket:
        return Bucket(name, max(1, round(burst * share)), per_second * share)

    burst, per_second = settings.RATE_LIMIT_BURST, settings.RATE_LIMIT_PER_SECOND
    buckets = [bucket(channel, burst, per_second)]
    if key is not None:
        buckets.append(bucket(f"{channel}-{key}", burst / 2, per_second / 2))
    return buckets
