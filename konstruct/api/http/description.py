"""Serves the OpenAPI description, which each process generates once in two formats."""

import hashlib
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request

# drf-spectacular's generator is not thread-safe.
_generating = threading.Lock()


@cache
def _descriptions() -> Mapping[str, bytes]:
    generator = spectacular_settings.DEFAULT_GENERATOR_CLASS()
    schema = generator.get_schema(request=None, public=True)
    return {
        "yaml": OpenApiYamlRenderer().render(schema, renderer_context={}),
        "json": OpenApiJsonRenderer().render(schema, renderer_context={}),
    }


class DescriptionView(SpectacularAPIView):
    """Serves the description in the format that the Accept header asks for.

    It is the same for every host, caller and query.
    """

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Return the description; 304 if the client already has it."""
        with _generating:
            described = _descriptions()
        content = described["json" if "json" in request.accepted_renderer.format else "yaml"]
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        response = HttpResponse(
            content,
            content_type=request.accepted_media_type,
            headers={"ETag": etag, "Cache-Control": "no-cache"},
        )
        patch_vary_headers(response, ["Accept"])
        conditional = get_conditional_response(request._request, etag=etag, response=response)
        return cast(HttpResponseBase, conditional)
