"""Server-sent events, for those who read a reply while it is written."""

import json
from collections.abc import Mapping
from typing import Any, Final

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.utils.encoders import JSONEncoder

MEDIA_TYPE: Final = "text/event-stream"


def event(document: Mapping[str, Any], name: str = "") -> bytes:
    """Return one event; without a name it is one of the kind `message`."""
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {json.dumps(document, cls=JSONEncoder)}\n\n".encode()


def wants_events(request: Any) -> bool:
    """Whether the caller prefers events to JSON."""
    preferred = request._request.get_preferred_type(["application/json", MEDIA_TYPE])
    return bool(request.method == "POST" and preferred == MEDIA_TYPE)


class JsonOrEvents(DefaultContentNegotiation):
    """As usual, but who asks for events gets them, or JSON where there is nothing to wait for."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """Return the renderer of whatever is no stream."""
        if wants_events(request):
            return renderers[0], renderers[0].media_type
        return super().select_renderer(request, renderers, format_suffix)
