"""schemathesis against the production server with the committed description and all checks.

Valid data must be accepted and invalid data refused, with the described statuses, headers and
bodies. `make fuzz` sends more than 5,000 requests, `make test` one example for each operation.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from konstruct.api.auth.keys import issue_key
from konstruct.api.models import KeyScope
from konstruct.orchestrator.agents import create_agent
from tenants.models import Tenant
from tests.konstruct.api.live import serving
from tests.konstruct.api.seed_data import SeedData, create_seed_data, talk
from tests.konstruct.conftest import Program
from tests.konstruct.running import PROJECT

pytestmark = pytest.mark.long

EXAMPLES = int(os.environ.get("KONSTRUCT_FUZZ_EXAMPLES", "0"))
# The systematic phase alone sends thousands of requests.
PHASES = "examples,coverage,fuzzing,stateful" if EXAMPLES else "examples,fuzzing"
# Invalid data is in test_odd_values.py too.
MODE = "all" if EXAMPLES else "positive"
SEED = os.environ.get("KONSTRUCT_FUZZ_SEED", "1")


@pytest.fixture
def seed(transactional_db: None, tenant_a: Tenant) -> SeedData:
    """A tenant with a row in every list."""
    agent = create_agent(tenant_id=tenant_a.id, name="ada", system_prompt="You are Ada.")
    _, key = issue_key(tenant_id=tenant_a.id, name="fuzz", scopes=KeyScope.values)
    seed = create_seed_data(Program(tenant_a, agent, str(key)))
    talk(seed.program, "graph", "Hello")
    return seed


def attack(url: str, seed: SeedData, folder: Path, *options: str) -> int:
    """Run schemathesis. Return the number of requests. A finding is an error."""
    there = {
        "message_id": seed.sent["id"],
        # Not ada, who must not change.
        "agent_id": str(seed.other.id),
        "memory_id": str(seed.fact),
        "event_id": str(seed.event.id),
        "thread_id": "graph",
    }
    ran = subprocess.run(
        [
            str(Path(sys.executable).parent / "schemathesis"),
            *("--config-file", str(Path(__file__).with_name("schemathesis.toml"))),
            *("run", str(Path(settings.BASE_DIR) / "docs" / "openapi.yaml"), "--url", url),
            *("--checks", "all", "--mode", MODE, "--phases", PHASES, "--seed", SEED),
            *("--max-examples", str(EXAMPLES or 1), "--request-timeout", "60"),
            *("--generation-database", "none", "--continue-on-failure", "--no-color"),
            # Generation is slow on a busy machine, which is no fault of the API.
            "--suppress-health-check=too_slow",
            *options,
        ],
        cwd=folder,  # it leaves files where it runs
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "SCHEMATHESIS_HOOKS": "tests.konstruct.api.fuzz.hooks",
            "KONSTRUCT_FUZZ_IDS": json.dumps(there),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    made = re.search(r"(\d+) generated", ran.stdout)
    assert made is not None, ran.stdout
    return int(made[1])


def test_api_matches_its_description(
    seed: SeedData, process_environment: dict[str, str], tmp_path: Path, record_property: Any
) -> None:
    unlimited = {
        f"{prefix}RATE_LIMIT_{limit}": "1000000"
        for prefix in ("", "KEY_")
        for limit in ("BURST", "PER_SECOND")
    }
    environment: dict[str, Any] = {**process_environment, **unlimited}
    log = tmp_path / "log"
    with serving(environment, log) as url:
        made = attack(url, seed, tmp_path, "-H", f"Authorization: Bearer {seed.program.key}")
        if EXAMPLES:  # test_contract.py sends every request without a key
            made += attack(url, seed, tmp_path)
    record_property("requests", made)
    assert made >= (5000 if EXAMPLES >= 60 else 60)
    assert "ERROR" not in log.read_text()
