"""Settings of an agent's recall: number of results, thresholds, channels, weights.

The gate gives each message a value, which is compared with thresholds. The displayed probability is
calibrated from that value, so that a better calibration does not change recall.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import mul
from typing import Final, Literal, NamedTuple

from memory.arguments import count_argument, number_argument, time_zone_argument
from memory.embedding.embedder import ModelFiles, fitted_model, model_files
from memory.exceptions import InvalidArgument
from memory.text.lexical import LATIN_BY_CODE

Mode = Literal["hybrid", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "vector")
MAX_TOP_K = 100
MAX_NEIGHBOURS = 10
MAX_WEIGHT = 10
MIN_PROBABILITY = 1e-12


def logistic(logit: float) -> float:
    """Return the probability of a logit."""
    # exp() of a double overflows beyond this.
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, logit))))


def logit(probability: float) -> float:
    """Return the logit of a probability, clipped away from 0 and 1."""
    clipped = max(MIN_PROBABILITY, min(1 - MIN_PROBABILITY, probability))
    return math.log(clipped / (1 - clipped))


class GateFeatures(NamedTuple):
    """The features of one memory for a question."""

    cosine: float
    """Best cosine of the memory's sentences."""
    lexical: float
    """Words in common, weighed by rarity and context."""
    coverage: float
    """Share of the question's rarity in the memory and its context."""
    subject: float
    """1 if the question names the speaker, -1 if it names another person, 0 if it names none."""
    words: float
    """ln(1 + words of the memory)."""
    time: float
    """1 if the question asks for a time and the memory has a word of time."""
    unknown: float
    """Share of the question's rarity that is in no message of this scope."""
    gap: float
    """Score of the best memory minus this one's."""
    mean_cosine: float
    """Of the whole scope: the similarity of the question to its nearest message."""
    unknown_name: float
    """1 if the question has a name that is in no message of this scope."""
    anonymous: float
    """1 if the question names no speaker by name: "my cat", not "Caroline's cat"."""
    scarcity: float
    """ln(1 + 300 / messages of the scope): in a small scope the best is more likely the answer."""


FEATURE_NAMES: Final = GateFeatures._fields
NO_FEATURES: Final = GateFeatures._make(0.0 for _ in FEATURE_NAMES)


class Gate(NamedTuple):
    """The coefficients of the features, and the bias."""

    bias: float
    coefficients: GateFeatures
    cited: float = 0.0
    """Added for a message with evidence of a fact."""
    fact: float = 0.0
    """Of the best cosine of the facts with evidence in the message."""

    @classmethod
    def of(cls, *, bias: float, cited: float = 0.0, fact: float = 0.0, **features: float) -> "Gate":
        """Return a gate with these coefficients of features; those of the others are zero."""
        return cls(bias, NO_FEATURES._replace(**features), cited, fact)

    def value(self, features: GateFeatures, fact: float | None = None) -> float:
        """Return how well the memory fits, from 0 to 1. It is compared with the thresholds.

        Args:
            features: of the message.
            fact: the best cosine of the facts with evidence in it; None without facts.
        """
        total = self.bias + sum(map(mul, self.coefficients, features))
        if fact is not None:
            total += self.cited + self.fact * fact
        return logistic(total)


class Calibration(NamedTuple):
    """A monotone map from the gate's values to probabilities, on logits."""

    slope: float
    shift: float
    cited: float = 0.0
    """Added for a message with evidence of a fact, if its gate value is too high."""

    def probability(self, value: float, *, is_cited: bool = False) -> float:
        """Return the probability that a memory with this value of the gate is relevant."""
        return logistic(self.slope * logit(value) + self.shift + self.cited * is_cited)


@dataclass(frozen=True, slots=True)
class ModelConstants:
    """The constants of recall that are fitted to an embedding model."""

    languages: frozenset[str]
    """Codes of the languages that it knows."""
    cosine_weight: float
    """Of the cosine in a message's score."""
    gates: Mapping[str, Gate]
    """Of each mode, and "foreign" for hybrid questions in a language that the model does not
    know."""
    calibrations: Mapping[str, Calibration]

    def gate(self, mode: Mode, languages: frozenset[str]) -> Gate:
        """Return the gate for a question in these languages."""
        is_foreign = mode == "hybrid" and not languages <= self.languages
        return self.gates["foreign" if is_foreign and "foreign" in self.gates else mode]


@cache
def constants_of(files: ModelFiles) -> ModelConstants:
    """Return the constants of an embedding model.

    Raises:
        EmbeddingModelError: nothing is fitted to it.
    """
    fitted = fitted_model(files)
    return ModelConstants(
        frozenset(fitted["languages"]),
        fitted["cosine_weight"],
        {name: Gate.of(**gate) for name, gate in fitted["gates"].items()},
        {mode: Calibration(**numbers) for mode, numbers in fitted["calibrations"].items()},
    )


class Thresholds(NamedTuple):
    """Values of the gate below which all results, or single memories, are left out."""

    open_at: float
    keep_at: float


