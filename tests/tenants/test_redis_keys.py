"""Cache keys: the exact formats, and no collisions."""

import inspect
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from django.core.cache import cache
from hypothesis import given, strategies as st

from tenants import redis_keys
from tenants.context import public_scope, tenant_scope
from tenants.exceptions import InvalidKeyPart, NotInTenant

TENANT = UUID("11111111-2222-3333-4444-555555555555")
CONSTRUCTORS: dict[str, Callable[..., str]] = {
    name: function
    for name, function in vars(redis_keys).items()
    if name.endswith("_key") and not name.startswith("_")
}
ALL = list(CONSTRUCTORS.values())

# Hostile and unusual ids of people and channels.
texts = st.text(alphabet=st.characters(), min_size=1, max_size=8) | st.sampled_from(
    ["memory", "short", "ratelimit", "dedup", "*", "?", "[a]", "C1", "1700000000.000100", "ü"]
)


@pytest.mark.parametrize(
    ("name", "arguments", "key"),
    [
        ("rate_limit_key", ("rest",), "ratelimit:rest"),
        ("idempotency_key", ("m1",), "dedup:m1"),
        ("session_key", ("th1",), "session:th1"),
        ("engaged_thread_key", ("th1",), "engaged:th1"),
        ("memory_short_key", ("a1", "u1"), "memory:short:a1:u1"),
        ("escalation_status_key", ("th1",), "escalation:th1"),
        ("pending_tool_confirm_key", ("th1",), "tool_confirm:th1"),
        ("partial_reply_key", ("m1",), "partial_reply:m1"),
        ("login_seen_key", ("d1", "a1"), "login_seen:d1:a1"),
    ],
)
def test_the_formats(name: str, arguments: tuple[str, ...], key: str) -> None:
    assert CONSTRUCTORS[name](TENANT, *arguments) == f"{TENANT}:{key}"
    assert CONSTRUCTORS[name](str(TENANT), *arguments) == f"{TENANT}:{key}"


def test_the_formats_above_are_all() -> None:
    assert len(CONSTRUCTORS) == 9


@pytest.mark.parametrize("constructor", ALL)
def test_key_begins_with_the_tenant_and_requires_it(constructor: Callable[..., str]) -> None:
    parameters = list(inspect.signature(constructor).parameters.values())
    assert parameters[0].name == "tenant_id"
    assert all(parameter.default is inspect.Parameter.empty for parameter in parameters)


# Values of people, channels and programs: any text.
IDS = {"message_id", "thread_id", "user_id"}
COLLIDING = ["a:b", ":", "a\x00", "a\nb", "\x7f", "\ud800"]


@pytest.mark.parametrize("constructor", ALL)
def test_no_part_may_be_empty_or_able_to_collide_and_an_id_is_escaped(
    constructor: Callable[..., str],
) -> None:
    names = list(inspect.signature(constructor).parameters)
    plain = constructor(*["x"] * len(names))
    for position, name in enumerate(names):
        for text in ("", *COLLIDING, None, b"a", 1.5, True):
            parts: list[object] = ["x"] * len(names)
            parts[position] = text
            if name in IDS and text in COLLIDING:
                key = constructor(*parts)
                assert (key.count(":"), key.isprintable()) == (plain.count(":"), True)
                continue
            with pytest.raises(InvalidKeyPart):
                constructor(*parts)


def test_the_error_names_the_value() -> None:
    with pytest.raises(InvalidKeyPart, match="'a:1' cannot be part of a cache key"):
        redis_keys.memory_short_key(TENANT, "a:1", "U:1")


def calls() -> st.SearchStrategy[tuple[str, tuple[str, ...]]]:
    return st.sampled_from(sorted(CONSTRUCTORS)).flatmap(
        lambda name: st.tuples(
            st.just(name),
            st.tuples(*[texts] * len(inspect.signature(CONSTRUCTORS[name]).parameters)),
        )
    )


def key_of(call: tuple[str, tuple[str, ...]]) -> str | None:
    name, arguments = call
    try:
        return CONSTRUCTORS[name](*arguments)
    except InvalidKeyPart:
        return None


@given(st.lists(calls(), min_size=2, max_size=60, unique=True))
def test_no_two_of_many_calls_give_the_same_key(many: list[tuple[str, tuple[str, ...]]]) -> None:
    keys = [key for key in map(key_of, many) if key is not None]
    assert len(set(keys)) == len(keys)


@pytest.mark.slow
def test_the_pattern_of_a_tenant_matches_its_keys_alone() -> None:
    assert redis_keys.all_keys_pattern(TENANT) == f"{TENANT}:*"


def test_values_of_djangos_cache_are_the_current_tenants() -> None:
    tenants = (uuid4(), uuid4())
    for tenant in tenants:
        with tenant_scope(tenant):
            assert cache.get("a:b") is None
            cache.set("a:b", str(tenant))
            assert cache.make_key("a:b") == f"{tenant}:cache:1:a%3Ab"
    for tenant in tenants:
        with tenant_scope(tenant):
            assert cache.get("a:b") == str(tenant)
            cache.delete("a:b")
    with public_scope(), pytest.raises(NotInTenant, match="use tenant_scope"):
        cache.get("a:b")
