"""Strict serializers: unknown fields and values of other types are refused by name."""

import copy
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, ClassVar, Final

import orjson
from django.conf import settings
from django.core.validators import (
    MinLengthValidator,
    ProhibitNullCharactersValidator,
    RegexValidator,
)
from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer

from konstruct.api.http.problems import MAX_ERRORS
from konstruct.strict_json import NotStrictJSON, read_json
from memory import arguments, exceptions
from memory.models.attributes import parse_filters


class StrictJSONParser(JSONParser):
    """Parses JSON within Django's limit of a body, by `konstruct.strict_json`.

    The parser of REST framework reads a stream of any length, fails with a 500 for 100,000 nested
    brackets, and uses the last value of a duplicate name.
    """

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Read the body as JSON."""
        body = parser_context["request"]._request.body  # only this attribute checks the limit
        try:
            return read_json(body)
        except NotStrictJSON as error:
            raise ParseError(str(error)) from error


class FastJSONRenderer(JSONRenderer):
    """Renders JSON with orjson: a page of 50 messages in a tenth of REST framework's time.

    Values that orjson refuses, such as integers of more than 64 bits or lone surrogates, are
    rendered by REST framework, in ASCII.
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


class TextRule(RegexValidator):
    """A rule of text. Its function names the problem; its pattern is for the OpenAPI description.

    Args:
        pattern: no two adjacent parts of it match the same character, because a reader's time for
            a text that does not match would be quadratic.
        problem: returns why a text is refused, or "".
    """

    def __init__(self, pattern: str, problem: Callable[[str], str]) -> None:
        super().__init__(pattern)
        self.problem = problem

    def __call__(self, value: Any) -> None:
        """Raise ValidationError with the problem."""
        if problem := self.problem(value):
            raise ValidationError(f"This {problem}.")


def _nul_problem(value: str) -> str:
    return f"holds U+0000 (NUL) at {value.index(chr(0))}; remove it" if "\0" in value else ""


def _blank_problem(value: str) -> str:
    blank = "is blank; give text with visible characters" if arguments.is_blank(value) else ""
    return _nul_problem(value) or blank


# For the description: the function refuses further invisible characters.
_UNSEEN: Final = r"\x01-\x1f\x7f-\x9f\xad\u2028-\u202e\u2066-\u2069"
_CONTROLS: Final = rf"\x00{_UNSEEN}"
NO_NUL = TextRule(r"^[^\x00]*\Z", _nul_problem)  # Postgres stores no NUL
NOT_BLANK = TextRule(rf"^[\s{_UNSEEN}]*[^\s{_CONTROLS}][^\x00]*\Z", _blank_problem)
ID_TEXT = TextRule(rf"^[^\S{_CONTROLS}]*[^\s{_CONTROLS}][^{_CONTROLS}]*\Z", arguments.id_problem)


class StrictCharField(serializers.CharField):
    """Text, exactly as it was sent: it is not trimmed, and a number is refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})
        # NO_NUL replaces CharField's validator, which the OpenAPI description does not show.
        self.validators = [
            validator
            for validator in self.validators
            if not isinstance(validator, ProhibitNullCharactersValidator)
        ]
        if not any(isinstance(validator, RegexValidator) for validator in self.validators):
            self.validators.append(NO_NUL)
            if not self.allow_blank:  # for the description: NO_NUL matches empty text
                self.validators.append(MinLengthValidator(1))

    def to_internal_value(self, data: Any) -> str:
        """Refuse a value that is not a JSON string."""
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class TextField(StrictCharField):
    """Text with visible characters. By default it may be as long as a message."""

    def __init__(self, **options: Any) -> None:
        defaults = {"max_length": settings.MAX_MESSAGE_CHARACTERS, "validators": [NOT_BLANK]}
        super().__init__(**{**defaults, **options})


class OptionalTextField(StrictCharField):
    """Text that may be omitted or empty, such as a note or a reason."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "allow_blank": True, "max_length": 2000, **options})


