"""The committed OpenAPI description for tests."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def described() -> dict[str, Any]:
    """Return docs/openapi.yaml. It is read once in each process."""
    text = (Path(__file__).parents[1] / "docs" / "openapi.yaml").read_text()
    return yaml.load(text, yaml.CSafeLoader)


def operation_of(path: str, method: str) -> dict[str, Any]:
    """Return the description of the operation that answers a request."""
    paths = described()["paths"]
    for template in sorted(paths, key=lambda path: path.count("{")):
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path.partition("?")[0]) and method.lower() in paths[template]:
            found: dict[str, Any] = paths[template][method.lower()]
            return found
    raise AssertionError(f"{method} {path} is not described")


def body_of(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {"properties": {}})
    if "$ref" in schema:
        schema = described()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    properties = schema["properties"]
    assert isinstance(properties, Mapping)
    return properties


def parameters_of(operation: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the parameters of an operation by place and name, with the schema of each."""
    found = {
        (parameter["in"], parameter["name"]): parameter["schema"]
        for parameter in operation.get("parameters", [])
        if parameter["in"] != "path"
    }
    return found | {("body", name): schema for name, schema in body_of(operation).items()}
