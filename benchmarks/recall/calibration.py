"""Measure the calibration of the gate: a reliability table, and the curve.

    python -m benchmarks.recall.calibration --data locomo10.json [--dialogues 0-3]
        [--facts FACTS.jsonl] [--sessions longmemeval.json.gz] [--mode vector] [--json OUT]

For each answerable question the ten best memories are labelled. There are several kinds of
questions and memories: LoCoMo unchanged and with recorded facts (see recall_with_facts.py); the
same dialogues without names (gate_features.py); the conversations of the tests; composed
conversations of long turns; and LongMemEval. The turns of LongMemEval have no labels, so each turn
of a session with the answer counts as relevant. The gate is not fitted to it.

The script prints the map from gate values to probabilities that all kinds give together with equal
weights, for fitted_models.toml; how well the present map of the product fits each kind; and
the results of each threshold on LoCoMo.
"""

import argparse
import gzip
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from benchmarks.facts.recall_with_facts import record_facts
from benchmarks.recall import gate_features, quality
from benchmarks.recall.long_turns import long_turns
from benchmarks.tools.locomo import Dialogue, numbers, read_dialogues
from benchmarks.tools.throwaway import set_up, throwaway_tenant

# The gate was fitted to seed 1.
LONG_TURNS_SEED = 2
FITTED = ("by name", "by name, with facts", "without names", "conversations", "long turns")
NAMES = {"conversation": "conversations", "long": "long turns", "LongMemEval": "LongMemEval"}
BINS = (0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1)
OPEN_AT = (0.01, 0.02, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3)
KEEP_AT = (0.0, 0.005, 0.02, 0.05)

Labels = list[tuple[float, bool, bool]]
"""The gate's value of each memory, whether a fact rests on it, and whether it was relevant."""
Labelled = dict[str, Labels]
"""By kind."""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--dialogues", type=numbers, help="such as 0-3; by default all")
    parser.add_argument("--facts", type=Path, help="recorded facts of these dialogues")
    parser.add_argument("--sessions", type=Path, help="a LongMemEval file, gzipped JSON")
    parser.add_argument("--mode", choices=["hybrid", "vector"], default="hybrid")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    dialogues = read_dialogues(options.data, options.dialogues)
    scopes = [
        *gate_features.nameless(dialogues),
        *gate_features.conversations(),
        *gate_features.long_turned(long_turns(LONG_TURNS_SEED)),
    ]
    if options.sessions:
        data = json.loads(gzip.decompress(options.sessions.read_bytes()))
        scopes += gate_features.long_turned(data, "LongMemEval")
    set_up()
    with throwaway_tenant() as tenant_id:
        labelled, curves = by_name(tenant_id, dialogues, options.facts, options.mode)
        gate_features.record(tenant_id, scopes)
        for line in gate_features.labelled(tenant_id, scopes, options.mode):
            if line["answerable"]:
                kind = NAMES.get(line["kind"], "without names")
                labelled[kind].append((line["value"], False, line["relevant"]))
    report = reported(labelled, options.mode) | {"curves": curves}
    show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def by_name(
    tenant_id: UUID, dialogues: list[Dialogue], facts: Path | None, mode: Any
) -> tuple[Labelled, dict[str, list[dict[str, Any]]]]:
    """Ask about LoCoMo's dialogues without and with facts. Return the labels, and the curves."""
    from memory.recall.policy import RecallPolicy

    scopes = [
        quality.Scope(dialogue, uuid4(), f"locomo-{dialogue.number}") for dialogue in dialogues
    ]
    quality.import_dialogues(tenant_id, scopes)
    vectors = quality.embed_questions(scopes)
    labelled: Labelled = defaultdict(list)
    curves = {}
    for kind in ("by name", "by name, with facts"):
        if kind == "by name, with facts":
            if facts is None:
                break
            record_facts(tenant_id, scopes, facts)
        policy = RecallPolicy(mode=mode)
        found = quality.ask_everything(tenant_id, scopes, vectors, policy)
        labelled[kind] = [
            (hit.gate_value, "fact" in hit.channels, hit.external_id in question.evidence)
            for owner, question, result in found
            if owner == "own"
            for hit in result.hits[: gate_features.TOP]
        ]
        curves[kind] = [
            quality.gate_line(found, open_at, keep_at, default=False)
            for open_at in OPEN_AT
            for keep_at in KEEP_AT
            if keep_at <= open_at
        ]
    return labelled, curves


