"""The text of API keys."""

from uuid import UUID

import pytest

from konstruct.api.auth.keys import bearer_key, new_key, parse_key

TENANT = UUID("0190a7e2-6c4b-7d5e-8f1a-2b3c4d5e6f70")


def test_a_key_names_its_tenant_and_can_be_read_back() -> None:
    key = new_key(TENANT)
    assert str(key).startswith("ks_0190a7e26c4b7d5e8f1a2b3c4d5e6f70_")
    assert parse_key(str(key)) == key


def test_only_its_own_secret_matches() -> None:
    key, other = new_key(TENANT), new_key(TENANT)
    assert (key.matches(key.digest), other.matches(key.digest)) == (True, False)


def test_repr_and_stored_row_hide_the_secret() -> None:
    key = new_key(TENANT)
    assert key.secret not in repr(key) + key.digest


@pytest.mark.parametrize(
    "text", ["", "ks_", "ks_x_y_z", f"ks_{TENANT.hex}_abc_def", f"KS_{TENANT.hex}"]
)
def test_other_text_is_no_key(text: str) -> None:
    assert parse_key(text) is None


def test_key_with_surrounding_characters_is_refused() -> None:
    key = str(new_key(TENANT))
    assert [parse_key(text) for text in (key + "\n", " " + key, key + "0", key.upper())] == [
        None
    ] * 4


@pytest.mark.parametrize(
    ("header", "credentials"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", ""),
        ("Token abc", "abc"),
        ("Basic abc", None),
        ("", None),
        ("abc", None),
    ],
)
def test_credentials_follow_bearer_or_token(header: str, credentials: str | None) -> None:
    assert bearer_key(header) == credentials
