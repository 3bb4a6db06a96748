"""Who a request comes from: a program with an API key, or a tenant's admin with a session."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed, Throttled
from rest_framework.request import Request

from konstruct.api.auth.admission import Admission
from konstruct.api.auth.key_text import bearer_key
from konstruct.api.auth.keys import Program
from konstruct.api.models import ApiKey
from tenants.context import current_tenant_id
from tenants.http.client_address import current_address
from tenants.limits.login_throttle import strange_request

# One sentence for every reason: who guesses must not learn which part was right.
REFUSED = (
    "The API key is not valid here: it is unknown, revoked, expired, or another tenant's. "
    "Make one with manage.py create_api_key or in the tenant's admin."
)


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer KEY`. The middleware has read the key, and entered its tenant."""

    def authenticate(self, request: Request) -> tuple[Program, ApiKey] | None:
        """Return the program, None without a Bearer header; refuse a key that opens nothing."""
        credentials = bearer_key(request.headers.get("Authorization", ""))
        if credentials is None:
            return None
        admission: Admission | None = getattr(request._request, "admission", None)
        if admission is None or admission.key is None:
            raise _refusal(request)
        return Program(admission.key, admission.agents), admission.key

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge of a 401."""
        return 'Bearer realm="konstruct"'


def _refusal(request: Request) -> APIException:
    """Return the refusal of a key that opens nothing; of too many from one address another one.

    A key that is valid is never refused for what others send from its address.
    """
    limit, is_worth_recording = strange_request(current_address())
    request._request.is_worth_recording = is_worth_recording  # type: ignore[attr-defined]
    if limit is not None and not limit.allowed:
        return Throttled(limit.retry_after)
    return AuthenticationFailed(REFUSED)


class AdminSessionAuthentication(SessionAuthentication):
    """A tenant's admin in a browser, on the tenant's host, with CSRF protection."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        """Return the user if they may use the tenant's admin; operators have no tenant here."""
        if current_tenant_id() is None:
            return None
        user = getattr(request._request, "user", None)
        if user is None or not (user.is_active and user.is_staff):
            return None
        # If it is refused for want of a CSRF token, REST framework takes the user from the request.
        request._request.refused_user = user  # type: ignore[attr-defined]  # for the access log
        self.enforce_csrf(request)
        return user, None


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """How the OpenAPI description shows API keys."""

    target_class = "konstruct.api.auth.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return a bearer scheme."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "`Authorization: Bearer ks_…`, from `manage.py create_api_key`. On a "
            "host that serves all tenants the key alone decides the tenant.",
        }


class AdminSessionScheme(OpenApiAuthenticationExtension):
    """How the OpenAPI description shows sessions of the admin."""

    target_class = "konstruct.api.auth.authentication.AdminSessionAuthentication"
    name = "adminSession"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return a cookie scheme."""
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "The login of the tenant's admin, on the tenant's host; writes need the "
            "X-CSRFToken header.",
        }