class ChannelIdField(StrictCharField):
    """An id that the calling system chose, such as a Slack user id."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": 255, "validators": [ID_TEXT], **options})


def id_of_path(name: str, value: str) -> str:
    """Return an id of new rows that an address has. Raises ValidationError."""
    try:
        return str(ChannelIdField().run_validation(value))
    except ValidationError as error:
        raise ValidationError({name: error.detail}) from error


class StrictIntegerField(serializers.IntegerField):
    """A whole number. Text and truth values are refused."""

    def to_internal_value(self, data: Any) -> int:
        """Refuse a value that is not a whole JSON number; 3.0 is one."""
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(super().to_internal_value(data))


class StrictFloatField(serializers.FloatField):
    """A number. Text and truth values are refused."""

    def to_internal_value(self, data: Any) -> float:
        """Refuse a value that is not a finite JSON number: 1e999 reads as infinity."""
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        try:
            number = float(super().to_internal_value(data))
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail("invalid")
        return number


class StrictBooleanField(serializers.BooleanField):
    """true or false. Words are refused."""

    def to_internal_value(self, data: Any) -> bool:
        """Refuse a value that is not a JSON boolean."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


_PRICE: Final = r"^\d{1,6}(\.\d{1,6})?$"


@extend_schema_field({"type": "string", "format": "decimal", "pattern": _PRICE})
class PriceField(serializers.DecimalField):
    """A price as text, such as "2.50"."""

    def to_internal_value(self, data: Any) -> Decimal:
        """Refuse what the description does not have, such as an exponent."""
        if not re.fullmatch(_PRICE, str(data), re.ASCII):
            raise ValidationError('Give a price as text, such as "2.50".')
        price: Decimal = super().to_internal_value(data)
        return price


class BoundedListField(serializers.ListField):
    """A list with a maximum length, which is checked before the items."""

    def __init__(self, *, max_length: int, **options: Any) -> None:
        self.max_items = max_length
        super().__init__(max_length=max_length, **options)

    def to_internal_value(self, data: Any) -> list[Any]:
        """Refuse a list that is too long."""
        if isinstance(data, list) and len(data) > self.max_items:
            raise ValidationError(
                f"Give at most {self.max_items:,} items: these are {len(data):,}.",
                code="max_length",
            )
        return list(super().to_internal_value(data))


FILTERS_HELP = (
    'Conditions on the metadata: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, '
    '{"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. Operators: eq, ne, in, '
    "exists, gt, gte, lt, lte, contains, icontains. All must match."
)
FILTERS_AS_TEXT = f"{FILTERS_HELP} As JSON text."


