"""Fit the coefficients of the gate: a logistic regression over labelled memories.

    python -m benchmarks.recall.refit_gate [--mode hybrid] [--kind history] FILE

The script prints the values for memory/embedding/fitted_models.toml. FILE has a JSON object per
line: {"features": {…}, "relevant": true}, and an optional "weight". The features are the channels
of a recalled memory. gate_features.py writes the file to which the gate was fitted.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.tools.throwaway import set_up

# Inverse strength of the L2 penalty on standardised features. Without it, features that separate
# the data perfectly would have no finite coefficient.
INVERSE_PENALTY = 1.0


def main() -> None:
    """Print the gate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("hybrid", "vector"), default="hybrid")
    parser.add_argument("--kind", default="", help="only memories of such a kind: history")
    parser.add_argument("file", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    set_up()
    from memory.recall.policy import FEATURE_NAMES

    names = FEATURE_NAMES if arguments.mode == "hybrid" else ("cosine", "gap")
    try:
        bias, slopes = fit(*read_labelled(arguments.file, names, arguments.kind))
    except (OSError, ValueError) as error:
        sys.exit(f"{arguments.file}: {error}")
    for name, value in zip(("bias", *names), (bias, *slopes), strict=True):
        print(f"{name} = {value:.3f}")


def read_labelled(
    path: Path, names: Sequence[str], kind: str = ""
) -> tuple[list[list[float]], list[bool], list[float]]:
    """Return the named features of each memory of a kind, its relevance, and its weight.

    Raises:
        ValueError: a line is no labelled memory, lacks a feature, or has a weight of 0 or less.
    """
    features, relevant, weights = [], [], []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            record = json.loads(line)
            if not record.get("kind", "").startswith(kind):
                continue
            features.append([float(record["features"][name]) for name in names])
            relevant.append(bool(record["relevant"]))
            weights.append(float(record.get("weight", 1)))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"line {number} is no labelled memory: {error!r}") from error
        if not weights[-1] > 0:
            raise ValueError(f"line {number} has the weight {weights[-1]}, which is not positive")
    return features, relevant, weights


def fit(
    features: ArrayLike, relevant: Sequence[bool], weights: ArrayLike
) -> tuple[float, np.ndarray]:
    """Return the bias and the coefficients that make the labels most probable.

    Args:
        features: of each memory, [memories, features].
        relevant: the label of each memory.
        weights: number of times that a memory counts.

    Raises:
        ValueError: all memories have the same label.
    """
    scaler = StandardScaler()
    regression = LogisticRegression(C=INVERSE_PENALTY, solver="newton-cholesky", tol=1e-9)
    regression.fit(scaler.fit_transform(features), relevant, sample_weight=weights)
    slopes = regression.coef_[0] / scaler.scale_
    return float(regression.intercept_[0] - slopes @ scaler.mean_), slopes


if __name__ == "__main__":
    main()
