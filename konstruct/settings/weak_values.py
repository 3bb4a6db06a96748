"""Values that a production refuses: weak secret keys, wildcard hosts, one role for everything.

The functions take values of settings, and return an error without the secret, or "".
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote, urlsplit

# The limits of Django's `check --deploy` (security.W009).
MIN_SECRET_KEY_CHARACTERS: Final = 50
MIN_SECRET_KEY_UNIQUE_CHARACTERS: Final = 5
_HOST = re.compile(r"\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]", re.IGNORECASE)
# No public names can be registered below these.
_OWN_DOMAINS: Final = frozenset({"localhost", "local", "internal", "lan", "home", "test"})


def weak_secret_key(key: str, name: str = "SECRET_KEY") -> str:
    """Return why a key that signs sessions is weak, by the rules of `check --deploy`."""
    if (
        len(key) < MIN_SECRET_KEY_CHARACTERS
        or len(set(key)) < MIN_SECRET_KEY_UNIQUE_CHARACTERS
        or key.startswith("django-insecure-")
    ):
        return (
            f"{name} is not a random text of at least {MIN_SECRET_KEY_CHARACTERS} characters: make"
            " one with `openssl rand -hex 32`"
        )
    return ""


def weak_hosts(name: str, hosts: Iterable[str], *, subdomains: bool) -> str:
    """Return an error for the first value that is no host name or matches every host.

    Args:
        hosts: the values of the setting.
        subdomains: whether the setting accepts a leading dot, for all names below a host.
    """
    for host in hosts:
        if "*" in host or host in (".", ""):
            return f"{name} holds {host!r}, which is every host: name the hosts that are served"
        if not _HOST.fullmatch(host):
            return f"{name} has {host!r}, which is not a host name: remove scheme, port and path"
        if host.startswith("."):
            labels = host.strip(".").split(".")
            if not subdomains:
                return f"{name} holds {host!r}: each of these hosts must be named, without a dot"
            if len(labels) == 1 and labels[0].lower() not in _OWN_DOMAINS:
                return f"{name} holds {host!r}, which is every host of a top-level domain"
    return ""


def weak_origins(name: str, origins: Iterable[str]) -> str:
    """Return an error for the first value that is no origin or matches every origin."""
    for origin in origins:
        scheme, separator, host = origin.partition("://")
        if not separator or scheme not in ("http", "https"):
            return f"{name} has {origin!r}, which is not an origin such as https://app.example.com"
        bare = re.sub(r":\d+$", "", host)
        wrong = weak_hosts(name, [re.sub(r"^\*(?=\.)", "", bare)], subdomains=True)
        if wrong:
            return wrong.replace(repr(re.sub(r"^\*(?=\.)", "", bare)), repr(origin))
    return ""


def same_role(
    app_url: str, owner_url: str, *, names: str = "DATABASE_URL and DATABASE_OWNER_URL"
) -> str:
    """Return an error if the application could act as the owner: with the same role or password."""
    app, owner = urlsplit(app_url), urlsplit(owner_url)
    if not (app_url and owner_url):
        return ""
    if app.username and app.username == owner.username:
        return (
            f"{names} have the same role, {unquote(app.username)!r}:"
            " web and workers must be konstruct_app, which owns nothing"
        )
    if app.password and app.password == owner.password:
        return (
            f"{names} have the same password, so that the application"
            " could be the owner: give each role its own"
        )
    return ""
