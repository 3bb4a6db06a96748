"""The REST API: sizes, rates, scripts of other pages, and its description."""

from konstruct import __version__
from konstruct.settings.environment import names, number

MAX_MESSAGE_CHARACTERS = 32_768
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
# Larger bodies are in temporary files.
FILE_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024
# Token bucket per tenant and channel: bucket size, and tokens that come back per second. That of an
# API key is half as large, so that one program leaves tokens for the others.
RATE_LIMIT_BURST = number("RATE_LIMIT_BURST", 400)
RATE_LIMIT_PER_SECOND = number("RATE_LIMIT_PER_SECOND", 100)
# Other origins with scripts that may use the API, such as https://app.example.com: none.
CORS_ALLOWED_ORIGINS = names("CORS_ALLOWED_ORIGINS", "")
CORS_URLS_REGEX = r"^/(api/|mcp|\.well-known/)"
CORS_ALLOW_HEADERS = [
    "accept", "authorization", "content-type", "idempotency-key", "if-match", "if-none-match",
    "mcp-method", "mcp-name", "mcp-protocol-version", "x-request-id",
]  # fmt: skip
CORS_EXPOSE_HEADERS = [
    "etag", "location", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after",
    "x-request-id",
]  # fmt: skip

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "konstruct.api.auth.authentication.ApiKeyAuthentication",
        "konstruct.api.auth.authentication.AdminSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["konstruct.api.auth.permissions.CallerPermission"],
    "DEFAULT_RENDERER_CLASSES": ["konstruct.api.http.bodies.FastJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["konstruct.api.http.bodies.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "konstruct.api.http.schema.ApiSchema",
    "DEFAULT_PAGINATION_CLASS": "konstruct.api.http.lists.NewestFirst",
    "EXCEPTION_HANDLER": "konstruct.api.http.exceptions.problem_handler",
    "UNAUTHENTICATED_USER": None,
    # ?format= is an unknown parameter like any other.
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Konstruct",
    "DESCRIPTION": "Memory for AI agents: send a message, and get a reply that uses earlier "
    "conversations.",
    "VERSION": __version__,
    "OAS_VERSION": "3.1.0",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "konstruct.api.http.schema.describe_errors",
    ],
    "ENUM_NAME_OVERRIDES": {
        "RoleEnum": "memory.models.Role",
        "FactKindEnum": "memory.models.facts.FactKind",
        "FactStateEnum": "memory.models.facts.FactState",
        "RunStateEnum": "konstruct.orchestrator.models.RunState",
        "PrecisionEnum": "memory.models.facts.Precision",
    },
    "SERVERS": [{"url": "/", "description": "Any host of the deployment."}],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
