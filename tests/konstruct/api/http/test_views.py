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
