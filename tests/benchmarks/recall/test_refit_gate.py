"""Fitting the coefficients of the gate."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.recall import refit_gate
from memory.recall.policy import FEATURE_NAMES, Gate, GateFeatures

pytestmark = pytest.mark.long  # scikit-learn takes seconds to import

ZERO_FEATURES = dict.fromkeys(FEATURE_NAMES, 0.0)


def observed(true: Gate, count: int) -> tuple[np.ndarray, list[bool]]:
    """Return cosine and gap of memories that are relevant with the probability of a gate."""
    random = np.random.default_rng(5)
    features = random.random((count, 2))
    relevant = [
        bool(
            random.random()
            < true.value(GateFeatures(**{**ZERO_FEATURES, "cosine": cosine, "gap": gap}))
        )
        for cosine, gap in features.tolist()
    ]
    return features, relevant


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_fitting_finds_the_gate_that_made_the_labels() -> None:
    features, relevant = observed(Gate(bias=-2.0, cosine=5.0, gap=-2.0), 20_000)
    bias, slopes = refit_gate.fit(features, relevant, np.ones(20_000))
    assert (bias, *slopes) == pytest.approx((-2.0, 5.0, -2.0), abs=0.2)


def test_a_weight_counts_as_so_many_memories() -> None:
    features, relevant = observed(Gate(bias=-2.0, cosine=5.0), 200)
    bias, slopes = refit_gate.fit(
        np.vstack([features, features[:50]]), relevant + relevant[:50], np.ones(250)
    )
    weighed_bias, weighed = refit_gate.fit(features, relevant, [2.0] * 50 + [1.0] * 150)
    # Features are standardised before the fit, so the penalty has a small effect.
    assert (weighed_bias, *weighed) == pytest.approx((bias, *slopes), abs=0.02)


def test_features_that_part_the_data_perfectly_have_finite_coefficients() -> None:
    labels = [0, 1] * 50
    _, (slope,) = refit_gate.fit([[float(label)] for label in labels], labels, np.ones(100))
    assert 0 < slope < 100


def test_fitting_needs_both_labels() -> None:
    with pytest.raises(ValueError, match="at least 2 classes"):
        refit_gate.fit([[0.1], [0.2]], [True, True], [1, 1])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"features": {"cosine": 1.0}, "relevant": True}, r"no labelled memory: KeyError\('gap'\)"),
        ({"features": {"cosine": 1.0, "gap": 0.0}}, r"no labelled memory: KeyError\('relevant'\)"),
        (
            {"features": {"cosine": 1, "gap": 0}, "relevant": True, "weight": 0},
            "the weight 0.0, which is not positive",
        ),
        ("nonsense", "no labelled memory: TypeError"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: object, words: str) -> None:
    good = {"features": {"cosine": 1.0, "gap": 0.0}, "relevant": True}
    with pytest.raises(ValueError, match=f"line 2 .*{words}"):
        refit_gate.read_labelled(write(tmp_path / "f", good, line), ("cosine", "gap"))


def test_script_prints_the_coefficients_of_relevance_gate(tmp_path: Path) -> None:
    features, relevant = observed(Gate(bias=-2.0, cosine=5.0, gap=-2.0), 2000)
    path = write(
        tmp_path / "features.jsonl",
        *(
            {"features": {"cosine": cosine, "gap": gap}, "relevant": label}
            for (cosine, gap), label in zip(features.tolist(), relevant, strict=True)
        ),
    )
    command = [sys.executable, "-m", refit_gate.__name__, "--mode", "vector", path]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == "Gate("
    assert lines[-1] == ")"
    assert [line.strip().split("=")[0] for line in lines[1:-1]] == ["bias", "cosine", "gap"]
