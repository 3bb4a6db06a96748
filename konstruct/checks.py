"""Django system checks of a deployment: `manage.py check --deploy --database default`.

Those of Postgres are in tenants/checks.py.
"""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Warning, register
from django.http.request import validate_host
from django_redis import get_redis_connection
from kombu.exceptions import OperationalError

from konstruct.celery import app
from tenants.outages import OUTAGES, outage_reason


@register(checks.Tags.security, deploy=True)
def check_hosts(app_configs: Any, **_: Any) -> Iterator[CheckMessage]:
    """Compare the hosts of operators and of new tenants with those that are served."""
    suffix = settings.TENANT_DOMAIN_SUFFIX
    for host in (*settings.PUBLIC_HOSTS, f"tenant.{suffix}"):
        if not validate_host(host.lower(), settings.ALLOWED_HOSTS):
            yield Error(
                f"ALLOWED_HOSTS refuses {host}, which PUBLIC_HOSTS or TENANT_DOMAIN_SUFFIX names.",
                hint="Add it to ALLOWED_HOSTS, or correct the other setting.",
                id="konstruct.E001",
            )
    if settings.SECURE_PROXY_SSL_HEADER and not settings.TRUSTED_PROXIES:
        yield Warning(
            "TRUSTED_PROXIES is 0 behind a proxy: all clients have the proxy's address.",
            hint="Set TRUSTED_PROXIES to the number of proxies.",
            id="konstruct.W002",
        )


@register("deployment", deploy=True)
def check_stores(app_configs: Any, **_: Any) -> Iterator[CheckMessage]:
    """Write to the cache and the broker."""
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
            channel: Any = broker.default_channel  # of Redis
            yield from _check_store(channel.client, "broker")
    except (OperationalError, *OUTAGES) as error:
        yield _unreachable("broker", "CELERY_BROKER_URL", error)
    try:
        yield from _check_store(get_redis_connection(), "cache")
    except OUTAGES as error:
        yield _unreachable("cache", "REDIS_URL", error)


def _unreachable(store: str, setting: str, error: Exception) -> CheckMessage:
    return Error(
        f"The {store} takes no writes: {outage_reason(error)}",
        hint=f"Start the server, make room for it, or correct {setting}.",
        id="konstruct.E005",
    )


def _check_store(client: Any, store: str) -> Iterator[CheckMessage]:
    client.set("public:check", 1, ex=1)
    if (policy := client.info("memory")["maxmemory_policy"]) != "noeviction":
        yield Warning(
            f"maxmemory-policy of the {store} is {policy}: with a full memory it drops windows, and"
            " tasks, in silence.",
            hint="Set maxmemory-policy noeviction.",
            id="konstruct.W004",
        )
