"""JSON bodies, read strictly."""

import json
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser


class StrictJSONParser(JSONParser):
    """JSON within Django's body limit and Python's depth, that says everything once.

    REST framework's own reads a stream of any length, makes a hundred thousand brackets a 500, and
    of a name that is given twice takes the last value.
    """

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Read the body as JSON."""
        body = parser_context["request"]._request.body  # this, and only this, checks the limit
        try:
            return json.loads(
                body.decode(), object_pairs_hook=_said_once, parse_constant=_no_number
            )
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"JSON parse error - {error}") from error


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members; which of two of one name is meant cannot be known."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ParseError(f"The name {twice!r} is given twice in one object.")
    return members


def _no_number(constant: str) -> None:
    raise ParseError(f"{constant} is no JSON.")
