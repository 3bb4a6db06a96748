"""Removes credentials from text that people read: logs, and stored errors.

Each pattern begins with a literal that it cannot match twice, so that it reads a text once, of any
length.
"""

import re

HIDDEN = "***"

# Settings that are URLs. Their user and password may have characters that make them invalid.
URLS = (
    "DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "CELERY_BROKER_URL", "LLM_POOL_URL",
    "SLACK_API_URL", "OTEL_EXPORTER_OTLP_ENDPOINT",
)  # fmt: skip
# Settings with a URL for each server.
NAMED_URLS = ("TENANT_DATABASES", "TENANT_DATABASES_OWNER")
SECRETS = (
    "SECRET_KEY", "LLM_API_KEY", "SLACK_CLIENT_SECRET", "SLACK_SIGNING_SECRET",
    "OTEL_EXPORTER_OTLP_HEADERS",
)  # fmt: skip
# Settings that are lists.
KEYS = ("SECRET_KEY_FALLBACKS", "SLACK_SIGNING_SECRET_FALLBACKS", "CHANNEL_TOKEN_KEYS")
# Shorter secrets are ordinary words, which would be hidden everywhere.
MIN_SECRET_LENGTH = 12

_IN_QUERY = r"(?:api[_-]?key|key|(?:access_)?token|password|secret|sig(?:nature)?)"
_PATTERNS = (
    # scheme://user:password@host
    (re.compile(r"(?<=://)[^\s/?#]*@"), f"{HIDDEN}@"),
    (re.compile(rf"([?&]{_IN_QUERY}=)[^&\s'\"#]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(r"\b(Bearer|Basic)[ ]+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    # Tokens of Slack, keys of OpenAI and its like, and our own.
    (re.compile(r"\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]+"), HIDDEN),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{12,}"), HIDDEN),
    (re.compile(r"\bks_[0-9a-f]{32}_[0-9a-f]{12}_[0-9a-f]+"), HIDDEN),
)


def redact(text: str) -> str:
    """Return the text without secrets of the settings, and without strings that look like them."""
    for secret in _secrets():
        text = text.replace(secret, HIDDEN)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def _secrets() -> list[str]:
    """Return the secrets of the settings, longest first, since one may be a part of another."""
    from django.conf import settings  # here, for the archive's errors need no Django

    found = [getattr(settings, name, "") or "" for name in SECRETS]
    for name in KEYS:
        found += getattr(settings, name, [])
    found = [secret for secret in found if len(secret) >= MIN_SECRET_LENGTH]
    urls = [getattr(settings, name, "") or "" for name in URLS]
    for name in NAMED_URLS:
        urls += getattr(settings, name, {}).values()
    for url in urls:
        _, _, rest = url.partition("://")
        user, at, _ = rest.rpartition("@")
        if at and ":" in user:
            found.append(user)
    return sorted(found, key=len, reverse=True)
