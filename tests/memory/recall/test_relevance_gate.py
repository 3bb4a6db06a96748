"""The gate."""

import math

import pytest

from memory.recall.policy import FEATURE_NAMES, Gate, GateFeatures

ZERO_FEATURES = dict.fromkeys(FEATURE_NAMES, 0.0)


def test_probability_is_the_logistic_function_of_the_weighed_features() -> None:
    gate = Gate(bias=-1.0, cosine=2.0, gap=-3.0)
    features = GateFeatures(**{**ZERO_FEATURES, "cosine": 0.5, "gap": 0.1})
    assert gate.value(features) == pytest.approx(1 / (1 + math.exp(0.3)))
