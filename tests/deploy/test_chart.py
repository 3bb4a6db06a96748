"""The Helm chart, rendered by Helm's library: valid, secure, and with complete settings."""

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from konstruct.heartbeats import WORKERS
from tenants.jobs import KINDS
from tests.deploy.conftest import LEAST, NOT_CHECKED, assert_valid, failed_checks
from tests.konstruct.running import PROJECT
from tests.konstruct.test_metrics import declare_all

pytestmark = pytest.mark.long

PROCESSES = ("web", *WORKERS, "beat", "owner")


def container(manifests: dict[str, Any], process: str) -> dict[str, Any]:
    kind = "Job" if process == "migrate" else "Deployment"
    (found,) = manifests[f"{kind}/konstruct-{process}"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def environment(manifests: dict[str, Any], process: str) -> dict[str, Any]:
    """Return the variables of a process: values, and for secrets the Secret with the key."""
    return {
        variable["name"]: variable["value"]
        if "value" in variable
        else "{name}/{key}".format(**variable["valueFrom"]["secretKeyRef"])
        for variable in container(manifests, process)["env"]
    }


def test_each_process_has_a_deployment_with_the_command_of_compose(least: dict[str, Any]) -> None:
    assert {name for name in least if name.startswith("Deployment/")} == {
        f"Deployment/konstruct-{name}" for name in PROCESSES
    }
    compose = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())["services"]
    dockerfile = (PROJECT / "Dockerfile").read_text()
    of_the_image = yaml.safe_load(re.findall(r"^CMD (\[.*\])$", dockerfile, re.MULTILINE)[0])
    for name in PROCESSES:
        assert container(least, name)["command"] == compose[name].get("command", of_the_image)


def test_a_setting_reaches_each_process_and_a_process_may_have_its_own(
    render: Callable[..., Any],
) -> None:
    values = deepcopy(LEAST)
    values["settings"]["LOG_LEVEL"] = "WARNING"
    values["processes"] = {"replies": {"settings": {"LOG_LEVEL": "DEBUG"}}}
    manifests = render(values)
    levels = {name: environment(manifests, name)["LOG_LEVEL"] for name in (*PROCESSES, "migrate")}
    assert levels == {**dict.fromkeys((*PROCESSES, "migrate"), "WARNING"), "replies": "DEBUG"}
    variables = environment(manifests, "web")
    # The probes of the web process use this host.
    assert variables["ALLOWED_HOSTS"] == "127.0.0.1,.example.com"
    assert variables["PUBLIC_HOSTS"] == "127.0.0.1,konstruct.example.com"
    assert "LLM_TIMEOUT" not in variables  # an empty value means the default


def test_secrets_are_named_and_the_owners_reach_its_processes_alone(least: dict[str, Any]) -> None:
    assert not any(name.startswith("Secret/") for name in least)
    for name in (*PROCESSES, "migrate"):
        variables = environment(least, name)
        assert variables["DATABASE_URL"] == "app/DATABASE_URL"
        assert variables["SECRET_KEY"] == "app/SECRET_KEY"
        of_the_owner = {name for name in variables if "OWNER" in name}
        assert of_the_owner == (
            {"DATABASE_OWNER_URL", "TENANT_DATABASES_OWNER"}
            if name in ("owner", "migrate")
            else set()
        )
        required = {
            variable["name"]
            for variable in container(least, name)["env"]
            if "valueFrom" in variable and not variable["valueFrom"]["secretKeyRef"].get("optional")
        }
        needed = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY"}
        assert required == needed | (of_the_owner & {"DATABASE_OWNER_URL"})


def test_migrate_runs_before_the_processes_with_a_canary(
    least: dict[str, Any], everything: dict[str, Any]
) -> None:
    job = least["Job/konstruct-migrate"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert job["spec"]["backoffLimit"] == 0
    assert container(least, "migrate")["command"] == [
        *("python", "manage.py", "migrate", "--canary", "1")
    ]
    assert container(everything, "migrate")["command"] == [
        *("sh", "-c", "python manage.py migrate --canary 1 || [ $? -eq 4 ]")
    ]


def test_workers_are_scaled_by_the_age_of_the_jobs_of_their_queues(
    least: dict[str, Any], everything: dict[str, Any]
) -> None:
    assert not any(name.startswith(("Scaled", "Horizontal")) for name in least)
    declare_all()
    assert "HorizontalPodAutoscaler/konstruct-web" in everything
    for name in ("replies", "deliveries", "embeddings"):
        queues = container(everything, name)["command"][3:]
        kinds = {kind.name for kind in KINDS.values() if kind.queue in queues}
        (trigger,) = everything[f"ScaledObject/konstruct-{name}"]["spec"]["triggers"]
        query = trigger["metadata"]["query"]
        assert query.startswith('max(konstruct_jobs_oldest_seconds{namespace="prod",kind=~"')
        assert set(query.split('"')[3].split("|")) == kinds
        # Otherwise Helm and the autoscaler would each set a number of replicas.
        assert "replicas" not in everything[f"Deployment/konstruct-{name}"]["spec"]
    assert least["Deployment/konstruct-web"]["spec"]["replicas"] == 2


def test_backups_and_the_journal_have_their_volumes(everything: dict[str, Any]) -> None:
    def mounts(pod: dict[str, Any]) -> dict[str, str]:
        (container,) = pod["containers"]
        claims = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["volumes"]
            if "persistentVolumeClaim" in volume
        }
        paths = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        return {paths[name]: claim for name, claim in claims.items()}

    backup = everything["CronJob/konstruct-backup"]["spec"]["jobTemplate"]["spec"]["template"]
    (container,) = backup["spec"]["containers"]
    assert container["image"].startswith("images.example.com/konstruct-backup@")
    assert container["command"] == [
        *("python", "manage.py", "backup", "/backups", "--keep-days", "30")
    ]
    assert mounts(backup["spec"]) == {"/journal": "journal", "/backups": "backups"}
    for name, manifest in everything.items():
        if manifest["kind"] in ("Deployment", "Job"):
            is_owners = name.endswith(("-owner", "-migrate"))
            expected = {"/journal": "journal"} if is_owners else {}
            assert mounts(manifest["spec"]["template"]["spec"]) == expected, name


