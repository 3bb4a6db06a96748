"""Readers of the environment: each takes a variable's name, and exits on an invalid value."""

import os
import re
import sys
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from urllib.parse import urlsplit

_SERVER_NAME = re.compile(r"[a-z][a-z0-9]{0,31}")
_CLASS_NAME = re.compile(r"\w+(?:\.\w+)+")
_FERNET_KEY = re.compile(r"[A-Za-z0-9_-]{43}=")


def flag(name: str, default: bool) -> bool:
    """Read a yes/no environment variable."""
    value = os.environ.get(name, "").strip().lower()
    if value in ("", "1", "true", "yes", "on", "0", "false", "no", "off"):
        return value in ("1", "true", "yes", "on") if value else default
    sys.exit(f"konstruct: {name}={value!r} is neither true nor false")


def number(name: str, default: int, *, minimum: int = 1) -> int:
    """Read a whole number from the environment, by default a positive one."""
    value = os.environ.get(name, "").strip() or str(default)
    if not value.isascii() or not value.isdigit() or int(value) < minimum:
        kind = "a positive whole number" if minimum else "a whole number, 0 or more"
        sys.exit(f"konstruct: {name}={value!r} is not {kind}")
    return int(value)


def price(name: str) -> Decimal:
    """Read an amount of money from the environment, 0 or more; by default 0."""
    value = os.environ.get(name, "").strip() or "0"
    try:
        amount = Decimal(value)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount < 1_000_000:
        sys.exit(f"konstruct: {name}={value!r} is not a price such as 2.50")
    return amount


def url(name: str) -> str:
    """Read a URL, or nothing, from the environment."""
    return _require_url(name, os.environ.get(name, "").strip())


def _require_url(name: str, url: str) -> str:
    """Return the URL if it is valid. The error shows neither the URL nor its password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        # A slash or a number sign in a password ends its part of the URL.
        valid = not url or bool(parts.scheme and "@" not in parts.path + parts.fragment)
    except ValueError:
        valid = False
    if not valid:
        sys.exit(
            f"konstruct: {name} is not a URL. Percent-encode special characters in its user and "
            "password."
        )
    return url


def address(name: str) -> tuple[str, int] | None:
    """Read HOST:PORT, or nothing, from the environment."""
    value = text(name)
    host, _, port = value.rpartition(":")
    if value and not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        sys.exit(f"konstruct: {name}={value!r} is not like 127.0.0.1:9464")
    return (host.strip("[]"), int(port)) if value else None


def text(name: str, default: str = "") -> str:
    """Read text from the environment; an empty one counts as unset, as compose files pass it."""
    return os.environ.get(name, "").strip() or default


def choice(name: str, default: str, choices: Sequence[str]) -> str:
    """Read one of some words from the environment."""
    value = text(name, default)
    if value not in choices:
        sys.exit(f"konstruct: {name}={value!r} is not one of {', '.join(choices)}")
    return value


def names(name: str, default: str) -> list[str]:
    """Read a comma-separated list from the environment."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def named_urls(name: str) -> dict[str, str]:
    """Read a comma-separated list of NAME=URL from the environment."""
    urls: dict[str, str] = {}
    for pair in names(name, ""):
        server, is_pair, url = pair.partition("=")
        is_known = server in urls or server == "default"
        if not is_pair or not _SERVER_NAME.fullmatch(server) or is_known:
            sys.exit(
                f"konstruct: {name} is not like eu1=postgresql://…,eu2=postgresql://…, each server"
                " once, by lower-case letters and digits; a comma within a URL is %2C."
            )
        urls[server] = _require_url(name, url)
    return urls


def refuse(weakness: str) -> None:
    """Exit with this message; "" means that there is nothing to refuse."""
    if weakness:
        sys.exit(f"konstruct: {weakness}.")


def class_names(name: str) -> list[str]:
    """Read comma-separated names of classes from the environment, each with its module."""
    class_paths = names(name, "")
    for class_name in class_paths:
        if not _CLASS_NAME.fullmatch(class_name):
            sys.exit(f"konstruct: {name}: {class_name!r} is not like package.module.Class")
    return class_paths


def fernet_keys(name: str) -> list[str]:
    """Read comma-separated Fernet keys from the environment: each 32 bytes in URL-safe base64."""
    keys = names(name, "")
    for number, key in enumerate(keys, start=1):
        if not _FERNET_KEY.fullmatch(key):
            sys.exit(f"konstruct: {name}: the key in place {number} is not a Fernet key")
    return keys
