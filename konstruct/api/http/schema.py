"""Common parts of all operations in the OpenAPI description."""

import http.client
import json
import re
from pathlib import Path
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_doc
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from konstruct.api.http import bodies, operations, problems


class FieldErrorSerializer(serializers.Serializer):
    """An error in one field, header or query parameter."""

    field = serializers.CharField(help_text="The name of the field; `body` for the whole body.")
    detail = serializers.CharField(help_text="The error, and the valid values.")
    value = serializers.JSONField(required=False, help_text="The sent value, if it is short.")


class ProblemSerializer(serializers.Serializer):
    """A problem document (RFC 9457)."""

    type = serializers.ChoiceField(
        choices=problems.PROBLEM_TYPES, help_text="The kind of problem: stable, for programs."
    )
    title = serializers.CharField(help_text="The HTTP status in words.")
    status = serializers.IntegerField(help_text="The HTTP status.")
    detail = serializers.CharField(help_text="Explanation for people.")
    instance = serializers.CharField(help_text="The path of the request.")
    request_id = serializers.CharField(help_text="Id of the request in the server's log.")
    errors = FieldErrorSerializer(  # type: ignore[assignment]  # a field of that name, not the property
        many=True, required=False
    )


# Statuses of errors of every operation, and those that an operation declares.
_COMMON, _DECLARABLE = {400, 401, 403, 405, 406, 414, 429, 500, 503}, {402, 404, 409, 412, 422}
# Descriptions that say more than the detail of a problem without its own.
_DESCRIPTIONS = {
    400: "The body cannot be read, or a field is invalid: `errors` names it.",
    402: "A quota that is never reset is used up: see `quota`, `limit` and `used`. A key that is "
    "bound sees `message_for_people` alone.",
    403: "The key lacks the scope, or is bound to another agent or user; or a session may not do "
    "this, or its CSRF token is missing.",
    409: "The request conflicts with the current state, such as a fact with the same text.",
    422: "The request is valid but cannot be processed: the agent is unknown, or the "
    "Idempotency-Key belongs to another request.",
    429: "Too many requests of this key or tenant, or a monthly quota is used up: see `type` and "
    "`Retry-After`.",
}
_HEADERS = {
    "X-Request-ID": "Id of the request in the server's log; yours if you sent one.",
    "RateLimit-Limit": "Requests that are possible at once.",
    "RateLimit-Remaining": "Requests left.",
    "RateLimit-Reset": "Seconds until all requests are available again.",
}


# The operations of a first program, and the groups of tags.
START_HERE = "Start here"
FIRST_OPERATIONS = {
    *("create_agent", "send_message", "get_message", "import_messages", "search_memories"),
    *("create_fact", "search_facts", "request_erasure"),
}

# Bodies by operationId, and by "request" or the status of the response.
_EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text())


class ApiSchema(AutoSchema):
    """drf-spectacular's schema of a view, from the operations that the view declares."""

    view: Any

    @property
    def declared(self) -> operations.Operation:
        """The operation that is described."""
        operation: operations.Operation = self.view.operation
        return operation

    def get_operation(self, path: str, *arguments: Any) -> dict[str, Any] | None:
        """Return the description with the errors, headers and examples of every operation."""
        operation: dict[str, Any] | None = super().get_operation(path, *arguments)
        if operation is None:
            return None
        self.resolve_serializer(ProblemSerializer, "response")
        fields = {parameter["name"] for parameter in operation.get("parameters", [])}
        errors = _COMMON | (_DECLARABLE & {*self.declared.errors})
        if "{" in path or "cursor" in fields:
            errors |= {404}
        if "If-Match" in fields:
            errors |= {412}
        if self.declared.body is not None:
            operation["requestBody"]["required"] = True
            errors |= {413, 415}
            fields |= self.declared.body().fields.keys()
        if "agent" in fields:
            errors |= {422}
        responses = operation["responses"]
        for status, response in responses.items():
            response["description"] = response["description"] or http.client.responses[int(status)]
            response["headers"] = _header_references() | response.get("headers", {})
        for status in errors:
            responses[str(status)] = {"$ref": f"#/components/responses/{_component(status)}"}
        operation["responses"] = dict(sorted(responses.items()))
        for place, examples in _EXAMPLES.get(operation["operationId"], {}).items():
            described = operation["requestBody"] if place == "request" else responses[place]
            described["content"]["application/json"]["examples"] = {
                name: {"value": value} for name, value in examples.items()
            }
        return operation

    def get_operation_id(self) -> str:
        """Return the id that the operation declares."""
        return self.declared.id

    def get_tags(self) -> list[str]:
        """Return the group of the operation."""
        if self.declared.id in FIRST_OPERATIONS:
            return [START_HERE]
        first = str(self.path).removeprefix("/api/v1/").partition("/")[0]
        return [self.view.tag or first.replace("-", " ")]

    def get_summary(self) -> str:
        """Return the first line of the method's docstring."""
        return self._paragraphs()[0].removesuffix(".")

    def get_description(self) -> str:  # type: ignore[override]  # as drf-spectacular declares it
        """Return the other paragraphs of the method's docstring, each on one line."""
        return "\n\n".join(self._paragraphs()[1:])

    def _paragraphs(self) -> list[str]:
        """Return the paragraphs of the method, or of the view for the list of a mixin."""
        method = getattr(type(self.view), self.view.action)
        if method.__module__.startswith("rest_framework."):
            verb = self.declared.id.partition("_")[0].capitalize()
            noun = self.declared.subject
            article = "" if verb == "List" else "an " if noun[0] in "aeiou" else "a "
            more = _paragraphs(type(self.view))[1:] if verb == "List" else []
            return [f"{verb} {article}{noun}", *more]
        return _paragraphs(method)

    def get_override_parameters(self) -> list[Any]:
        """Return the query parameters and the headers."""
        declared = self.declared
        parameters: list[Any] = [*declared.headers]
        if declared.query not in (None, bodies.NoParametersSerializer):
            parameters.append(declared.query)
        return parameters

    def get_request_serializer(self) -> Any:
        """Return the serializer of the body."""
        return self.declared.body

    def get_response_serializers(self) -> Any:
        """Return the responses by status."""
        return self.declared.returns

    def get_paginated_name(self, serializer_name: str) -> str:
        """Return the name of a page's component."""
        return f"{serializer_name}Page"

    def _postprocess_serializer_schema(self, schema: Any, serializer: Any, direction: Any) -> Any:
        """Forbid unknown fields of strict serializers."""
        schema = super()._postprocess_serializer_schema(schema, serializer, direction)
        if isinstance(serializer, bodies.StrictSerializer) and direction == "request":
            schema["additionalProperties"] = False
            # Type generators treat a field with a `default` as always present.
            for field in schema["properties"].values():
                if "default" in field:
                    default = json.dumps(field.pop("default"))
                    text = field.get("description", "")
                    if "Default:" not in text:
                        field["description"] = f"{text} Default: {default}.".strip()
            if serializer.min_fields:
                schema["minProperties"] = serializer.min_fields
        return schema


