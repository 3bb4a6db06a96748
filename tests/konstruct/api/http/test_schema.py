"""The OpenAPI description: current, complete, served from local files."""

import gzip
import re
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver
from jsonschema import Draft202012Validator

from konstruct.api.http.schema import _EXAMPLES
from konstruct.api.models import KeyScope
from tests.konstruct.api.routes import V1, patterns

COMMITTED = Path(settings.BASE_DIR) / "docs" / "openapi.yaml"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the description of the current code. Warnings of the generator are errors."""
    file = tmp_path_factory.mktemp("schema") / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True)
    return file.read_text()


@pytest.mark.slow
def test_the_committed_description_is_current(schema: str) -> None:
    assert schema == COMMITTED.read_text(), (
        "run: manage.py spectacular --file docs/openapi.yaml,"
        " then python -m tests.clients.python.documents"
    )


def paths_of_the_api() -> set[str]:
    """Return the paths of the URL configuration in the format of the description."""
    addresses = {f"/api/{path}" for path, _ in patterns(get_resolver("konstruct.urls.api"))}
    return {
        re.sub(r"<\w+:(\w+)>", r"{\1}", address)
        for address in addresses
        if address not in ("/api/schema/", "/api/docs/")
    }


def test_every_address_of_the_api_is_described(schema: str) -> None:
    described = set(re.findall(r"^  (/\S+):$", schema, re.MULTILINE))
    assert described == paths_of_the_api()


def test_every_operation_documents_its_errors_and_has_an_example(schema: str) -> None:
    described = yaml.load(schema, yaml.CSafeLoader)
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            documented = set(operation["responses"])
            assert {"400", "401", "403", "405", "406", "429", "500", "503"} <= documented, (
                path,
                method,
            )
            assert not operation.get("requestBody") or {"413", "415"} <= documented, (path, method)
            assert "{" not in path or "404" in documented, (path, method)
            for status, response in operation["responses"].items():
                assert response.get("description", "in words") != "", (path, method, status)
    for response in described["components"]["responses"].values():
        assert "example" in response["content"]["application/problem+json"]


def test_generated_types_require_exactly_the_required_fields(schema: str) -> None:
    """Generators of types treat a field with a default as always present."""
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


def test_every_example_keeps_to_its_schema(schema: str) -> None:
    described = yaml.load(schema, yaml.CSafeLoader)
    operations = [operation for path in described["paths"].values() for operation in path.values()]
    shown: set[str] = set()
    bodies = {one["operationId"] for one in operations if "requestBody" in one}
    for operation in operations:
        for place in (operation.get("requestBody", {}), *operation["responses"].values()):
            for content in place.get("content", {}).values():
                for example in content.get("examples", {}).values():
                    of_document = {**content["schema"], "components": described["components"]}
                    Draft202012Validator(of_document).validate(example["value"])
                    shown.add(operation["operationId"])
    assert shown == set(_EXAMPLES)
    assert bodies - shown == set()


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/vnd.oai.openapi"),
        ("application/yaml", "application/yaml"),
        ("application/json", "application/json"),
        ("application/vnd.oai.openapi+json", "application/vnd.oai.openapi+json"),
    ],
)
def test_the_description_has_an_etag(db: None, accept: str, media_type: str, encoding: str) -> None:
    client = Client(headers={"Host": "localhost", "Accept": accept, "Accept-Encoding": encoding})
    first = client.get("/api/schema/")
    assert first.headers["Content-Type"] == media_type
    assert {"Accept", "Accept-Encoding"} <= set(first.headers["Vary"].split(", "))
    content = gzip.decompress(first.content) if encoding == "gzip" else first.content
    assert yaml.load(content, yaml.CSafeLoader) == yaml.load(
        COMMITTED.read_text(), yaml.CSafeLoader
    )
    again = client.get("/api/schema/?version=2", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"].removeprefix("W/")


@pytest.mark.parametrize("host", ["localhost", "tenant-a.localhost"])
def test_the_description_and_its_page_are_served_on_every_host(db: None, host: str) -> None:
    client = Client(headers={"Host": host})
    assert client.get("/api/schema/").status_code == 200
    page = client.get("/api/docs/")
    assert page.status_code == 200
    sources = re.findall(rb'(?:src|href)="([^"]+)"', page.content)
    # The content security policy allows no inline script.
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


DOCUMENT = Path(settings.BASE_DIR) / "docs" / "api.md"


def test_every_address_is_on_the_page() -> None:
    page = DOCUMENT.read_text()
    in_words = {"context/compile", "sessions"}
    for path in paths_of_the_api():
        stem = re.sub(r"/?\{\w+\}.*", "", path.removeprefix(V1)).strip("/")
        assert f"$URL/{stem}/" in page or stem in in_words, path


@pytest.mark.parametrize("scope", KeyScope.values)
def test_every_scope_is_on_the_page(scope: str) -> None:
    assert f"`--scope {scope}`" in DOCUMENT.read_text()
