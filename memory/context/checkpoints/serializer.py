"""LangGraph's serializer with an allow-list: reading a checkpoint never runs code.

LangGraph writes an object as the name of its module and class with its arguments, and by default
imports and calls any class that a row names. Here each value is checked before it is decoded and
after it is encoded: a class that is not allowed is not imported, and a value that could not be read
again is not written.
"""

import json
import math
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NoReturn, Self

import ormsgpack
from django.conf import settings
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_DELTA_SNAPSHOT,
    EXT_METHOD_SINGLE_ARG,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)

from memory.arguments import text_argument
from memory.context.exceptions import CheckpointRefused
from memory.exceptions import InvalidArgument

ClassName = tuple[str, str]

# Nested values: each level copies the levels below it, so the cost is depth times size.
MAX_DEPTH: Final = 64
# The number of fields of an object: module, class, arguments; the fourth of a pydantic model is a
# method that LangGraph does not call.
_FIELD_COUNTS: Final = {
    EXT_CONSTRUCTOR_SINGLE_ARG: (3,),
    EXT_CONSTRUCTOR_POS_ARGS: (3,),
    EXT_CONSTRUCTOR_KW_ARGS: (3,),
    EXT_METHOD_SINGLE_ARG: (4,),
    EXT_PYDANTIC_V1: (3, 4),
    EXT_PYDANTIC_V2: (3, 4),
}
_PLAIN: Final = frozenset({"null", "bytes", "bytearray"})
# `msgpack+aes`: the output of EncryptedSerializer.
_ENCRYPTED: Final = re.compile(r"(?:null|bytes|bytearray|json|msgpack)\+\w+")
# numpy's type codes of numbers, text and times; "O" are pointers.
_ARRAY_TYPE: Final = re.compile(r"[<>|=]?[?bBiufcSUMmV]\d*(?:\[\w+\])?")
_OPTION: Final = ormsgpack.OPT_NON_STR_KEYS


def allowed_classes(extra: Iterable[Collection[str] | type] = ()) -> frozenset[ClassName]:
    """Return the allowed classes: LangGraph's own list, CHECKPOINT_TYPES, and `extra`."""
    of_extra = [(cls.__module__, cls.__name__) if isinstance(cls, type) else cls for cls in extra]
    of_settings = [path.rpartition(".")[::2] for path in settings.CHECKPOINT_TYPES]
    return frozenset(
        (str(module), str(name)) for module, name in [*SAFE_MSGPACK_TYPES, *of_extra, *of_settings]
    )


def check_value(type_: str, data: bytes, allowed: Collection[ClassName]) -> None:
    """Check one value of a checkpoint without building an object.

    Args:
        type_: the encoding, from the row.
        allowed: the allowed modules and classes.

    Raises:
        CheckpointRefused: the encoding is not LangGraph's, or the value has an object of a class
            that is not allowed.
    """
    if type_ == "msgpack":
        _MsgpackCheck(allowed).check(data)
    elif type_ == "json":
        _plain_json(data)
    elif type_ not in _PLAIN:
        raise CheckpointRefused(
            f"a checkpoint's value has the encoding {type_[:80]!r}, which is not read: only"
            " msgpack, json, bytes, bytearray and null are"
        )


def check_stored_value(type_: str, data: bytes, allowed: Collection[ClassName]) -> None:
    """As `check_value`, for a row whose value may be encrypted or missing.

    An encrypted value is checked when it is decrypted.
    """
    if type_ != "empty" and not _ENCRYPTED.fullmatch(type_):
        check_value(type_, data, allowed)


def check_json(where: str, value: Any) -> None:
    """Check a value that Postgres stores as JSON.

    Raises:
        CheckpointRefused: it has text or a number that JSON of Postgres cannot hold, or a member of
            an enumeration, which would come back as text.
    """
    if isinstance(value, Mapping):
        for name, item in value.items():
            check_json(where, name)
            check_json(f"{where}[{name!r:.80}]", item)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            check_json(f"{where}[{place}]", item)
    elif isinstance(value, Enum):
        raise CheckpointRefused(f"{where} holds {value!r:.80}: use its value, or a list with it")
    elif isinstance(value, float) and not math.isfinite(value):
        raise CheckpointRefused(f"{where} holds {value}, which JSON does not have; use None")
    elif isinstance(value, str):
        try:
            text_argument(where, value)
        except InvalidArgument as error:
            raise CheckpointRefused(str(error)) from error


