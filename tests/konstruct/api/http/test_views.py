"""Each method of a view declares its operation, or the class cannot be defined."""

from typing import Any

import pytest
from rest_framework.response import Response

from konstruct.api.http.views import ApiView, operation
from tenants.audit.models import Action


def test_a_method_without_an_operation_fails_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="does not declare delete: decorate the method"):

        class Undeclared(ApiView):
            @operation(Action.VIEW, "thing", permission="memory.view_message")
            def get(self, request: Any) -> Response:
                return Response()

            def delete(self, request: Any) -> Response:
                return Response(status=204)
