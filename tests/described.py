"""Descriptions of other products' interfaces: handwritten OpenAPI documents."""

from functools import cache
from typing import Any

import yaml
from django.conf import settings
from jsonschema import Draft202012Validator


@cache
def described(name: str) -> Any:
    """Return docs/NAME.yaml."""
    text = (settings.BASE_DIR / "docs" / f"{name}.yaml").read_text()
    return yaml.load(text, yaml.CSafeLoader)


def errors_in(description: str, document: Any, schema: str | dict[str, Any]) -> list[str]:
    """Return the errors of a document by a named or given schema."""
    place = {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema
    full_schema = {**described(description), **place}
    return [error.message for error in Draft202012Validator(full_schema).iter_errors(document)]


def schema_of_answer(description: str, path: str, method: str, status: int) -> Any:
    """Return the schema of a JSON answer of an operation, or of `default` for another status."""
    responses = described(description)["paths"][path][method.lower()]["responses"]
    found = responses.get(str(status), responses["default"])
    if "$ref" in found:
        found = described(description)["components"]["responses"][found["$ref"].split("/")[-1]]
    return found["content"]["application/json"]["schema"]