def test_network_policies_cover_all_connections_of_pods(least: dict[str, Any]) -> None:
    policies = {
        name.removeprefix("NetworkPolicy/konstruct-"): document["spec"]
        for name, document in least.items()
        if name.startswith("NetworkPolicy/")
    }
    assert set(policies) == {"deny", "web", "metrics", "migrate", *(f"to-{name}" for name in
                             ("dns", "postgres", "valkey", "model"))}  # fmt: skip
    migrate = least["NetworkPolicy/konstruct-migrate"]["metadata"]["annotations"]
    assert migrate["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert migrate["helm.sh/hook-weight"] == "-1"  # before the Job
    ports = {port["port"] for rule in policies["migrate"]["egress"] for port in rule["ports"]}
    assert ports == {53, 5432, 6379}
    deny = policies.pop("deny")
    assert deny["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & set(deny)
    pods = [document["spec"]["template"]["metadata"]["labels"] for name, document in least.items()
            if name.startswith(("Deployment/", "Job/"))]  # fmt: skip
    assert len(pods) == len(PROCESSES) + 1
    assert all(deny["podSelector"]["matchLabels"].items() <= labels.items() for labels in pods)
    for spec in policies.values():
        for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
            assert rule.get("from") or rule.get("to")  # no value would allow all
            assert rule["ports"]
    assert policies["web"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "web"


@pytest.mark.parametrize(
    ("url", "ports"),
    [
        ("", [443]),
        ("https://api.example.com/v1", [443]),
        ("http://vllm.models:8000/v1", [443, 8000]),
        ("http://pool", [443, 80]),
    ],
)
def test_egress_includes_the_port_of_the_language_model(
    render: Callable[..., Any], url: str, ports: list[int]
) -> None:
    values = deepcopy(LEAST)
    values["settings"]["LLM_POOL_URL"] = url
    (rule,) = render(values)["NetworkPolicy/konstruct-to-model"]["spec"]["egress"]
    assert [port["port"] for port in rule["ports"]] == ports


def test_pods_are_replaced_after_a_change_of_secrets_and_the_ingress_waits(
    least: dict[str, Any], everything: dict[str, Any]
) -> None:
    for name in PROCESSES:
        pod = least[f"Deployment/konstruct-{name}"]["spec"]["template"]["metadata"]
        assert len(pod["annotations"]["checksum/secrets"]) == 64
    assert everything["Ingress/konstruct"]["metadata"]["annotations"] == {
        "nginx.ingress.kubernetes.io/proxy-read-timeout": "200",
        "nginx.ingress.kubernetes.io/proxy-body-size": "3m",
    }


def test_chart_is_valid_for_kubernetes(
    run_check: Callable[..., str], least: dict[str, Any], everything: dict[str, Any]
) -> None:
    for manifests in (least, everything):
        assert_valid(run_check, manifests)


def test_checkov_reports_only_explained_findings(
    run_check: Callable[..., str], everything: dict[str, Any], tmp_path: Path
) -> None:
    assert failed_checks(run_check, everything, tmp_path) == set(NOT_CHECKED)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"settings": {"ALLOWED_HOST": "x"}}, "ALLOWED_HOST"),
        ({"settings": {"SECRET_KEY": "x"}}, "SECRET_KEY"),
        ({"settings": {"WEB_THREADS": 16}}, "want string"),
        ({"secrets": {"app": {"existingSecret": "app"}}}, "secrets.owner.existingSecret is"),
        ({"settings": {}}, "settings.ALLOWED_HOSTS is required"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"replicas": 2}, "replicas"),
        (
            {"processes": {"replies": {"autoscaling": {"enabled": True}}}},
            "autoscaling.prometheusUrl is required",
        ),
        ({"backup": {"enabled": True}}, "backup.existingClaim is required"),
    ],
)
def test_values_that_are_wrong_are_refused_by_name(
    render: Callable[..., Any], changes: dict[str, Any], error: str
) -> None:
    assert error in render({**LEAST, **changes})
