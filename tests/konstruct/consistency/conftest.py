"""Fixtures of consistency: the tenant of the tests of privacy, with conversations of two people."""

from tests.konstruct.privacy.conftest import agent, at_once, send_message

__all__ = ["agent", "at_once", "send_message"]