def reported(labelled: Labelled, mode: str) -> dict[str, Any]:
    """Fit the map to all kinds, and measure how well the map of the product fits each."""
    from memory.embedding.embedder import model_files
    from memory.recall.policy import constants_of

    used = {kind: labelled[kind] for kind in FITTED if kind in labelled}
    present = constants_of(model_files()).calibrations[mode]
    kinds = {}
    for kind, pairs in labelled.items():
        signs, relevant = split(pairs)
        of_others = fit(other for name, other in used.items() if name != kind)
        shown = mapped(signs, present)
        kinds[kind] = {
            "memories": len(pairs),
            "relevant": float(relevant.mean()),
            "shown": float(shown.mean()),
            "error": error(shown, relevant),
            "error_uncalibrated": error(mapped(signs, (1, 0, 0)), relevant),
            "error_without_kind": error(mapped(signs, of_others), relevant),
            "bins": list(bins(shown, relevant)),
        }
    return {
        "mode": mode,
        "present": list(present),
        "fitted": fit(used.values()),
        "kinds": kinds,
    }


def split(labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Return the features of a map (logit of the gate value, 1, has a fact), and labels."""
    values, is_cited, relevant = np.array(labels, float).T
    kept = np.clip(values, 1e-12, 1 - 1e-12)
    return np.column_stack([np.log(kept / (1 - kept)), np.ones(len(kept)), is_cited]), relevant


def mapped(signs: np.ndarray, coefficients: Any) -> np.ndarray:
    """Return the probabilities of a map."""
    found: np.ndarray = 1 / (1 + np.exp(-signs @ np.array(coefficients)))
    return found


def fit(kinds: Iterable[Labels]) -> list[float]:
    """Return the slope and shifts with the maximum likelihood. Each kind has the same weight."""
    parts = [split(labels) for labels in kinds]
    signs, relevant = (np.concatenate(column) for column in zip(*parts, strict=True))
    weights = np.concatenate([np.full(len(of), 1 / len(of)) for _, of in parts])
    found = np.array([1.0, 0.0, 0.0])
    for _ in range(30):
        probability = mapped(signs, found)
        gradient = signs.T @ (weights * (relevant - probability))
        curvature = (signs * (weights * probability * (1 - probability))[:, None]).T @ signs
        # Without facts the labels say nothing about the coefficients of facts.
        found = found + np.linalg.lstsq(curvature, gradient, rcond=1e-9)[0]
    return [round(float(value), 3) for value in found]


def bins(shown: np.ndarray, relevant: np.ndarray) -> Iterator[dict[str, float]]:
    """Return the reliability table: mean shown, relevant share, and number of each bin."""
    for low, high in itertools.pairwise(BINS):
        inside = (shown >= low) & ((shown < high) | (high == 1))
        if inside.any():
            yield {
                "from": low,
                "shown": float(shown[inside].mean()),
                "relevant": float(relevant[inside].mean()),
                "memories": int(inside.sum()),
            }


def error(shown: np.ndarray, relevant: np.ndarray) -> float:
    """Return the expected calibration error: the mean of |shown - relevant| over the bins."""
    return sum(
        bin_["memories"] * abs(bin_["shown"] - bin_["relevant"]) for bin_ in bins(shown, relevant)
    ) / len(shown)


def show(report: dict[str, Any]) -> None:
    """Print the figures."""
    print(f"fitted: Calibration{tuple(report['fitted'])}; present: {tuple(report['present'])}")
    print(f"{'kind':<22}{'memories':>9}{'relevant':>9}{'shown':>7}{'error':>7}{'raw':>7}", end="")
    print(f"{'others':>8}")
    for kind, of in report["kinds"].items():
        print(f"{kind:<22}{of['memories']:>9}{of['relevant']:>9.3f}{of['shown']:>7.3f}", end="")
        print(f"{of['error']:>7.3f}{of['error_uncalibrated']:>7.3f}", end="")
        print(f"{of['error_without_kind']:>8.3f}")
    for kind, of in report["kinds"].items():
        print(f"\n{kind}: shown -> relevant (memories)")
        for bin_ in of["bins"]:
            print(f"  {bin_['shown']:.3f} -> {bin_['relevant']:.3f} ({bin_['memories']})")
    for kind, lines in report["curves"].items():
        print(f"\n{kind}\n{'open_at':>8}{'keep_at':>9}{'R@10':>7}{'given':>7}{'raw':>7}{'hard':>7}")
        for line in lines:
            negatives = (line["raw"] or 0, line["hard"] or 0)
            print(f"{line['open_at']:>8}{line['keep_at']:>9}{line['R@10']:>7.3f}", end="")
            print(f"{line['returned']:>7.1f}{negatives[0]:>7.3f}{negatives[1]:>7.3f}")


if __name__ == "__main__":
    main()
