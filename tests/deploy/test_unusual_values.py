"""The chart with a non-default value of each setting: each has an effect, and is valid."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.conftest import CHART, NOT_CHECKED, RENDER, assert_valid, failed_checks

pytestmark = pytest.mark.long

DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
UNUSUAL: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("unusual-values.yaml").read_text()
)
UNUSUAL["settings"] = {name: f"unusual {name}" for name in DEFAULTS["settings"]}
for of_whom, secret in DEFAULTS["secrets"].items():
    UNUSUAL["secrets"][of_whom]["keys"] = {name: name.lower() for name in secret["keys"]}
AUTOSCALED = deepcopy(UNUSUAL)
for name in ("web", "replies", "deliveries", "embeddings"):
    AUTOSCALED["processes"][name] |= {
        "autoscaling": {**AUTOSCALED["processes"][name]["autoscaling"], "enabled": True}
    }
# Disabled options, without which others of the group have no effect; a digest replaces a tag.
SWITCHES = {
    ("image", "digest"): f"sha256:{'2' * 64}",
    ("networkPolicy", "enabled"): False,
    ("metrics", "enabled"): False,
    **{("networkPolicy", "egress", name, "enabled"): False
       for name in ("dns", "postgres", "valkey", "model")},
}  # fmt: skip
Path_ = tuple[str, ...]


def leaves(values: dict[str, Any], path: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of values that are no groups of values."""
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in ("resources", "limits", "requests"):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def at(values: dict[str, Any], path: Path_) -> Any:
    found: Any = values
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def changed(values: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    made = deepcopy(values)
    group = made
    for name in path[:-1]:
        group = group.setdefault(name, {})
    group[path[-1]] = value
    return made


@pytest.fixture(scope="module")
def render_all(run_check: Callable[..., str]) -> Callable[..., list[Any]]:
    """Render the chart with each of the values. Return files by name, or the text of an error."""

    def run(cases: list[dict[str, Any]]) -> list[Any]:
        data = json.dumps([{"values": values, "name": "konstruct"} for values in cases])
        rendered: list[Any] = json.loads(run_check("python", "-c", RENDER, str(CHART), data=data))
        return rendered

    return run


def test_each_value_of_the_chart_has_an_effect(render_all: Callable[..., list[Any]]) -> None:
    cases: list[tuple[Path_, dict[str, Any], dict[str, Any]]] = []
    for path in leaves(DEFAULTS):
        default = at(DEFAULTS, path)
        if path in SWITCHES:
            cases.append((path, UNUSUAL, changed(UNUSUAL, path, SWITCHES[path])))
            continue
        values = AUTOSCALED if "autoscaling" in path else UNUSUAL
        assert at(values, path) not in (None, default), f"unusual-values.yaml lacks {path}"
        cases.append((path, values, changed(values, path, default)))
    rendered = render_all([values for _, *both in cases for values in both])
    for number, (path, *_) in enumerate(cases):
        unusual, other = rendered[2 * number : 2 * number + 2]
        assert isinstance(unusual, dict), unusual
        assert unusual != other, f"{'.'.join(path)} has no effect"


def test_chart_with_unusual_values_is_valid_for_kubernetes_and_secure(
    render: Callable[..., Any], run_check: Callable[..., str], tmp_path: Path
) -> None:
    for values in (UNUSUAL, AUTOSCALED):
        manifests = render(values)
        assert_valid(run_check, manifests)
    # CKV_K8S_43: these values have a tag instead of a digest.
    assert failed_checks(run_check, manifests, tmp_path) == {*NOT_CHECKED, "CKV_K8S_43"}


def test_pods_follow_the_values(render: Callable[..., Any]) -> None:
    manifests = render(UNUSUAL)
    assert not any(name.startswith(("Horizontal", "Scaled", "PodDisr")) for name in manifests)
    pods = {name.partition("/konstruct-")[2]: manifest["spec"]["template"]["spec"]
            for name, manifest in manifests.items()
            if name.startswith(("Deployment/", "Job/"))}  # fmt: skip
    backup = manifests["CronJob/konstruct-backup"]["spec"]["jobTemplate"]["spec"]["template"]
    pods["backup"] = backup["spec"]
    assert len(pods) == 9
    for name, pod in pods.items():
        is_job = name in ("migrate", "backup")
        assert pod["nodeSelector"] == {"pool": "general" if is_job else "web"}
        assert pod["priorityClassName"] == {"migrate": "jobs", "backup": "platform"}.get(
            name, "web"
        )
        assert pod["serviceAccountName"] == "konstruct"
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        (container,) = pod["containers"]
        variables = {variable.pop("name"): variable for variable in container["env"]}
        assert variables["HTTPS_PROXY"] == {"value": "http://proxy.example.com:3128"}
        assert variables["NODE"] == {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        reference = variables["REDIS_URL"]["valueFrom"]["secretKeyRef"]
        assert reference == {"name": "platform", "key": "redis_url"}
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts["authorities"] == "/etc/konstruct/authorities"
        assert {volume["name"] for volume in pod["volumes"]} == set(mounts)
        is_backup = name == "backup"
        assert container["image"] == (
            f"images.example.com/konstruct{'-backup' if is_backup else ''}:0.1.0-7"
        )
        if not is_job:
            assert manifests[f"Deployment/konstruct-{name}"]["spec"]["replicas"] == 4
    (rule,) = manifests["NetworkPolicy/konstruct-to-valkey"]["spec"]["egress"]
    assert rule == {"to": [{"ipBlock": {"cidr": "10.2.0.0/16"}}],
                    "ports": [{"protocol": "TCP", "port": 6380}]}  # fmt: skip


@pytest.mark.parametrize("group", [("ingress", "enabled"), ("backup", "enabled")])
def test_disabled_parts_render_no_object(render: Callable[..., Any], group: Path_) -> None:
    kind = {"ingress": "Ingress", "backup": "CronJob"}[group[0]]
    assert sum(name.startswith(f"{kind}/") for name in render(UNUSUAL)) == 1
    assert not any(name.startswith(f"{kind}/") for name in render(changed(UNUSUAL, group, False)))
