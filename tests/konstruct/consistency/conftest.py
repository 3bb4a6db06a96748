"""Fixtures of consistency, shared with the tests of privacy."""

from tests.konstruct.privacy.conftest import agent, no_second_check, send_message

__all__ = ["agent", "no_second_check", "send_message"]
