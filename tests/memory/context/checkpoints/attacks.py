"""Values of a checkpoint that run code when LangGraph's default serializer reads them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ormsgpack

# Each creates a folder, which shows that it ran.
MODULE, FUNCTION = "os", "mkdir"


def msgpack_attacks(path: Path) -> Iterator[tuple[str, bytes]]:
    """Return the attacks by name."""
    for code, argument in ((0, str(path)), (1, [str(path)]), (2, {"path": str(path)})):
        yield f"call-{code}", packed(code, [MODULE, FUNCTION, argument])
    yield "method", packed(3, ["pathlib", "Path", str(path), "mkdir"])
    yield "method-of-module", packed(3, ["posixpath", "os", str(path), FUNCTION])
    yield "pydantic-1", packed(4, [MODULE, FUNCTION, {"path": str(path)}])
    yield "pydantic-2", packed(5, [MODULE, FUNCTION, {"path": str(path)}, "model_validate_json"])
    call = ormsgpack.Ext(0, ormsgpack.packb([MODULE, FUNCTION, str(path)]))
    yield "in-a-list", ormsgpack.packb({"messages": [1, {"a": call}]})
    yield "in-a-set", packed(0, ["builtins", "set", [call]])
    yield (
        "in-a-message",
        packed(5, ["langchain_core.messages.human", "HumanMessage", {"content": call}, ""]),
    )
    yield "in-a-snapshot", ormsgpack.packb(ormsgpack.Ext(7, ormsgpack.packb(call)))
    yield "in-an-array", packed(6, ["<f8", [1], "C", call])
    # The module name is itself an object, which LangGraph converts to text.
    named = ormsgpack.Ext(0, ormsgpack.packb(["x", "y", MODULE]))
    yield "named-by-an-object", packed(0, [named, FUNCTION, str(path)])
    yield "as-a-key", b"\x81" + ormsgpack.packb(call) + b"\x01"


def json_attacks(path: Path) -> Iterator[tuple[str, bytes]]:
    """Return the same attacks in the older JSON formats of LangChain and LangGraph."""
    yield (
        "lc-2",
        (
            b'{"lc": 2, "type": "constructor", "id": ["os", "mkdir"], "args": ["%s"]}'
            % str(path).encode()
        ),
    )
    yield (
        "lc-2-method",
        (
            b'[{"a": {"lc": 2, "type": "constructor", "id": ["pathlib", "Path"], "args": ["%s"],'
            b' "method": "mkdir"}}]' % str(path).encode()
        ),
    )
    yield (
        "lc-1",
        (
            b'{"lc": 1, "type": "constructor", "id": ["langchain_core", "prompts", "prompt",'
            b' "PromptTemplate"], "kwargs": {"template": "{a.__class__}",'
            b' "input_variables": ["a"]}}'
        ),
    )


def packed_ext(code: int, parts: Any) -> ormsgpack.Ext:
    """Return an object inside a value."""
    return ormsgpack.Ext(code, ormsgpack.packb(parts))


def packed(code: int, parts: Any) -> bytes:
    """Return a value that is an object."""
    return ormsgpack.packb(packed_ext(code, parts))
