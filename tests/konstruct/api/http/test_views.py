"""Each method of a view declares its operation, or the class cannot be defined."""

from typing import Any

import pytest
from rest_framework.response import Response

from konstruct.api.http.views import ApiView, operation
from konstruct.api.models import KeyScope
from tenants.audit.models import Action

RULES: dict[str, Any] = {"permission": "memory.view_message"}


def test_a_method_without_an_operation_fails_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="does not declare DELETE: decorate the method"):

        class Undeclared(ApiView):
            @operation(Action.VIEW, "thing", **RULES)
            def get(self, request: Any) -> Response:
                return Response()

            def delete(self, request: Any) -> Response:
                return Response(status=204)


def test_an_operation_needs_a_permission() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'permission'"):
        operation(Action.VIEW, "thing")  # type: ignore[call-arg]


@pytest.mark.parametrize("action", Action)
def test_read_only_key_cannot_write_by_default(action: Action) -> None:
    class Thing(ApiView):
        @operation(action, "thing", **RULES)
        def post(self, request: Any) -> Response:
            return Response()

    reads = action in (Action.LIST, Action.VIEW, Action.SEARCH)
    scope = KeyScope.READ if reads else KeyScope.WRITE
    scope = KeyScope.ERASE if action is Action.ERASE else scope
    assert Thing.operations["POST"].scopes == (scope,)


def test_an_operation_needs_an_action_and_a_subject_for_the_access_log() -> None:
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        operation(**RULES)


def test_a_subclass_inherits_operations() -> None:
    class Parent(ApiView):
        @operation(Action.VIEW, "thing", **RULES)
        def get(self, request: Any) -> Response:
            return Response()

    class Child(Parent):
        pass

    assert Child.operations["GET"].subject == "thing"