def strict_serializer(serde: SerializerProtocol | None) -> SerializerProtocol:
    """Return the serializer that a checkpointer uses instead of this one.

    LangGraph's serializers become strict and keep the classes that they name; serializers of other
    types are not changed.
    """
    if serde is None:
        return StrictSerializer()
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, strict_serializer(serde.serde))
    if isinstance(serde, JsonPlusSerializer) and not isinstance(serde, StrictSerializer):
        named = serde._allowed_msgpack_modules
        return StrictSerializer(named if isinstance(named, set) else ())
    return serde


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's serializer for plain data, LangChain's messages, and named classes.

    Args:
        classes: classes besides those of the setting CHECKPOINT_TYPES: (module, class), or classes.
    """

    def __init__(self, classes: Iterable[Collection[str] | type] = ()) -> None:
        self.allowed = allowed_classes(classes)
        super().__init__(allowed_msgpack_modules=self.allowed, pickle_fallback=False)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[Collection[str] | type]) -> Self:
        """Return a serializer that allows these too.

        LangGraph passes the classes of a graph's state.
        """
        return type(self)([*self.allowed, *extra_allowlist])

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Encode a value.

        Raises:
            CheckpointRefused: it could not be read again.
        """
        try:
            type_, data = super().dumps_typed(obj)
        except ormsgpack.MsgpackEncodeError as error:
            raise CheckpointRefused(
                f"a checkpoint cannot hold this value: {error}; keep plain data in its place"
            ) from error
        if type_ == "msgpack":
            _MsgpackCheck(self.allowed, is_new=True).check(bytes(data))
        else:
            check_value(type_, bytes(data), self.allowed)
        return type_, data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decode a value.

        Raises:
            CheckpointRefused: it has an object of a class that is not allowed.
        """
        type_, encoded = data
        check_value(type_, encoded, self.allowed)
        if type_ == "json":
            return _plain_json(encoded)
        return super().loads_typed(data)


class _MsgpackCheck:
    """One pass through an encoded value.

    ormsgpack ignores exceptions of its hook, so the refusal is stored here.
    """

    def __init__(self, allowed: Collection[ClassName], *, is_new: bool = False) -> None:
        self.allowed, self.is_new = allowed, is_new
        self.depth = 0
        self.refusal: CheckpointRefused | None = None

    def check(self, data: bytes) -> None:
        try:
            self._unpack(data)
        except (ValueError, RecursionError) as error:
            raise self.refusal or CheckpointRefused(
                f"a checkpoint's value is not readable msgpack: {error}"
            ) from error

    def _unpack(self, data: bytes) -> Any:
        return ormsgpack.unpackb(data, ext_hook=self._object, option=_OPTION)

    def _object(self, code: int, data: bytes) -> "_CheckedObject":
        """Return a placeholder for an object inside a value, or refuse it."""
        if self.refusal is not None:
            raise self.refusal
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._refuse(f"nests objects more than {MAX_DEPTH} deep")
        parts = self._unpack(data)
        if code == EXT_NUMPY_ARRAY:
            self._check_array(parts)
        elif code in _FIELD_COUNTS:
            self._check_class(code, parts)
        elif code != EXT_DELTA_SNAPSHOT:
            self._refuse(f"holds an object of the unknown kind {code}")
        self.depth -= 1
        return _CheckedObject()

    def _check_class(self, code: int, parts: Any) -> None:
        if not isinstance(parts, list) or len(parts) not in _FIELD_COUNTS[code]:
            self._refuse("holds an object without class and arguments")
        module, name = parts[:2]
        if type(module) is not str or type(name) is not str:
            self._refuse("holds an object whose class is not named by text")
        class_name = f"{module[:80]}.{name[:80]}"
        if code == EXT_METHOD_SINGLE_ARG:
            if type(parts[3]) is not str or (module, name, parts[3]) not in SAFE_MSGPACK_METHODS:
                self._refuse(f"holds {class_name}, which is not built by a method: keep plain data")
        elif (module, name) not in self.allowed:
            self._refuse(
                f"holds {class_name}, which is not allowed there: name it in CHECKPOINT_TYPES if it"
                " is a class of yours, or keep plain data in its place"
            )

        elif self.is_new and not hasattr(sys.modules.get(module), name):
            self._refuse(
                f"holds {class_name}, which would come back as text: define it in a module"
            )

    def _check_array(self, parts: Any) -> None:
        if (
            not isinstance(parts, list)
            or len(parts) != 4
            or type(parts[0]) is not str
            or not _ARRAY_TYPE.fullmatch(parts[0])
            or not isinstance(parts[1], list)
            or not all(type(size) is int for size in parts[1])
            or parts[2] not in ("C", "F")
            or type(parts[3]) is not bytes
        ):
            self._refuse("holds an array that is not one of numbers, text or times")

    def _refuse(self, reason: str) -> NoReturn:
        self.refusal = CheckpointRefused(f"a checkpoint's value {reason}")
        raise self.refusal


class _CheckedObject:
    """A placeholder for a checked object. It equals no other, so that keys stay unique."""


def _plain_json(data: bytes) -> Any:
    """Decode JSON without LangChain's constructors, which LangGraph wrote before msgpack."""
    try:
        return json.loads(data, object_hook=_plain_object)
    except (ValueError, RecursionError) as error:
        raise CheckpointRefused(
            f"a checkpoint's value is not readable JSON: {str(error)[:200]}"
        ) from error


def _plain_object(value: dict[str, Any]) -> dict[str, Any]:
    if value.get("lc") in (1, 2) and "id" in value:
        raise CheckpointRefused(
            f"a checkpoint's value holds the constructor {value['id']!r:.80} in JSON, which is not"
            " called"
        )
    return value
