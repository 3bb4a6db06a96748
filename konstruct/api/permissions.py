"""What a caller may do: the scopes of a key, and the agent or user that it is bound to."""

from typing import Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from konstruct.api.caller import caller_of
from konstruct.api.models import KeyScope

# Unless a view says otherwise in `scopes`, such as for a search, which is a POST and only reads.
SCOPE_OF_METHOD = {
    "POST": KeyScope.WRITE,
    "PUT": KeyScope.WRITE,
    "PATCH": KeyScope.WRITE,
    "DELETE": KeyScope.ERASE,
}


def scope_needed(view: Any, method: str) -> str:
    """Return the scope that a request with this method needs of a view."""
    scopes: dict[str, str] = getattr(view, "scopes", {})
    return scopes.get(method, SCOPE_OF_METHOD.get(method, KeyScope.READ))


class KeyAllows(BasePermission):
    """Refuses what the key is not for.

    A key that is bound to one agent or user is refused by every view that does not say, by
    `keeps_to_binding`, that it keeps to the binding: one who forgets it has shown nothing.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Tell whether the request may go on; a refusal says what would be needed."""
        method = request.method or "GET"
        if not hasattr(view, method.lower()):
            return True  # it is answered with a 405
        if not request.user:
            return False
        caller = caller_of(request)
        needed = scope_needed(view, method)
        if needed not in caller.scopes:
            has = ", ".join(sorted(caller.scopes)) or "none"
            raise PermissionDenied(f"This needs the scope {needed}; yours: {has}.")
        keeps: bool | tuple[str, ...] = getattr(view, "keeps_to_binding", False)
        if caller.is_bound and not (keeps if isinstance(keeps, bool) else method in keeps):
            raise PermissionDenied(
                "This concerns the whole tenant; yours is a key of one agent or one user."
            )
        return True
