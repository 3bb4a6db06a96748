"""Fixtures of consistency, shared with the tests of privacy."""

from tests.konstruct.privacy.conftest import agent, at_once, send_message

__all__ = ["agent", "at_once", "send_message"]
