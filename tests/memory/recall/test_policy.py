"""A recall policy: working defaults, refused values, presets and calibrated probabilities."""

import math
from typing import Any

import pytest

from memory.embedding.embedder import model_files
from memory.exceptions import InvalidArgument
from memory.recall import recall
from memory.recall.policy import (
    FEATURE_NAMES,
    Gate,
    GateFeatures,
    RecallPolicy,
    RecallWeights,
    constants_of,
)
from tenants.models import Tenant
from tests.memory.messages import AGENT, add_messages
from tests.memory.recalled import SMALL_TALK


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "magic"}, "mode='magic' is not one of hybrid, vector"),
        ({"top_k": 0}, "top_k=0 is not a whole number of at least 1"),
        ({"top_k": 101}, "top_k=101 is more than 100"),
        ({"gate": "yes"}, "gate='yes' is neither True nor False"),
        ({"open_at": 1.5}, "open_at=1.5 is not a number from 0 to 1"),
        ({"keep_at": float("nan")}, "keep_at=nan is not a number from 0 to 1"),
        ({"open_at": 0.1, "keep_at": 0.2}, "keep_at=0.2 is more than open_at=0.1"),
        ({"weights": {"lexical": 1}}, r"weights=\{'lexical': 1\} are not RecallWeights"),
    ],
)
def test_a_policy_refuses(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        RecallPolicy(**values)


@pytest.mark.parametrize("value", [-0.1, 11, float("inf"), float("nan"), "1", None, True])
def test_weights_refuse(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="weight lexical="):
        RecallWeights(lexical=value)


def test_policy_accepts_the_limits_of_its_range() -> None:
    policy = RecallPolicy(open_at=1, keep_at=0, top_k=100, weights=RecallWeights(session=0))
    assert (policy.open_at, policy.weights.session) == (1, 0)


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_probabilities_keep_the_order_of_the_gate(tenant_a: Tenant, mode: Any) -> None:
    add_messages(tenant_a, *SMALL_TALK)
    policy = RecallPolicy(mode=mode, gate=False)
    hits = recall(tenant_a.id, AGENT, "ann", "soup for lunch", policy=policy).hits
    by_gate = sorted(hits, key=lambda hit: hit.gate_value)
    assert by_gate == sorted(hits, key=lambda hit: hit.probability)
    calibration = constants_of(model_files()).calibrations[mode]
    assert all(hit.probability == calibration.probability(hit.gate_value) for hit in hits)


def test_a_language_that_the_model_does_not_know_has_another_gate() -> None:
    constants = constants_of(model_files())
    english, german = frozenset({"en"}), frozenset({"de", "en"})
    assert constants.gate("hybrid", english) is constants.gates["hybrid"]
    assert constants.gate("hybrid", german) is constants.gates["foreign"]
    assert constants.gate("vector", german) is constants.gates["vector"]


ZERO_FEATURES = dict.fromkeys(FEATURE_NAMES, 0.0)


def test_probability_is_the_logistic_function_of_the_weighed_features() -> None:
    gate = Gate.of(bias=-1.0, cosine=2.0, gap=-3.0)
    features = GateFeatures(**{**ZERO_FEATURES, "cosine": 0.5, "gap": 0.1})
    assert gate.value(features) == pytest.approx(1 / (1 + math.exp(0.3)))
