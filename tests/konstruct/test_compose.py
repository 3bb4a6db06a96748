"""docker-compose.yml: complete, with health checks, and without a secret."""

import ast
import json
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from konstruct.heartbeats import WORKERS
from tests.konstruct.running import PROJECT

SETTINGS = [str(path) for path in (PROJECT / "konstruct" / "settings").glob("*.py")]
TEXT = (PROJECT / "docker-compose.yml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
PROJECT_SERVICES = ("migrate", "web", *WORKERS, "beat", "owner")
# Settings of the image or of the command, and those without a meaning in a container.
OWNERS = {"DATABASE_OWNER_URL", "TENANT_DATABASES_OWNER"}
NOT_PASSED = {*OWNERS, "KONSTRUCT_DB_ROLE", "KONSTRUCT_HOME", "KONSTRUCT_HOST", "PORT"}

# The chart's own of the latter; URLs are in its Secrets.
SET_BY_CHART = {"DEBUG", "HEARTBEAT_FILE", "METRICS_ADDRESS", "METRICS_DIR"}


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate", "backup"}))
def test_each_long_running_service_has_a_health_check_and_restarts(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert SERVICES[name]["restart"] == "unless-stopped"
    assert SERVICES[name]["logging"]["options"] == {"max-size": "20m", "max-file": "5"}
    seconds = {"postgres": "2m", "valkey": "30s", "web": "15s"} | dict.fromkeys(WORKERS, "15s")
    assert SERVICES[name].get("stop_grace_period") == seconds.get(name)


@pytest.mark.slow
def test_migrate_says_that_some_tenants_are_behind(tmp_path: Path) -> None:
    script = SERVICES["migrate"]["command"][2].replace("$$", "$")
    outcomes = []
    for status, stops in ((0, ""), (4, ""), (4, "true"), (1, "")):
        (tmp_path / "python").write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / "python").chmod(0o700)
        environment = {"PATH": str(tmp_path), "MIGRATE_STOPS": stops}
        command = ["/bin/sh", "-c", script]
        ran = subprocess.run(command, env=environment, capture_output=True, check=False)
        outcomes.append((ran.returncode, b"get 503" in ran.stderr))
    assert outcomes == [(0, False), (0, True), (4, False), (1, False)]


@pytest.mark.parametrize("name", ["web", *WORKERS, "beat", "owner"])
def test_services_start_after_migrations(name: str) -> None:
    conditions = {other: on["condition"] for other, on in SERVICES[name]["depends_on"].items()}
    assert conditions == {
        "migrate": "service_completed_successfully",
        "postgres": "service_healthy",
        "valkey": "service_healthy",
    }


@pytest.mark.parametrize("name", [*PROJECT_SERVICES, "backup"])
def test_our_processes_write_below_tmp_alone_and_have_no_capabilities(name: str) -> None:
    service = SERVICES[name]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"] == ["/tmp:size=512m,mode=1777"]  # noqa: S108
    written = {service["environment"][name] for name in ("HEARTBEAT_FILE", "METRICS_DIR")}
    assert all(path.startswith("/tmp/") for path in written)  # noqa: S108
    user = re.search(r"^USER (\d+):(\d+)$", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)
    assert user is not None
    assert min(int(number) for number in user.groups()) >= 10_000


def test_a_backup_is_made_by_the_image_that_has_postgresqls_programs() -> None:
    backup = SERVICES["backup"]
    assert (backup["build"]["target"], backup["profiles"]) == ("backup", ["backup"])
    assert [volume.rpartition(":")[2] for volume in backup["volumes"]] == ["/journal", "/backups"]
    assert backup["command"][-2:] == ["--keep-days", "${BACKUP_KEEP_DAYS:-30}"]
    assert "/dev/null /journal/erasures.jsonl" in (PROJECT / "Dockerfile").read_text()
    for name in ("owner", "migrate"):
        assert SERVICES[name]["volumes"] == ["${JOURNAL_FOLDER:-journal}:/journal"]
    dockerfile = (PROJECT / "Dockerfile").read_text()
    assert "ENV PATH=/opt/konstruct/postgresql:$PATH\n" in dockerfile
    assert "install -d -o 10001 -g 10001 /journal /backups" in dockerfile
    # The link of the image leads to the programs of the package that the tests use.
    (inside,) = re.findall(r"ln -s /opt/konstruct/lib/python3\*/site-packages/(\S+)", dockerfile)
    assert (Path(sysconfig.get_path("purelib")) / inside / "pg_dump").is_file()


@pytest.mark.parametrize("name", ["web", *WORKERS, "beat"])
def test_serving_containers_have_no_owner_password(name: str) -> None:
    environment = yaml.dump(SERVICES[name])
    assert "OWNER" not in environment
    assert "konstruct_app:" in environment


def test_compose_does_not_start_without_a_secret_and_the_example_names_each() -> None:
    required = set(re.findall(r"\$\{(\w+):\?", TEXT))
    secrets = set(re.findall(r"\$\{(\w*(?:PASSWORD|SECRET_KEY))\b", TEXT))
    secrets -= {"EMAIL_HOST_PASSWORD"}  # mails are optional in a deployment
    assert secrets == {
        "POSTGRES_PASSWORD", "KONSTRUCT_OWNER_PASSWORD", "KONSTRUCT_APP_PASSWORD",
        "VALKEY_PASSWORD", "SECRET_KEY",
    }  # fmt: skip
    assert secrets <= required
    example = (PROJECT / "deploy" / "compose.env.example").read_text()
    named = dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE))
    assert required <= set(named)
    assert {named[name] for name in required} == {""}
    assert named["TRUSTED_PROXIES"] == "1"  # of deploy/nginx.conf


