"""Fitting the gate: logistic regression over labelled signs, by Newton's method. Pure."""

from collections.abc import Iterable, Mapping

import numpy as np

from memory.exceptions import InvalidArgument
from memory.gate import SIGN_NAMES, Gate

# A weak pull to zero, on standardised signs: without it, signs that part the data perfectly would
# have no finite coefficient.
RIDGE = 1.0
# How much sooner the best is the answer where little was said is not learnt, since labelled data
# come from scopes of one size. With .35, a fifth of the questions with the names swapped is let
# through in scopes of 5, 20, 80 and 500 messages alike.
SCARCITY = 0.35


def fit_gate(
    labelled: Iterable[tuple[Mapping[str, float], bool]], signs: Iterable[str] = SIGN_NAMES
) -> Gate:
    """The gate that makes what was observed most probable.

    Args:
        labelled: the signs of a memory (other keys are ignored), and whether it was relevant.
        signs: the ones that the gate may look at.

    Raises:
        InvalidArgument: a sign is missing, or all memories have the same label.
    """
    rows = list(labelled)
    names = [name for name in signs if name != "scarcity"]
    scarce = "scarcity" in set(signs)
    try:
        matrix = np.array([[float(row[name]) for name in names] for row, _ in rows])
        offset = np.array([SCARCITY * float(row["scarcity"]) if scarce else 0.0 for row, _ in rows])
    except KeyError as error:
        raise InvalidArgument(f"a labelled memory lacks the sign {error}") from None
    labels = np.array([relevant for _, relevant in rows], dtype=float)
    if not 0 < labels.sum() < len(labels):
        raise InvalidArgument(
            f"{int(labels.sum())} of {len(labels)} memories are relevant: both kinds are needed"
        )
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scale[scale == 0] = 1.0
    design = np.hstack([np.ones((len(rows), 1)), (matrix - mean) / scale])
    coefficients = _newton(design, labels, offset)
    slopes = coefficients[1:] / scale
    fitted = dict(zip(names, slopes.tolist(), strict=True))
    if scarce:
        fitted["scarcity"] = SCARCITY
    return Gate(bias=float(coefficients[0] - slopes @ mean), **fitted)


def _newton(
    design: np.ndarray, labels: np.ndarray, offset: np.ndarray, steps: int = 50
) -> np.ndarray:
    coefficients = np.zeros(design.shape[1])
    penalty = RIDGE * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    # Newton's method may overshoot from afar; it starts at the mean label, where it does not.
    share = labels.mean()
    coefficients[0] = np.log(share / (1 - share)) - offset.mean()
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(design @ coefficients + offset, -500, 500)))
        slope = design.T @ (labels - chance) - penalty @ coefficients
        curve = (design * (chance * (1 - chance))[:, None]).T @ design + penalty
        step = np.linalg.solve(curve, slope)
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-9:
            break
    return coefficients
