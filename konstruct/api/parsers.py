"""JSON bodies, read strictly."""

from io import BytesIO
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser


class StrictJSONParser(JSONParser):
    """REST framework's parser, within Django's body limit and Python's depth.

    By itself it reads a stream of any length, and a hundred thousand brackets make it a 500.
    """

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Read the body as JSON."""
        body = parser_context["request"]._request.body  # this, and only this, checks the limit
        try:
            return super().parse(BytesIO(body), media_type, parser_context)
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error