class LimitField(serializers.IntegerField):
    """The greatest number of rows of a response, in a query."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 1, "required": False, **options})


class ObjectField(serializers.DictField):
    """A JSON object."""

    child = serializers.JSONField(allow_null=True)


class ObjectsField(serializers.ListField):
    """JSON objects."""

    child = serializers.DictField()


class TextsField(serializers.ListField):
    """Texts, as responses have them."""

    child = serializers.CharField()


class CheckedObjectField(ObjectField):
    """A JSON object that a function of memory validates; its error is the field's error."""

    def __init__(self, check: Callable[[Mapping[str, Any]], Any], **options: Any) -> None:
        super().__init__(**options)
        self.check = check

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse a value that is no object, or that no search accepts."""
        if not isinstance(data, Mapping):
            self.fail("not_a_dict", input_type=type(data).__name__)
        try:
            self.check(data)
        except exceptions.InvalidArgument as error:
            raise ValidationError(str(error)) from error
        return dict(data)


@extend_schema_field({"type": "string", "description": "A JSON object as text."})
class FiltersTextField(StrictCharField):
    """Filters in a query parameter: a JSON object as text."""

    def to_internal_value(self, data: Any) -> Any:
        """Read the object."""
        text = super().to_internal_value(data)
        try:
            filters = read_json(text)
            parse_filters(filters)
        except (NotStrictJSON, exceptions.InvalidArgument) as error:
            raise ValidationError(str(error)) from error
        return filters


TIME_EXPECTED: Final = "Give a time with a time zone, such as 2026-03-14T09:30:00Z."
_DECODED_PLUS: Final = re.compile(r"\S+ \d{2}:?\d{2}", re.ASCII)


class AwareDateTimeField(serializers.DateTimeField):
    """A time with a time zone."""

    default_error_messages: ClassVar = {"invalid": TIME_EXPECTED}

    def to_internal_value(self, data: Any) -> datetime:
        """Name the usual mistake in addresses: there, a plus sign means a space."""
        if isinstance(data, str) and _DECODED_PLUS.fullmatch(data):
            raise ValidationError("In an address, write the + of the time zone as %2B.")
        value: datetime = super().to_internal_value(data)
        return value

    def enforce_timezone(self, value: datetime) -> datetime:
        """Refuse a naive time; convert others to UTC, because Postgres lacks some time zones."""
        if value.tzinfo is None:
            raise ValidationError(TIME_EXPECTED)
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise ValidationError("Give a moment of the years 1 to 9999 of UTC.") from None


def _copies(fields: Mapping[str, serializers.Field]) -> dict[str, serializers.Field]:
    """Return copies of fields, shallow ones of those without child fields.

    REST framework would create each again with its validators, which takes half of the time of
    checking a small body.
    """
    return {
        name: copy.deepcopy(field)
        if hasattr(field, "child") or isinstance(field, serializers.BaseSerializer)
        else copy.copy(field)
        for name, field in fields.items()
    }


class StrictSerializer(serializers.Serializer):
    """Refuses unknown fields, so that a misspelt option is not silently ignored."""

    # Minimum number of fields in a body, beside the reason of a change.
    min_fields = 0

    def get_fields(self) -> dict[str, serializers.Field]:
        """Return new fields of this serializer."""
        return _copies(self._declared_fields)

    def to_internal_value(self, data: Any) -> Any:
        """Refuse unknown names first, then check the rest."""
        if isinstance(data, Mapping):
            if self.parent is None and (caller := self.context.get("caller")) is not None:
                data = caller.with_binding(data, self.fields)
            known = [name for name, field in self.fields.items() if not field.read_only]
            unknown = list(islice((name for name in data if name not in known), MAX_ERRORS))
            if unknown:
                hint = f"Unknown field. Known are: {', '.join(known)}."
                raise ValidationError(dict.fromkeys(unknown, hint))
            if len(data.keys() - {"reason"}) < self.min_fields:
                hint = f"Name the fields to change: {', '.join(known)}."
                raise ValidationError({"non_field_errors": [hint]})
        return super().to_internal_value(data)


class NoParametersSerializer(StrictSerializer):
    """An endpoint without query parameters."""


class AgentUserQuery(StrictSerializer):
    """Query parameters that limit to an agent and a user."""

    agent = ChannelIdField(required=False, help_text="Only of this agent (name or id).")
    user_id = ChannelIdField(required=False, help_text="Only of this user.")


class MemoryOwner(StrictSerializer):
    """Names an agent and a user, both required."""

    agent = ChannelIdField(help_text="Name or id of the agent.")
    user_id = ChannelIdField(help_text="The user.")


class ConversationName(MemoryOwner):
    """Names a conversation."""

    thread_id = ChannelIdField(help_text="The conversation.")


class ReasonSerializer(StrictSerializer):
    """The reason of a change, for the fact's events."""

    reason = OptionalTextField(help_text="The reason, for the fact's events.")


class BuiltOnce(serializers.ModelSerializer):
    """A serializer of a model with fields that each class builds once."""

    def get_fields(self) -> dict[str, serializers.Field]:
        """Return new fields of this serializer."""
        cls: Any = type(self)
        if "_built" not in cls.__dict__:
            cls._built = serializers.ModelSerializer.get_fields(self)
        return _copies(cls._built)


class StrictModelSerializer(BuiltOnce, StrictSerializer):
    """A body with fields of a model."""

    serializer_field_mapping: ClassVar[Any] = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: StrictCharField,
        models.TextField: StrictCharField,
        models.PositiveIntegerField: StrictIntegerField,
        models.PositiveSmallIntegerField: StrictIntegerField,
        models.FloatField: StrictFloatField,
        models.BooleanField: StrictBooleanField,
        models.DecimalField: PriceField,
    }

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        """Return the class and the options of a field, without a label."""
        field_class, options = super().build_standard_field(field_name, model_field)
        return field_class, {name: options[name] for name in options if name != "label"}


class RowSerializer(BuiltOnce):
    """A row as responses show it: with the types, choices and help texts of its model."""

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        """Return the class and the options of a field, without the checks of bodies."""
        field_class, options = super().build_standard_field(field_name, model_field)
        kept = ("child", "max_digits", "decimal_places")
        shown = {name: options[name] for name in kept if name in options}
        if model_field.choices:
            field_class, shown["choices"] = serializers.ChoiceField, model_field.choices
        if model_field.null:
            shown["allow_null"] = True
        return field_class, {**shown, "help_text": model_field.help_text or None}
