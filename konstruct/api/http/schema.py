"""Common parts of all operations in the OpenAPI description."""

import http.client
import json
from pathlib import Path
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from konstruct.api.http.bodies import StrictSerializer
from konstruct.api.http.problems import MEDIA_TYPE, Problem


class FieldErrorSerializer(serializers.Serializer):
    """An error in one field, header or query parameter."""

    field = serializers.CharField(help_text="The name of the field; `body` for the whole body.")
    detail = serializers.CharField(help_text="The error, and the valid values.")
    value = serializers.JSONField(
        required=False, help_text="The value that was sent, if it is short."
    )


class ProblemSerializer(serializers.Serializer):
    """A problem document (RFC 9457)."""

    type = serializers.CharField(help_text="The kind of problem: stable, for programs.")
    title = serializers.CharField(help_text="The HTTP status in words.")
    status = serializers.IntegerField(help_text="The HTTP status.")
    detail = serializers.CharField(help_text="Explanation for people.")
    instance = serializers.CharField(help_text="The path of the request.")
    request_id = serializers.CharField(help_text="Id of the request in the server's log.")
    errors = FieldErrorSerializer(  # type: ignore[assignment]  # a field of that name, not the property
        many=True, required=False
    )


# Errors of every operation: the name of the component, and the description.
_COMMON_ERRORS = {
    400: ("Invalid", "The body cannot be read, or a field is invalid: `errors` names it."),
    401: ("Unauthenticated", "No valid API key for this tenant."),
    403: (
        "Forbidden",
        "The key lacks the scope, or is bound to another agent or user; or a session may not do "
        "this, or its CSRF token is missing.",
    ),
    405: (
        "MethodNotAllowed",
        "The URL does not support the method; `Allow` lists the supported ones.",
    ),
    406: ("NotAcceptable", "`Accept` asks for another type than application/json."),
    414: ("AddressTooLong", "The URL is longer than 8190 bytes."),
    429: (
        "TooManyRequests",
        "Too many requests of this key or tenant, or a monthly quota is used up: see `type` and "
        "`Retry-After`.",
    ),
    500: ("InternalError", "The server failed. Its log has the error under the request's id."),
    503: ("Unavailable", "A service that the API needs is not available."),
}
_PATH_ERRORS = {
    404: ("NotFound", "The resource does not exist for this key, or the cursor is invalid.")
}
_BODY_ERRORS = {
    413: ("BodyTooLarge", "The body is too large."),
    415: ("UnsupportedMediaType", "The body is not declared as application/json."),
}
# Errors that an operation declares, by `problems`.
_OPTIONAL_ERRORS = {
    402: (
        "QuotaExceeded",
        "A quota that is never reset is used up: see `quota`, `limit` and `used`. A key that is "
        "bound sees `message_for_people` alone.",
    ),
    409: (
        "Conflict",
        "The request conflicts with the current state, such as a fact with the same text.",
    ),
    412: ("ChangedSince", "The resource has changed: its ETag differs from `If-Match`."),
    422: (
        "Unprocessable",
        "The request is valid but cannot be processed: the agent is unknown, or the "
        "Idempotency-Key belongs to another request.",
    ),
}
# An operation without a path parameter may declare 404, for an id in its body.
_DECLARABLE_ERRORS = _OPTIONAL_ERRORS | _PATH_ERRORS
_HEADERS = {
    "X-Request-ID": "Id of the request in the server's log; yours if you sent one.",
    "RateLimit-Limit": "Requests that are possible at once.",
    "RateLimit-Remaining": "Requests left.",
    "RateLimit-Reset": "Seconds until all requests are available again.",
}


# Bodies by operationId, and by "request" or the status of the response.
_EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text())


class ApiSchema(AutoSchema):
    """drf-spectacular's schema of a view, with the view's tag and strict bodies."""

    def get_tags(self) -> list[str]:
        """Return the group that the view declares."""
        return [getattr(self.view, "tag", "")]

    def get_summary(self) -> str:
        """Return the first line of the method's docstring."""
        return self._paragraphs()[0].removesuffix(".")

    def get_description(self) -> str:  # type: ignore[override]  # as drf-spectacular declares it
        """Return the other paragraphs of the method's docstring, each on one line."""
        return "\n\n".join(self._paragraphs()[1:])

    def _paragraphs(self) -> list[str]:
        paragraphs = str(super().get_description()).split("\n\n")
        return [" ".join(paragraph.split("\n")) for paragraph in paragraphs]

    def _postprocess_serializer_schema(self, schema: Any, serializer: Any, direction: Any) -> Any:
        """Forbid unknown fields of strict serializers."""
        schema = super()._postprocess_serializer_schema(schema, serializer, direction)
        if isinstance(serializer, StrictSerializer) and direction == "request":
            schema["additionalProperties"] = False
            _describe_defaults(schema["properties"])
            if serializer.min_fields:
                schema["minProperties"] = serializer.min_fields
        return schema


