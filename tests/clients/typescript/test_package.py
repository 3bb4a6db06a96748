"""The TypeScript client, built by npm, in Node: alone, and against the server."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from konstruct.api.auth.keys import issue_key
from konstruct.orchestrator.agents import create_agent
from tenants.models import Tenant
from tests.clients.python.conftest import bound_key
from tests.clients.typescript.test_description import PACKAGE
from tests.documentation.blocks import blocks
from tests.documentation.pages import DOCS
from tests.konstruct.conftest import Program
from tests.openapi import described, parameters_of

HERE = Path(__file__).parent
MIN_NODE_VERSION = 20


def has_node() -> bool:
    node = shutil.which("node")
    if not node or not shutil.which("npm"):
        return False
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    return int(version.stdout.removeprefix("v").partition(".")[0]) >= MIN_NODE_VERSION


# Installing takes seconds, and requests packages from the registry.
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not has_node(), reason=f"there is no npm, or no Node {MIN_NODE_VERSION}"),
]
# Parameters that a method does not take, with the reason. Key: (method, parameter).
NOT_TAKEN = {
    ("facts.getTagged", "at"): "an ETag is of the present state",
    ("events.read", "Last-Event-ID"): "a stream has it, and the client reads lists",
}


def run(folder: Path, *command: str, stdin: str = "", **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client's folder, built, with the programs of these tests in `test`."""
    folder = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    shutil.copytree(HERE, folder / "test", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    command = (shutil.which("npm") or "npm", "ping")
    if subprocess.run(command, capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("npm's registry does not answer")
    run(folder, "npm", "ci", "--prefer-offline")
    run(folder, "npm", "run", "build")
    return folder


def compile_program(package: Path, program: Path) -> None:
    """Compile a program that uses the client, with the client's strict options."""
    options = ["--strict", "--target", "ES2022", "--module", "NodeNext", "--skipLibCheck"]
    run(program.parent, str(package / "node_modules" / ".bin" / "tsc"), *options, program.name)


def requests(package: Path) -> dict[str, dict[str, Any]]:
    """Call every method with all parameters of its operation. Return the requests."""
    operations = [
        {
            "id": operation["operationId"],
            "method": method.upper(),
            "path": re.sub(r"{\w+}", "x", path),
            "parameters": [name for place, name in parameters_of(operation) if place != "header"],
        }
        for path, described_here in described()["paths"].items()
        for method, operation in described_here.items()
    ]
    printed = run(package, "node", "test/requests.mjs", stdin=json.dumps(operations))
    return dict(json.loads(printed))


def operations_by_id() -> dict[str, dict[str, Any]]:
    return {
        operation["operationId"]: operation
        for path in described()["paths"].values()
        for operation in path.values()
    }


def test_the_types_are_those_that_the_generator_makes(package: Path) -> None:
    before = (package / "src" / "api.ts").read_text()
    run(package, "npm", "run", "generate", "--", str(DOCS / "openapi.yaml"))
    assert (package / "src" / "api.ts").read_text() == before, "run: make typescript"


def test_every_operation_has_a_method_that_sends_every_parameter(package: Path) -> None:
    operations, found = operations_by_id(), requests(package)
    assert {operation.get("id") for operation in found.values()} == operations.keys()
    for name, request in found.items():
        sent = {
            *(("query", name) for name in request["query"]),
            *(("body", name) for name in request["body"]),
            *(
                ("header", header)
                for header in ("Idempotency-Key", "If-Match")
                if header in request["headers"]
            ),
        }
        expected = {
            place
            for place in parameters_of(operations[request["id"]])
            if (name, place[1]) not in NOT_TAKEN
        }
        assert (name, sent) == (name, expected)


def test_programs_compile_only_with_documented_fields(package: Path) -> None:
    compile_program(package, package / "test" / "usage.ts")


@pytest.mark.parametrize("name", ["sending", "streams"])
def test_by_itself(package: Path, name: str) -> None:
    run(package, "node", "--test", f"test/{name}.test.mjs", KONSTRUCT_URL="", KONSTRUCT_API_KEY="")


@pytest.mark.django_db(transaction=True)
def test_against_the_server(
    package: Path, url: str, program_a: Program, program_b: Program
) -> None:
    keys = {
        "KONSTRUCT_API_KEY": program_a.key,
        "KONSTRUCT_BOUND_KEY": bound_key(program_a, "carl"),
        "KONSTRUCT_OTHER_KEY": program_b.key,
    }
    run(package, "node", "--test", "test/live.test.mjs", KONSTRUCT_URL=url, **keys)


@pytest.mark.django_db(transaction=True)
def test_programs_of_the_documentation_print_the_documented_output(
    package: Path, url: str, tenant_a: Tenant, tmp_path: Path
) -> None:
    """They use the packed file, which npm installs in an empty folder."""
    packed = run(package, "npm", "pack").split()[-1]
    run(tmp_path, "npm", "install", "--offline", str(package / packed))
    create_agent(tenant_id=tenant_a.id, name="Ada", system_prompt="You are Ada.")
    _, key = issue_key(tenant_id=tenant_a.id, name="page")
    programs = [
        block for block in blocks(DOCS / "clients" / "typescript.md") if block.language == "ts"
    ]
    assert programs
    for number, program in enumerate(programs):
        (tmp_path / f"page{number}.mts").write_text(program.text)
        compile_program(package, tmp_path / f"page{number}.mts")
        environment = {"KONSTRUCT_URL": url, "KONSTRUCT_API_KEY": str(key)}
        printed = run(tmp_path, "node", f"page{number}.mjs", **environment)
        expected = re.findall(r"// → (.+)", program.text)
        assert expected
        pattern = "\n".join(re.escape(line).replace("…", ".*?") for line in expected)
        assert re.fullmatch(pattern, printed.strip(), re.DOTALL), printed
