"""Checks of the image, the Compose files, the chart and the SBOM, in a separate environment.

Without .venv-checks the tests are skipped, except with CI=true: `make long` creates it.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.konstruct.running import PROJECT

CHECKS = PROJECT / ".venv-checks" / "bin"
CHART = PROJECT / "deploy" / "helm" / "konstruct"
RENDER = """
import json, sys
import helm_python
with helm_python.Chart.load(sys.argv[1]) as chart:
    rendered = []
    for release in json.load(sys.stdin):
        try:
            chart.validate_schema(release["values"])
            rendered.append(chart.render(release["values"], name=release["name"], namespace="prod"))
        except helm_python.HelmError as error:
            rendered.append(str(error))
print(json.dumps(rendered))
"""
KUBERNETES = ("1.27", "1.36")
# Kinds with their own schema, which Kubernetes does not have.
CUSTOM = {"ScaledObject", "PodMonitor", "PrometheusRule"}
VALIDATE = """
import json, sys
import kubernetes_validate
for manifest in json.load(sys.stdin):
    for version in sys.argv[1:]:
        kubernetes_validate.validate(manifest, version, strict=True)
        print(version, manifest["kind"])
"""
NOT_CHECKED = {
    "CKV_K8S_11": "a limit of CPU slows embeddings, which use all cores; the values take one",
    "CKV_K8S_35": "settings are environment variables; the Secrets are named by reference",
}
# The minimal values of the chart.
LEAST: dict[str, Any] = {
    "image": {"repository": "images.example.com/konstruct", "digest": f"sha256:{'0' * 64}"},
    "secrets": {"app": {"existingSecret": "app"}, "owner": {"existingSecret": "owner"}},
    "settings": {
        "ALLOWED_HOSTS": ".example.com",
        "PUBLIC_HOSTS": "konstruct.example.com",
        "TENANT_DOMAIN_SUFFIX": "example.com",
    },
}
SCALED = {"autoscaling": {"enabled": True}}
EVERYTHING: dict[str, Any] = {
    **LEAST,
    "processes": dict.fromkeys(("web", "replies", "deliveries", "embeddings"), SCALED),
    "autoscaling": {"prometheusUrl": "http://prometheus.monitoring:9090"},
    "ingress": {"enabled": True, "className": "nginx", "hosts": ["*.example.com"]},
    "metrics": {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
    "migrate": {"acceptTenantsBehind": True},
    "journal": {"existingClaim": "journal"},
    "backup": {
        "enabled": True,
        "image": f"images.example.com/konstruct-backup@sha256:{'1' * 64}",
        "existingClaim": "backups",
    },
    "networkPolicy": {"egress": {name: {"enabled": True} for name in ("slack", "mail", "traces")}},
}


@pytest.fixture(scope="session")
def run_check() -> Callable[..., str]:
    """Run a program of .venv-checks. Return its output."""
    if not CHECKS.exists() and not os.environ.get("CI"):
        pytest.skip("make .venv-checks/.installed")

    def run(program: str, *arguments: str, data: str = "") -> str:
        ran = subprocess.run(
            [CHECKS / program, *arguments],
            cwd=PROJECT,
            input=data,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    return run


@pytest.fixture(scope="session")
def render(run_check: Callable[..., str]) -> Callable[..., Any]:
    """Render the chart with values: manifests by "Kind/name", or the text of Helm's error."""

    def render(values: dict[str, Any], *, name: str = "konstruct") -> Any:
        case = json.dumps([{"values": values, "name": name}])
        (files,) = json.loads(run_check("python", "-c", RENDER, str(CHART), data=case))
        if isinstance(files, str):
            return files
        texts = [text for file, text in sorted(files.items()) if file.endswith(".yaml")]
        documents = [
            document for text in texts for document in yaml.safe_load_all(text) if document
        ]
        found = {
            f"{document['kind']}/{document['metadata']['name']}": document for document in documents
        }
        assert len(found) == len(documents)
        return found

    return render


@pytest.fixture(scope="session")
def least(render: Callable[..., Any]) -> dict[str, Any]:
    """Return the manifests of the minimal values."""
    manifests: dict[str, Any] = render(LEAST)
    return manifests


@pytest.fixture(scope="session")
def everything(render: Callable[..., Any]) -> dict[str, Any]:
    """Return the manifests with all options on."""
    manifests: dict[str, Any] = render(EVERYTHING)
    return manifests


def write_manifests(manifests: dict[str, Any], folder: Path) -> Path:
    """Write manifests into a file of the folder; return its path."""
    path = folder / "manifests.yaml"
    path.write_text(yaml.safe_dump_all(manifests.values()))
    return path


def assert_valid(run_check: Callable[..., str], manifests: dict[str, Any]) -> None:
    """Fail if manifests are invalid in the oldest or newest supported version of Kubernetes."""
    known = [document for document in manifests.values() if document["kind"] not in CUSTOM]
    validated = run_check("python", "-c", VALIDATE, *KUBERNETES, data=json.dumps(known))
    assert len(validated.splitlines()) == len(KUBERNETES) * len(known)


def failed_checks(
    run_check: Callable[..., str], manifests: dict[str, Any], folder: Path
) -> set[str]:
    """Return the ids of checkov's failed checks."""
    path = write_manifests(manifests, folder)
    report = json.loads(
        run_check(
            "checkov", "--file", str(path), "--framework", "kubernetes", "--skip-download",
            "--output", "json", "--soft-fail",
        )
    )  # fmt: skip
    assert report["summary"]["passed"] > 500
    return {check["check_id"] for check in report["results"]["failed_checks"]}