def _paragraphs(documented: Any) -> list[str]:
    return [" ".join(text.split("\n")) for text in get_doc(documented).split("\n\n")]


def describe_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the components of errors and headers, and groups of tags (a hook of drf-spectacular)."""
    _correct_alternatives(result)
    paths = result["paths"].values()
    used = {tag for path in paths for operation in path.values() for tag in operation["tags"]}
    tags = sorted(used - {START_HERE})
    result["tags"] = [{"name": name} for name in (START_HERE, *tags)]
    result["x-tagGroups"] = [
        {"name": START_HERE, "tags": [START_HERE]},
        {"name": "Administration", "tags": tags},
    ]
    components = result["components"]
    components["headers"] = {
        name: _header_object(description) for name, description in _HEADERS.items()
    }
    components["responses"] = {
        _component(status): _error_response(status)
        for status in sorted(_COMMON | _DECLARABLE | {413, 415})
    }
    return result


def _correct_alternatives(schema: Any) -> None:
    """Remove each `oneOf` with a value that matches both, so that the value matches neither.

    That is null in `[{}, null]`, and the empty text beside a pattern that allows it.
    """
    if isinstance(schema, dict):
        match schema.get("oneOf"):
            case [value, {"type": "null"}] if not value:
                del schema["oneOf"]
            case [{"pattern": pattern} as text, {"maxLength": 0}] if re.search(pattern, ""):
                del schema["oneOf"]
                schema.update(text)
        for inner in schema.values():
            _correct_alternatives(inner)
    elif isinstance(schema, list):
        for inner in schema:
            _correct_alternatives(inner)


def header(name: str, description: str, **options: Any) -> OpenApiParameter:
    """Return a header of the request, or of the responses with `response=True`."""
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description, **options)


def id_in_path(name: str, description: str) -> OpenApiParameter:
    """Return an id in an address that may have slashes."""
    text = f"{description}, percent-encoded; slashes need no encoding."
    return OpenApiParameter(name, str, OpenApiParameter.PATH, description=text)


IDEMPOTENCY_KEY = header(
    operations.IDEMPOTENCY_HEADER,
    "A text that you choose, such as a UUID. The same request with the same key creates nothing "
    "again and returns the first result. Keys are separate for each caller: another API key, or "
    "the same key bound to another user, may use the same text.",
    pattern=operations.IDEMPOTENCY_KEY.pattern,
)
IF_MATCH = header(
    "If-Match",
    "The ETag that you received. The change is refused if the resource has changed since then.",
)
LOCATION = header("Location", "The URL of the row.", response=True)
ETAG = header("ETag", "The ETag of the row, for If-Match and If-None-Match.", response=True)


def _component(status: int) -> str:
    return "Invalid" if status == 400 else problems.DEFAULTS[status][0].title().replace("-", "")


def _error_response(status: int) -> dict[str, Any]:
    headers = _header_references()
    if status in (429, 503):
        headers["Retry-After"] = _header_object("Seconds to wait before retrying.")
    if status == 401:
        headers["WWW-Authenticate"] = _header_object("Requires a Bearer key.")
    if status == 405:
        headers["Allow"] = _header_object("The supported methods.")
    return {
        "description": _DESCRIPTIONS.get(status, problems.DEFAULTS[status][1]),
        "headers": headers,
        "content": {
            problems.MEDIA_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "example": problems.Problem.of_status(status).as_json(
                    path="/api/v1/messages/", request_id="2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                ),
            }
        },
    }


def _header_object(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def _header_references() -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS}
