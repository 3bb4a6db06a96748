"""Fitting the gate: logistic regression over labelled signs, by Newton's method. Pure."""

from collections.abc import Iterable, Mapping

import numpy as np

from memory.exceptions import InvalidArgument
from memory.gate import SIGN_NAMES, Gate

# A weak pull to zero, on standardised signs: without it, signs that part the data perfectly would
# have no finite coefficient.
RIDGE = 1.0


def fit_gate(
    labelled: Iterable[tuple[Mapping[str, float], bool]],
    signs: Iterable[str] = SIGN_NAMES,
    *,
    weights: Iterable[float] | None = None,
) -> Gate:
    """The gate that makes what was observed most probable.

    Args:
        labelled: the signs of a memory (other keys are ignored), and whether it was relevant.
        signs: the ones that the gate may look at.
        weights: as if a memory had been seen so many times; by default once.

    Raises:
        InvalidArgument: a sign is missing, or all memories have the same label.
    """
    rows = list(labelled)
    names = list(signs)
    try:
        matrix = np.array([[float(row[name]) for name in names] for row, _ in rows])
    except KeyError as error:
        raise InvalidArgument(f"a labelled memory lacks the sign {error}") from None
    labels = np.array([relevant for _, relevant in rows], dtype=float)
    if not 0 < labels.sum() < len(labels):
        raise InvalidArgument(
            f"{int(labels.sum())} of {len(labels)} memories are relevant: both kinds are needed"
        )
    seen = np.ones(len(rows)) if weights is None else np.array([float(w) for w in weights])
    if len(seen) != len(rows) or not (np.isfinite(seen).all() and (seen > 0).all()):
        raise InvalidArgument("weights are one positive number for each memory")
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scale[scale == 0] = 1.0
    design = np.hstack([np.ones((len(rows), 1)), (matrix - mean) / scale])
    coefficients = _newton(design, labels, seen)
    slopes = coefficients[1:] / scale
    fitted = dict(zip(names, slopes.tolist(), strict=True))
    return Gate(bias=float(coefficients[0] - slopes @ mean), **fitted)


def _newton(
    design: np.ndarray, labels: np.ndarray, seen: np.ndarray, steps: int = 100
) -> np.ndarray:
    coefficients = np.zeros(design.shape[1])
    penalty = np.full(design.shape[1], RIDGE)
    penalty[0] = 0.0

    def loss(at: np.ndarray) -> float:
        logit = design @ at
        likely = seen * (np.logaddexp(0, logit) - labels * logit)
        return float(likely.sum() + (penalty * at * at).sum() / 2)

    share = np.average(labels, weights=seen)
    coefficients[0] = np.log(share / (1 - share))
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(design @ coefficients, -500, 500)))
        slope = design.T @ (seen * (labels - chance)) - penalty * coefficients
        curve = (design * (seen * chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        # From afar a whole step may overshoot.
        before = loss(coefficients)
        while loss(coefficients + step) > before and np.abs(step).max() > 1e-9:
            step /= 2
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-9:
            break
    return coefficients
