"""Untrusted text is parsed in linear time. tests/attacks/growing.py describes the check."""

import pytest

from tests.attacks.growing import run_child


@pytest.mark.long
def test_no_parser_takes_quadratic_time() -> None:
    run_child("tests.attacks.on_texts")
