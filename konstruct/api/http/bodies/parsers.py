"""JSON bodies, read strictly."""

from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from konstruct.strict_json import NotStrictJSON, read_json


class StrictJSONParser(JSONParser):
    """JSON within Django's body limit, read by `konstruct.strict_json`.

    REST framework's own reads a stream of any length, makes a hundred thousand brackets a 500, and
    of a name that is given twice takes the last value.
    """

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Read the body as JSON."""
        body = parser_context["request"]._request.body  # this, and only this, checks the limit
        try:
            return read_json(body)
        except NotStrictJSON as error:
            raise ParseError(str(error)) from error
