"""Untrusted text is parsed in linear time. tests/attacks/growing.py describes the check."""

import subprocess
import sys

import pytest

from tests.attacks.growing import run_child

# No divisor of the numbers of texts of a kind, so that each kind has its turn.
EVERY = pytest.mark.parametrize(
    "every", [13, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"]
)


@pytest.mark.long
@EVERY
def test_no_parser_takes_quadratic_time(every: int) -> None:
    run_child("tests.attacks.on_texts", every)


@pytest.mark.long
def test_attacks_find_quadratic_patterns() -> None:
    program = (
        "import re; from tests.attacks.growing import attack_all;"
        r"heading = re.compile(r'# +(.*?) *#*\Z');"
        "attack_all([('a heading', lambda n: heading.match('# a' + ' ' * n + 'x'))], limit=1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "the work of a heading grows faster than its text: 1 s of CPU time, 3 times\n"
    )
