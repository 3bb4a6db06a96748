"""The gate and its fitting."""

import json
import math
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from memory.exceptions import InvalidArgument
from memory.gate import GATES, SIGN_NAMES, Gate, Signs
from memory.gate_fitting import fit_gate

NOTHING = dict.fromkeys(SIGN_NAMES, 0.0)


def test_probability_is_the_logistic_function_of_the_weighed_signs() -> None:
    gate = Gate(bias=-1.0, cosine=2.0, gap=-3.0)
    signs = Signs(**{**NOTHING, "cosine": 0.5, "gap": 0.1})
    assert gate.probability(signs) == pytest.approx(1 / (1 + math.exp(0.3)))


def test_probability_never_overflows() -> None:
    signs = Signs(**{**NOTHING, "cosine": 1e6})
    assert Gate(bias=0, cosine=1).probability(signs) == pytest.approx(1)
    assert Gate(bias=0, cosine=-1).probability(signs) == pytest.approx(0)


def test_every_mode_has_a_gate_that_trusts_likeness() -> None:
    for gate in GATES.values():
        near, far = (
            gate.probability(Signs(**{**NOTHING, "cosine": cosine})) for cosine in (0.9, 0.1)
        )
        assert near > far


def observed(true: Gate, count: int = 20_000) -> list[tuple[dict[str, float], bool]]:
    """Memories that are relevant with the probability that a gate gives them."""
    random = np.random.default_rng(5)
    rows = []
    for _ in range(count):
        signs = {**NOTHING, "cosine": float(random.random()), "gap": float(random.random())}
        rows.append((signs, bool(random.random() < true.probability(Signs(**signs)))))
    return rows


def test_fitting_finds_the_gate_that_made_the_labels() -> None:
    gate = fit_gate(observed(Gate(bias=-2.0, cosine=5.0, gap=-2.0)), ("cosine", "gap"))
    assert (gate.bias, gate.cosine, gate.gap) == pytest.approx((-2.0, 5.0, -2.0), abs=0.2)
    assert gate.lexical == gate.scarcity == 0


def test_a_weight_counts_as_so_many_memories() -> None:
    rows = observed(Gate(bias=-2.0, cosine=5.0), 200)
    twice = fit_gate([*rows, *rows[:50]], ("cosine", "gap"))
    weighed = fit_gate(rows, ("cosine", "gap"), weights=[2.0] * 50 + [1.0] * 150)
    # The signs are standardised before they are weighed, so that the pull to zero differs a little.
    assert (weighed.bias, weighed.cosine) == pytest.approx((twice.bias, twice.cosine), abs=0.02)
    with pytest.raises(InvalidArgument, match="one positive number for each memory"):
        fit_gate(rows, ("cosine",), weights=[1.0])


def test_signs_that_part_the_data_perfectly_have_finite_coefficients() -> None:
    rows = [({**NOTHING, "cosine": float(label)}, bool(label)) for label in [0, 1] * 50]
    assert 0 < fit_gate(rows, ("cosine",)).cosine < 100


def test_fitting_needs_both_labels_and_every_sign() -> None:
    with pytest.raises(InvalidArgument, match="2 of 2 memories are relevant"):
        fit_gate([(NOTHING, True)] * 2)
    with pytest.raises(InvalidArgument, match="lacks the sign 'gap'"):
        fit_gate([({"cosine": 1.0}, True)], ("cosine", "gap"))


def test_the_command_prints_what_belongs_into_gate_py(tmp_path: Path) -> None:
    path = tmp_path / "signs.jsonl"
    rows = observed(Gate(bias=-2.0, cosine=5.0, gap=-2.0), 2000)
    path.write_text("".join(json.dumps({"signs": s, "relevant": r}) + "\n" for s, r in rows))
    out = StringIO()
    call_command("refit_gate", str(path), "--mode", "vector", stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Gate("
    assert lines[-1] == ")"
    assert [line.strip().split("=")[0] for line in lines[1:-1]] == ["bias", "cosine", "gap"]


def test_the_command_says_which_line_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "signs.jsonl"
    path.write_text('{"signs": {}, "relevant": true}\nnonsense\n')
    with pytest.raises(CommandError, match=r"signs\.jsonl, line 2: not"):
        call_command("refit_gate", str(path))
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("refit_gate", str(tmp_path / "none"))
