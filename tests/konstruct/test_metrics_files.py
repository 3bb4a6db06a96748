"""deploy/prometheus and deploy/grafana: each query uses series of /metrics."""

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client import generate_latest

from tenants.metrics import METRICS, OTHER, registry
from tests.konstruct.running import PROJECT
from tests.konstruct.test_metrics import declare_all

ALERTS = [
    rule
    for group in yaml.safe_load((PROJECT / "deploy/prometheus/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in
              sorted((PROJECT / "deploy" / "grafana").glob("*.json"))}  # fmt: skip
QUERIES = [(rule["alert"], rule["expr"]) for rule in ALERTS] + [
    (f"{name}: {panel['title']}", target["expr"].replace("$__rate_interval", "5m"))
    for name, dashboard in DASHBOARDS.items()
    for panel in dashboard["panels"]
    for target in panel["targets"]
]
SUFFIXES = re.compile("_(bucket|sum|count)$")


def selectors(node: Any) -> Iterator[Any]:
    """Return the selectors of a parsed query, and the labels of its groups."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    elif isinstance(node, promql_parser.MatrixSelector):
        yield node.vector_selector
    elif isinstance(node, promql_parser.BinaryExpr):
        yield from selectors(node.lhs)
        yield from selectors(node.rhs)
    elif isinstance(node, promql_parser.Call):
        for argument in node.args:
            yield from selectors(argument)
    elif isinstance(node, promql_parser.AggregateExpr | promql_parser.ParenExpr):
        yield from selectors(node.expr)


@pytest.mark.parametrize(("of", "query"), QUERIES, ids=[of for of, _ in QUERIES])
def test_queries_use_existing_metrics(of: str, query: str) -> None:
    declare_all()
    found = list(selectors(promql_parser.parse(query)))
    assert found
    grouped = {
        label.strip()
        for labels in re.findall(r"\bby \(([^)]*)\)", query)
        for label in labels.split(",")
    }
    for selector in found:
        metric = METRICS[SUFFIXES.sub("", selector.name)]
        is_histogram = metric.name != selector.name
        assert is_histogram == (metric.kind == "histogram")
        assert grouped - {"le"} <= set(metric.labels), of
        assert ("le" in grouped) <= selector.name.endswith("_bucket")
        for matcher in selector.matchers.matchers:
            known = {*metric.labels[matcher.name], OTHER}
            values = matcher.value.split("|") if "Re" in str(matcher.op) else [matcher.value]
            assert set(values) <= known, (of, matcher.value)


def test_counters_with_alerts_on_increase_begin_with_all_series() -> None:
    """In Prometheus a series that begins at 1 and does not change has no increase."""
    declare_all()
    page = generate_latest(registry()).decode()
    names = {
        selector.name
        for rule in ALERTS
        if "increase(" in rule["expr"]
        for selector in selectors(promql_parser.parse(rule["expr"]))
    }
    assert len(names) == 3
    for metric in (METRICS[name] for name in names):
        for values in product(*metric.labels.values()):
            labels = ",".join(
                sorted(f'{n}="{v}"' for n, v in zip(metric.labels, values, strict=True))
            )
            assert f"\n{metric.name}{{{labels}}} " in page


def test_each_metric_is_on_a_dashboard_or_in_an_alert() -> None:
    declare_all()
    requests = {
        SUFFIXES.sub("", selector.name)
        for _, query in QUERIES
        for selector in selectors(promql_parser.parse(query))
    }
    assert requests == set(METRICS)