def test_settings_documentation_compose_and_example_name_the_same() -> None:
    """Includes later settings: documented, passed to the containers, and configurable."""
    read = names_read_by("konstruct/local/services.py", *SETTINGS)
    read |= names_read_by("deploy/gunicorn.conf.py") | {"GUNICORN_CMD_ARGS"}
    documented = set(re.findall(r"^\| `(\w+)`", (PROJECT / "docs/settings.md").read_text(), re.M))
    assert documented == read
    for name in ("web", *WORKERS, "beat"):
        assert set(SERVICES[name]["environment"]) == documented - NOT_PASSED
    for name in ("migrate", "owner", "backup"):
        passed = set(SERVICES[name]["environment"])
        assert passed == documented - NOT_PASSED | OWNERS
    example = (PROJECT / "deploy/compose.env.example").read_text()
    named = re.findall(r"^(\w+)=", example, re.M)
    assert len(named) == len(set(named))
    assert set(named) == set(re.findall(r"\$\{(\w+)", TEXT))


def test_the_chart_takes_each_documented_setting_as_a_value_or_from_a_secret() -> None:
    chart = PROJECT / "deploy" / "helm" / "konstruct"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    documented = set(re.findall(r"^\| `(\w+)`", (PROJECT / "docs/settings.md").read_text(), re.M))
    secret = {name for secret in values["secrets"].values() for name in secret["keys"]}
    assert set(values["settings"]) | secret == documented - (NOT_PASSED - OWNERS) - SET_BY_CHART
    assert not set(values["settings"]) & secret
    assert set(schema["$defs"]["settings"]["propertyNames"]["enum"]) == set(values["settings"])


def names_read_by(*paths: str) -> set[str]:
    """Return the environment variables that the files read by os.environ or settings readers."""
    readers = {
        "address", "choice", "flag", "number", "price", "text", "url", "named_urls", "names",
        "class_names", "fernet_keys",
    }  # fmt: skip
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse((PROJECT / path).read_text())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                called = ast.unparse(node.func).removeprefix("environment.")
                if called in readers or called in ("os.environ.get", "os.getenv"):
                    found.add(node.args[0].value)
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
                found.add(ast.literal_eval(node.slice))
    return found


def test_copied_files_exist_and_are_in_the_build_context() -> None:
    seen = {
        line[1:]
        for line in (PROJECT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", (PROJECT / "Dockerfile").read_text(), re.M)
    copied = [name for line in lines for name in line.split()]
    assert set(copied) == seen
    assert [name for name in copied if not Path(PROJECT, name).exists()] == []


SERVERS = yaml.safe_load((PROJECT / "deploy" / "compose.servers.yml").read_text())


def test_each_pooler_of_three_servers_pools_transactions_of_its_own_postgres() -> None:
    configs = {name: config["content"] for name, config in SERVERS["configs"].items()}
    assert "pool_mode = transaction" in configs["pooler"]
    for server, host in {
        "default": "postgres",
        "eu1": "postgres-eu1",
        "eu2": "postgres-eu2",
    }.items():
        assert f"host={host} port=5432\n" in configs[f"pooler-{server}"]
        used = {
            config["source"]: config["target"]
            for config in SERVERS["services"][f"pooler-{server}"]["configs"]
        }
        assert used == {
            "pooler": "/etc/pgbouncer/pooler.ini",
            "pooler-users": "/etc/pgbouncer/users",
            f"pooler-{server}": "/etc/pgbouncer/server.ini",
        }
