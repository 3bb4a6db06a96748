"""What a caller may do: the scopes and the binding of a key, the permissions of a person."""

from typing import Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from konstruct.api.auth.caller import Caller, caller_of
from konstruct.api.auth.keys import Program
from konstruct.api.models import KeyScope

# Unless a view says otherwise in `scopes`, such as for a search, which is a POST and only reads.
SCOPE_OF_METHOD = {
    "POST": KeyScope.WRITE,
    "PUT": KeyScope.WRITE,
    "PATCH": KeyScope.WRITE,
    "DELETE": KeyScope.ERASE,
}


def scopes_accepted(view: Any, method: str) -> tuple[str, ...]:
    """Return the scopes of which a key needs one for a request with this method."""
    scopes: dict[str, str | tuple[str, ...]] = getattr(view, "scopes", {})
    accepted = scopes.get(method, SCOPE_OF_METHOD.get(method, KeyScope.READ))
    return accepted if isinstance(accepted, tuple) else (accepted,)


class CallerMay(BasePermission):
    """Refuses what a key is not for, and what a person may not do in the admin.

    What a view does not declare is refused: a method without `permissions` to every person, and a
    view without `keeps_to_binding` to every key that is bound to one agent or user.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Tell whether the request may go on; a refusal says what would be needed."""
        method = request.method or "GET"
        if not hasattr(view, method.lower()):
            return True  # it is answered with a 405
        if not request.user:
            return False
        if method == "HEAD":
            method = "GET"
        if isinstance(request.user, Program):
            _require_scope(request, view, method)
        else:
            _require_permissions(request.user, view, method)
        return True


def _require_scope(request: Request, view: Any, method: str) -> None:
    caller = caller_of(request)
    require_scope(caller, *scopes_accepted(view, method))
    keeps: bool | tuple[str, ...] = getattr(view, "keeps_to_binding", False)
    if caller.is_bound and not (keeps if isinstance(keeps, bool) else method in keeps):
        raise PermissionDenied(
            "This concerns the whole tenant; yours is a key of one agent or one user."
        )


def require_scope(caller: Caller, *accepted: str) -> None:
    """Raise PermissionDenied, which names the key's scopes, unless the key has one of these."""
    if not caller.scopes.intersection(accepted):
        has = ", ".join(sorted(caller.scopes)) or "none"
        raise PermissionDenied(f"This needs the scope {' or '.join(accepted)}; yours: {has}.")


def _require_permissions(user: Any, view: Any, method: str) -> None:
    if method == "OPTIONS":
        return  # it describes the address, and shows nothing of the tenant
    needed = view.permissions.get(method)
    if needed is None:
        raise PermissionDenied(f"{method} is for programs with an API key.")
    missing = [permission for permission in needed if not _has(user, permission)]
    if missing:
        raise PermissionDenied(
            f"This needs the permission {', '.join(missing)}."
            " Whoever manages the people of your tenant can give it to you."
        )


def _has(user: Any, permission: str) -> bool:
    """Tell whether the admin would let the person: who may change a row may look at it."""
    app, codename = permission.split(".")
    may_change = codename.startswith("view_") and user.has_perm(
        f"{app}.change_{codename.removeprefix('view_')}"
    )
    return bool(user.has_perm(permission)) or may_change
