"""Untrusted text is parsed in linear time. tests/attacks/growing.py describes the check."""

import subprocess
import sys

import pytest

from tests.attacks.growing import run_child
from tests.attacks.on_patterns import calls_in, sources

# No divisor of the numbers of texts of a kind, so that each kind has its turn.
EVERY = pytest.mark.parametrize(
    "every", [13, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"]
)


def test_every_pattern_is_compiled_at_module_level() -> None:
    hidden = [
        f"{module} {called}"
        for module, source in sources()
        for call, called, in_function in calls_in(source)
        if in_function or called not in ("re.compile", "re.escape", "RegexValidator")
    ]
    assert set(hidden) <= {
        "konstruct.privacy.erasure.person_matcher re.compile",  # escaped ids between boundaries
        "konstruct.privacy.erasure.person_matcher re.escape",  # a pattern for Postgres
        "konstruct.urls.interfaces re_path",  # of a path, anchored, one repetition each
        "konstruct.settings.weak_values re.sub",  # of an operator's own settings
    }


@pytest.mark.slow
@EVERY
def test_no_pattern_takes_quadratic_time(every: int) -> None:
    run_child("tests.attacks.on_patterns", every)


@pytest.mark.slow
@EVERY
def test_no_parser_takes_quadratic_time(every: int) -> None:
    run_child("tests.attacks.on_texts", every)


@pytest.mark.slow
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