def _describe_defaults(properties: dict[str, Any]) -> None:
    """Move defaults into the descriptions.

    Type generators treat a field with a `default` as always present.
    """
    for field in properties.values():
        if "default" in field:
            default = json.dumps(field.pop("default"))
            text = field.get("description", "")
            if "Default:" not in text:
                field["description"] = f"{text} Default: {default}.".strip()


def describe_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add errors, headers and examples to every operation (a hook of drf-spectacular).

    Errors and headers are components, so that the description stays readable.
    """
    _allow_null(result)
    components = result["components"]
    components["headers"] = {
        name: _header_object(description) for name, description in _HEADERS.items()
    }
    components["responses"] = {
        name: _error_response(status, description)
        for common in (_COMMON_ERRORS, _PATH_ERRORS, _BODY_ERRORS, _OPTIONAL_ERRORS)
        for status, (name, description) in common.items()
    }
    for path, operations in result["paths"].items():
        for operation in operations.values():
            _describe_responses(operation, path)
            _add_examples(operation)
    return result


def _describe_responses(operation: dict[str, Any], path: str) -> None:
    responses = operation["responses"]
    parameters = {parameter["name"] for parameter in operation.get("parameters", [])}
    errors = _COMMON_ERRORS | (_PATH_ERRORS if "{" in path or "cursor" in parameters else {})
    if body := operation.get("requestBody"):
        body["required"] = True
        errors |= _BODY_ERRORS
    errors |= {
        status: error for status, error in _DECLARABLE_ERRORS.items() if str(status) in responses
    }
    for status, response in responses.items():
        response["description"] = response["description"] or http.client.responses[int(status)]
        response["headers"] = _header_references() | response.get("headers", {})
    for status, (name, _) in errors.items():
        responses[str(status)] = {"$ref": f"#/components/responses/{name}"}
    operation["responses"] = dict(sorted(responses.items()))


def _add_examples(operation: dict[str, Any]) -> None:
    for place, examples in _EXAMPLES.get(operation["operationId"], {}).items():
        described = (
            operation["requestBody"] if place == "request" else operation["responses"][place]
        )
        described["content"]["application/json"]["examples"] = {
            name: {"value": value} for name, value in examples.items()
        }


def _allow_null(schema: Any) -> None:
    """Remove `oneOf: [{}, null]`, which null does not match because it matches both."""
    if isinstance(schema, dict):
        if schema.get("oneOf") == [{}, {"type": "null"}]:
            del schema["oneOf"]
        for inner in schema.values():
            _allow_null(inner)
    elif isinstance(schema, list):
        for inner in schema:
            _allow_null(inner)


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Return the responses of errors that an operation declares, for extend_schema."""
    return {
        (status, MEDIA_TYPE): OpenApiResponse(
            ProblemSerializer, description=_DECLARABLE_ERRORS[status][1]
        )
        for status in statuses
        if status in _DECLARABLE_ERRORS  # the others are on every operation
    }


def response_header(name: str, description: str, *statuses: int | str) -> OpenApiParameter:
    """Return a header of the responses with these statuses, for extend_schema."""
    return OpenApiParameter(
        name, str, OpenApiParameter.HEADER, description=description, response=[*statuses]
    )


def header(name: str, description: str, **options: Any) -> OpenApiParameter:
    """Return a header of the request, for extend_schema."""
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description, **options)


def _error_response(status: int, description: str) -> dict[str, Any]:
    headers = _header_references()
    if status in (429, 503):
        headers["Retry-After"] = _header_object("Seconds to wait before retrying.")
    if status == 401:
        headers["WWW-Authenticate"] = _header_object("Requires a Bearer key.")
    if status == 405:
        headers["Allow"] = _header_object("The supported methods.")
    return {
        "description": description,
        "headers": headers,
        "content": {
            MEDIA_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "example": Problem.of_status(status).as_json(
                    path="/api/v1/messages/", request_id="2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                ),
            }
        },
    }


def _header_object(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def _header_references() -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS}