# Points of the curve in docs/measurements.md.
PRESETS: Final = {
    "precise": Thresholds(0.10, 0.02),
    "balanced": Thresholds(0.06, 0.005),
    "thorough": Thresholds(0.03, 0.005),
}
DEFAULT_PRESET: Final = "balanced"


@dataclass(frozen=True, slots=True)
class RecallWeights:
    """The weight of each feature besides the best cosine of a message's sentences.

    Found on LoCoMo's dialogues 0-3 by cross-validation over dialogues: see docs/measurements.md.
    """

    lexical: float = 0.5
    """Of the words in common, weighed by their rarity, with those of the turns before."""
    session: float = 1.0
    """Of the mean of the three best messages of the same conversation on the same day. This and
    the next two count less where turns are long."""
    previous: float = 0.3
    """Of the cosine of the turn before: an answer is found by its question."""
    following: float = 0.3
    """Of the turn after, cosine and words: a statement is found by the reply to it."""
    length: float = 0.1
    """Of ln(1 + words): a longer message has more content, up to 60 words."""
    subject: float = 0.3
    """Of a message by the person whom the question names; negative for one by another person."""
    time: float = 0.5
    """Of a word of time in the message, if the question asks for a time."""
    fact: float = 1.5
    """Of the best cosine of the facts with evidence in the message; 0: recall uses no facts."""

    def __post_init__(self) -> None:
        for weight in fields(self):
            name = f"weight {weight.name}"
            number_argument(name, getattr(self, weight.name), minimum=0, maximum=MAX_WEIGHT)


WEIGHT_NAMES: Final = tuple(weight.name for weight in fields(RecallWeights))
NO_WEIGHTS: Final = RecallWeights(**dict.fromkeys(WEIGHT_NAMES, 0.0))


@dataclass(frozen=True, slots=True)
class RecallPolicy:
    """The settings of a recall. docs/measurements.md measures the defaults."""

    mode: Mode = "hybrid"
    """"hybrid" uses every feature; "vector" ranks by the best cosine alone."""
    top_k: int = 10
    """At most this many memories."""
    gate: bool = True
    """Leave out memories that are probably irrelevant, all of them if necessary."""
    open_at: float = PRESETS[DEFAULT_PRESET].open_at
    """With the gate: the best memory must have this value of the gate, else none is given."""
    keep_at: float = PRESETS[DEFAULT_PRESET].keep_at
    """With the gate: each memory must have this value of the gate."""
    neighbours: int = 0
    """Turns before and after each hit that are given along with it; they do not count."""
    weights: RecallWeights = field(default_factory=RecallWeights)
    language: str = ""
    """Code of the language of the query's Latin words; by default the user's, or else that of its
    frequent words."""
    time_zone: str = ""
    """Of the days of messages, if the user has none; by default UTC."""

    def with_preset(self, preset: str) -> "RecallPolicy":
        """Return the policy with the thresholds of a preset, one of PRESETS."""
        if preset not in PRESETS:
            raise InvalidArgument(f"preset={preset!r} is not one of {', '.join(PRESETS)}")
        return replace(self, **PRESETS[preset]._asdict())

    def probability(self, value: float, *, is_cited: bool = False) -> float:
        """Return the calibrated probability for a value of the gate.

        Args:
            value: of the gate.
            is_cited: whether a fact has evidence in the message.
        """
        calibration = constants_of(model_files()).calibrations[self.mode]
        return calibration.probability(value, is_cited=is_cited)

    @property
    def uses_facts(self) -> bool:
        """Whether facts with evidence in messages are recalled with these."""
        return self.mode != "vector" and self.weights.fact > 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidArgument(f"mode={self.mode!r} is not one of {', '.join(MODES)}")
        for name, value, low, high in (
            ("top_k", self.top_k, 1, MAX_TOP_K),
            ("neighbours", self.neighbours, 0, MAX_NEIGHBOURS),
        ):
            if count_argument(name, value, minimum=low) > high:
                raise InvalidArgument(f"{name}={value!r} is more than {high}")
        if not isinstance(self.gate, bool):
            raise InvalidArgument(f"gate={self.gate!r} is neither True nor False")
        for name in ("open_at", "keep_at"):
            number_argument(name, getattr(self, name), minimum=0, maximum=1)
        if self.keep_at > self.open_at:
            raise InvalidArgument(
                f"keep_at={self.keep_at!r} is more than open_at={self.open_at!r}: the best memory"
                " would be let in and then left out"
            )
        if self.language and self.language not in LATIN_BY_CODE:
            raise InvalidArgument(
                f"language={self.language!r} is not one of {', '.join(LATIN_BY_CODE)}"
            )
        time_zone_argument("time_zone", self.time_zone)
        if not isinstance(self.weights, RecallWeights):
            raise InvalidArgument(f"weights={self.weights!r} are not RecallWeights")


DEFAULT_POLICY = RecallPolicy()
