"""Each method of a view declares its operation, or the class cannot be made."""

from typing import Any

import pytest
from rest_framework.response import Response

from konstruct.api.http.views import ApiView, operation
from konstruct.api.models import KeyScope
from tenants.audit.models import Action

RULES: dict[str, Any] = {"scope": KeyScope.READ, "permission": "memory.view_message"}


def test_a_method_without_an_operation_fails_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="does not declare DELETE: decorate the method"):

        class Undeclared(ApiView):
            @operation(Action.VIEW, "thing", **RULES)
            def get(self, request: Any) -> Response:
                return Response()

            def delete(self, request: Any) -> Response:
                return Response(status=204)


@pytest.mark.parametrize("missing", ["scope", "permission"])
def test_an_operation_needs_a_scope_and_a_permission(missing: str) -> None:
    rules = {name: rule for name, rule in RULES.items() if name != missing}
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{missing}'"):
        operation(Action.VIEW, "thing", **rules)


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
