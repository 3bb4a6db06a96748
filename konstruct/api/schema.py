"""What the OpenAPI description says of every endpoint alike: errors, headers."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from konstruct.api.problems import MEDIA_TYPE


class FieldErrorSerializer(serializers.Serializer):
    """What is wrong with one field, header or query parameter."""

    field = serializers.CharField(help_text="Its name; `body` for the body as a whole.")
    detail = serializers.CharField(help_text="What is wrong with it, and what would be right.")
    value = serializers.JSONField(required=False, help_text="What was sent, if it is short.")


class ProblemSerializer(serializers.Serializer):
    """A problem document (RFC 9457)."""

    type = serializers.CharField(help_text="The kind of problem: stable, for programs.")
    title = serializers.CharField(help_text="The HTTP status in words.")
    status = serializers.IntegerField(help_text="The HTTP status.")
    detail = serializers.CharField(help_text="What went wrong, for people.")
    instance = serializers.CharField(help_text="The path that was asked for.")
    request_id = serializers.CharField(help_text="Names the request in our logs.")
    errors = FieldErrorSerializer(  # type: ignore[assignment]  # a field of that name, not the property
        many=True, required=False
    )


_WORDS = {
    400: "The body cannot be read, or a field is invalid: `errors` names it.",
    401: "No valid API key for this tenant.",
    403: "The session may not do this, or its CSRF token is missing.",
    404: "There is no such thing in this tenant.",
    413: "The body is too large.",
    415: "The body is not declared as application/json.",
    422: "Understood, but it cannot be done: the agent is unknown, or the Idempotency-Key "
    "stands for a message that says something else.",
    429: "Too many requests of this tenant; Retry-After says when to go on.",
    503: "The database cannot be reached right now.",
}


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Return the responses of these errors, for extend_schema."""
    return {
        (status, MEDIA_TYPE): OpenApiResponse(ProblemSerializer, description=_WORDS[status])
        for status in statuses
    }


def response_header(name: str, description: str, *statuses: int | str) -> OpenApiParameter:
    """Return a header of the responses with these statuses, for extend_schema."""
    return OpenApiParameter(
        name, str, OpenApiParameter.HEADER, description=description, response=[*statuses]
    )


def header(name: str, description: str, **options: Any) -> OpenApiParameter:
    """Return a header of the request, for extend_schema."""
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description, **options)
