"""The OpenAPI description: current, complete, served from local files."""

import re
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver

COMMITTED = Path(settings.BASE_DIR) / "docs" / "openapi.yaml"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The description of the code as it is; warnings of the generator are errors."""
    file = tmp_path_factory.mktemp("schema") / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True)
    return file.read_text()


def test_the_committed_description_is_current(schema: str) -> None:
    assert schema == COMMITTED.read_text(), (
        "run: manage.py spectacular --file docs/openapi.yaml,"
        " then python -m tests.clients.python.documents"
    )


def test_it_is_openapi_3_1(schema: str) -> None:
    assert schema.startswith("openapi: 3.1.0\n")


def paths_of_the_api() -> set[str]:
    """Return the addresses of the URL configuration as a description writes them."""
    patterns = get_resolver("konstruct.urls.api").url_patterns
    addresses = {
        "/api/" + str(outer.pattern) + str(inner.pattern)
        for outer in patterns
        for inner in outer.url_patterns
    }
    return {
        re.sub(r"<\w+:(\w+)>", r"{\1}", address)
        for address in addresses
        if address not in ("/api/schema/", "/api/docs/")
    }


def test_every_address_of_the_api_is_described(schema: str) -> None:
    described = set(re.findall(r"^  (/\S+):$", schema, re.MULTILINE))
    assert described == paths_of_the_api()


def test_every_operation_tells_of_its_errors_and_has_an_example(schema: str) -> None:
    described = yaml.load(schema, yaml.CSafeLoader)
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            told = set(operation["responses"])
            assert {"400", "401", "403", "405", "406", "429", "500", "503"} <= told, (path, method)
            assert not operation.get("requestBody") or {"413", "415"} <= told, (path, method)
            assert "{" not in path or "404" in told, (path, method)
            for status, response in operation["responses"].items():
                assert response.get("description", "in words") != "", (path, method, status)
    for response in described["components"]["responses"].values():
        assert "example" in response["content"]["application/problem+json"]


def test_generated_types_ask_for_what_is_required_and_no_more(schema: str) -> None:
    """Generators of types take a field with a default for one that is always there."""
    described = yaml.load(schema, yaml.CSafeLoader)
    assert described["servers"]
    schemas = described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for operation in operations.values():
            body = operation.get("requestBody", {}).get("content", {})
            for content in body.values():
                name = content["schema"]["$ref"].rpartition("/")[2]
                fields = schemas[name].get("properties", {})
                with_default = [field for field, of in fields.items() if "default" in of]
                assert (path, with_default) == (path, [])
    line = schemas["Import"]["properties"]["messages"]["items"]
    assert line["type"] == "object"
    assert line["properties"]["role"]["enum"] == ["user", "assistant"]


@pytest.mark.parametrize("host", ["localhost", "tenant-a.localhost"])
def test_the_description_and_its_page_are_served_on_every_host(db: None, host: str) -> None:
    client = Client(headers={"Host": host})
    assert client.get("/api/schema/").status_code == 200
    page = client.get("/api/docs/")
    assert page.status_code == 200
    sources = re.findall(rb'(?:src|href)="([^"]+)"', page.content)
    # The policy for content lets no script stand in the page itself.
    settings_of_page = b"/api/docs/?script="
    assert settings_of_page in sources
    assert all(source.startswith((b"/static/", settings_of_page)) for source in sources)
    assert client.get("/api/docs/?script=").headers["Content-Type"] == "application/javascript"
    script = next(source for source in sources if source.endswith(b"bundle.js"))
    response = client.get(script.decode())
    assert (response.status_code, len(b"".join(response.streaming_content)) > 100_000) == (
        200,
        True,
    )
    response.close()
