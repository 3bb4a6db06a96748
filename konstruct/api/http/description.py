"""Serves the OpenAPI description, which each process makes once in two formats."""

import gzip
import hashlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request

_ACCEPTS_GZIP: Final = re.compile(r"\bgzip\b")
# drf-spectacular's generator is not thread-safe.
_generating = threading.Lock()


@dataclass(frozen=True)
class Description:
    """The description in one format, plain and compressed, each with an ETag."""

    content: bytes
    compressed: bytes
    digest: str

    def etag(self, *, is_compressed: bool) -> str:
        """Return a strong ETag: other bytes have another one."""
        return f'"{self.digest}-gzip"' if is_compressed else f'"{self.digest}"'


def descriptions() -> Mapping[str, Description]:
    """Return the description by format, `yaml` and `json`; callers at the same time wait for one.

    It is the same for every host, caller and query.
    """
    with _generating:
        return _descriptions()


@cache
def _descriptions() -> Mapping[str, Description]:
    generator = spectacular_settings.DEFAULT_GENERATOR_CLASS()
    schema = generator.get_schema(request=None, public=True)
    return {
        "yaml": _described(OpenApiYamlRenderer().render(schema, renderer_context={})),
        "json": _described(OpenApiJsonRenderer().render(schema, renderer_context={})),
    }


def _described(content: bytes) -> Description:
    digest = hashlib.sha256(content).hexdigest()[:32]
    return Description(content, gzip.compress(content, mtime=0), digest)


class DescriptionView(SpectacularAPIView):
    """Serves the description in the format that the Accept header asks for."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer with the description; with 304 alone to a client that has it."""
        renderer = request.accepted_renderer
        described = descriptions()["json" if "json" in renderer.format else "yaml"]
        is_compressed = bool(_ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", "")))
        etag = described.etag(is_compressed=is_compressed)
        response = HttpResponse(
            described.compressed if is_compressed else described.content,
            content_type=request.accepted_media_type,
            headers={"ETag": etag, "Cache-Control": "no-cache"},
        )
        if is_compressed:
            response.headers["Content-Encoding"] = "gzip"
        patch_vary_headers(response, ["Accept", "Accept-Encoding"])
        conditional = get_conditional_response(request._request, etag=etag, response=response)
        return cast(HttpResponseBase, conditional)
