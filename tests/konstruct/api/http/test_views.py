"""Each method of a view declares its operation, or the class cannot be defined."""

from typing import Any

import pytest
from rest_framework.response import Response

from konstruct.api.http.views import ApiView, operation
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


def test_an_operation_needs_an_action_and_a_subject_for_the_access_log() -> None:
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        operation(**RULES)
