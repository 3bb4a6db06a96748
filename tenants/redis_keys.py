"""The keys of the cache. No key can be built without a tenant, and no two keys are equal.

Each key is ``{tenant_id}:`` and a kind with a fixed number of parts. A part contains no colon, so
that different arguments or functions never give the same key. A colon in an id that a person, a
channel or a program chooses is escaped: ``C1:7`` becomes ``C1%3A7``. In other parts it raises.
"""

import unicodedata
from functools import lru_cache
from urllib.parse import unquote
from uuid import UUID

from tenants.context import required_tenant_id
from tenants.exceptions import InvalidKeyPart

KeyPart = UUID | str | int


def key_of_current_tenant(key: str, key_prefix: str, version: int) -> str:
    """Return the key of a value of `django.core.cache`: of the current tenant.

    Raises:
        NotInTenant: the code runs outside of tenants.
    """
    return _key(required_tenant_id(), "cache", version, _id(key_prefix + key))


@lru_cache(maxsize=4096)  # called for every request
def rate_limit_key(tenant_id: KeyPart, channel: KeyPart) -> str:
    """Return the key of the token bucket of a tenant's channel."""
    return _key(tenant_id, "ratelimit", channel)


def idempotency_key(tenant_id: KeyPart, message_id: KeyPart) -> str:
    """Return the key of the id of a delivered message, which detects a second delivery."""
    return _key(tenant_id, "dedup", _id(message_id))


def session_key(tenant_id: KeyPart, thread_id: KeyPart) -> str:
    """Return the key of the window of a thread that several people share."""
    return _key(tenant_id, "session", _id(thread_id))


def engaged_thread_key(tenant_id: KeyPart, thread_id: KeyPart) -> str:
    """Return the key of a thread that the agent answers without another mention."""
    return _key(tenant_id, "engaged", _id(thread_id))


def memory_short_key(tenant_id: KeyPart, agent_id: KeyPart, user_id: KeyPart) -> str:
    """Return the key of the window of an agent's conversation with a user."""
    return _key(tenant_id, "memory", "short", agent_id, _id(user_id))


def escalation_status_key(tenant_id: KeyPart, thread_id: KeyPart) -> str:
    """Return the key of the escalation of a thread to a person."""
    return _key(tenant_id, "escalation", _id(thread_id))


def pending_tool_confirm_key(tenant_id: KeyPart, thread_id: KeyPart) -> str:
    """Return the key of a tool call that waits for confirmation in a thread."""
    return _key(tenant_id, "tool_confirm", _id(thread_id))


def partial_reply_key(tenant_id: KeyPart, message_id: KeyPart) -> str:
    """Return the key of a partial reply, which is also the channel of its announcements."""
    return _key(tenant_id, "partial_reply", _id(message_id))


def any_partial_reply_pattern() -> str:
    """Return the pattern for PSUBSCRIBE that matches partial replies of all tenants.

    For the process that serves all tenants: announcements have ids only, and no content.
    """
    return "*:partial_reply:*"


def login_seen_key(tenant_id: KeyPart, user_digest: KeyPart, address: KeyPart) -> str:
    """Return the key of a login of a person to the admin from an address."""
    return _key(tenant_id, "login_seen", user_digest, address)


def all_keys_pattern(tenant_id: UUID) -> str:
    """Return the pattern for SCAN that matches every key of a tenant and of no other tenant."""
    return f"{tenant_id}:*"


def thread_windows_pattern(tenant_id: UUID) -> str:
    """Pattern for SCAN that matches the windows of a tenant's threads only."""
    return f"{tenant_id}:session:*"


def user_windows_pattern(tenant_id: UUID) -> str:
    """Pattern for SCAN that matches the windows of a tenant's agents and users."""
    return f"{tenant_id}:memory:short:*"


def agent_and_user(key: str) -> tuple[str, str]:
    """Read the agent and the user of a key that `memory_short_key` made."""
    *_, agent_id, user_id = key.split(":")
    return agent_id, unquote(user_id, "latin-1")


def tenant_and_partial_reply(channel: str) -> tuple[UUID, UUID]:
    """Read a key that `partial_reply_key` made of ids; raises ValueError for any other."""
    tenant_id, kind, message_id = channel.split(":")
    if kind != "partial_reply":
        raise ValueError(f"{channel!r} is not the key of a partial reply")
    return UUID(tenant_id), UUID(message_id)


def escape_part(text: str) -> str:
    """Escape a text so that it can be a part of a key. Different texts stay different.

    ``a:b%`` becomes ``a%3Ab%25``. An empty text stays empty, and is refused as a part. The
    functions above escape ids themselves; call this one to search for an id in a key.
    """
    return "".join(
        f"%{ord(character):02X}" if character in ":%" or _unprintable(character) else character
        for character in text
    )


def _key(*parts: KeyPart) -> str:
    return ":".join(_checked(part) for part in parts)


def _id(given: KeyPart) -> KeyPart:
    """Return an id as a part; an empty id raises."""
    return escape_part(given) if isinstance(given, str) else given


def _checked(part: KeyPart) -> str:
    if isinstance(part, bool) or not isinstance(part, UUID | str | int):
        raise InvalidKeyPart(f"{part!r} cannot be part of a cache key: give a text, UUID or int")
    text = str(part)
    if not text:
        raise InvalidKeyPart("a part of a cache key is empty")
    if any(character == ":" or _unprintable(character) for character in text):
        raise InvalidKeyPart(
            f"{text!r} cannot be part of a cache key: it holds a colon or a control character"
        )
    return text


def _unprintable(character: str) -> bool:
    """Return whether it is a control character or a lone surrogate, which cannot be encoded."""
    return unicodedata.category(character) in ("Cc", "Cs")
