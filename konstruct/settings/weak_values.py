"""What a production must not start with: secrets that can be guessed, hosts that are everybody's.

Pure: the settings pass what they have read, and end the process with the first line that comes
back. No line shows a secret.
"""

import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

# As many as Django's own `check --deploy` wants.
SECRET_KEY_LENGTH: Final = 50
# Random characters of that length took at least 48 bytes compressed, in 4,000 trials. What was made
# long by repeating words, an alphabet or a row of the keyboard takes less.
COMPRESSED_BYTES: Final = 40
PASSWORD_LENGTH: Final = 8

_PLACEHOLDER = re.compile(
    r"change.?(me|this|it)|insecure|example|placeholder|replace.?(me|this)|your.?(secret|password|key)"
    r"|secret.?key|password|passwort|default|to.?be.?(set|changed)",
    re.IGNORECASE,
)
# Passwords that every list of passwords begins with, and the names of what they are for.
_COMMON: Final = frozenset(
    {
        "administrator", "postgres", "postgresql", "konstruct", "konstruct_app", "konstruct_owner",
        "qwertyui", "qwertyuiop", "letmein1", "welcome1", "iloveyou", "12345678", "123456789",
        "1234567890", "0123456789", "87654321", "testtest", "abcdefgh",
    }
)  # fmt: skip
_HOST = re.compile(r"\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]", re.IGNORECASE)
# Below these nobody registers names for the public.
_OWN_DOMAINS: Final = frozenset({"localhost", "local", "internal", "lan", "home", "test"})


def weak_secret_key(key: str, name: str = "SECRET_KEY") -> str:
    """Say what is wrong with a key that signs sessions; empty if nothing is."""
    remedy = "make one with `openssl rand -hex 32`"
    if len(key) < SECRET_KEY_LENGTH:
        return (
            f"{name} has {len(key)} characters, fewer than {SECRET_KEY_LENGTH}, and could be"
            f" guessed: {remedy}"
        )
    if _PLACEHOLDER.search(key) or key.startswith("django-insecure-"):
        return f"{name} is a placeholder: {remedy}"
    if len(zlib.compress(key.encode(), 9)) < COMPRESSED_BYTES or len(set(key)) < 10:
        return f"{name} is not random, but repeats itself, and could be guessed: {remedy}"
    return ""


def weak_hosts(name: str, hosts: Iterable[str], *, subdomains: bool) -> str:
    """Say which of the hosts would be served to everybody; empty if none.

    ``subdomains``: a leading dot, for all names below, means something in this setting.
    """
    for host in hosts:
        if "*" in host or host in (".", ""):
            return f"{name} holds {host!r}, which is every host: name the hosts that are served"
        if not _HOST.fullmatch(host):
            return f"{name} holds {host!r}, which is no host name: without scheme, port and path"
        if host.startswith("."):
            labels = host.strip(".").split(".")
            if not subdomains:
                return f"{name} holds {host!r}: each of these hosts must be named, without a dot"
            if len(labels) == 1 and labels[0].lower() not in _OWN_DOMAINS:
                return f"{name} holds {host!r}, which is every host of a top-level domain"
    return ""


def weak_origins(name: str, origins: Iterable[str]) -> str:
    """Say which of the origins is everybody's; empty if none."""
    for origin in origins:
        scheme, separator, host = origin.partition("://")
        if not separator or scheme not in ("http", "https"):
            return f"{name} holds {origin!r}, which is no origin such as https://app.example.com"
        bare = re.sub(r":\d+$", "", host)
        wrong = weak_hosts(name, [re.sub(r"^\*(?=\.)", "", bare)], subdomains=True)
        if wrong:
            return wrong.replace(repr(re.sub(r"^\*(?=\.)", "", bare)), repr(origin))
    return ""


def weak_passwords(urls: Mapping[str, str]) -> str:
    """Say which URL's password could be guessed; empty if none. A URL may do without one."""
    for name, url in urls.items():
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if password and (
            len(password) < PASSWORD_LENGTH
            or len(set(password)) < 4
            or password.lower() in _COMMON | {user.lower()}
            or _PLACEHOLDER.search(password)
        ):
            return (
                f"the password in {name} could be guessed: make one with `openssl rand -hex 32`,"
                " and set it in the server too"
            )
    return ""


def same_role(
    app_url: str, owner_url: str, *, names: str = "DATABASE_URL and DATABASE_OWNER_URL"
) -> str:
    """Say if the application could act as the owner; empty if it could not."""
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


def weak_token_keys(name: str, keys: Iterable[str]) -> str:
    """Say which Fernet key is not random; empty if none."""
    for number, key in enumerate(keys, start=1):
        if len(zlib.compress(key.encode(), 9)) < COMPRESSED_BYTES:
            return (
                f"{name}: the key in place {number} is not random:"
                " docs/slack.md says how to make one"
            )
    return ""
