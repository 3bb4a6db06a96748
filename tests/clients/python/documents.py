"""Write the types of the Python client's documents from the OpenAPI description.

``python -m tests.clients.python.documents`` writes them. A test compares them.
"""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.openapi import described

ROOT = Path(__file__).parents[3]
MODULE = ROOT / "clients" / "python" / "src" / "konstruct_client" / "documents.py"
HEAD = '''"""Documents of the API, as they come and go in JSON. Moments are texts in ISO 8601.

Written by `python -m tests.clients.python.documents` from the API's description.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, TypedDict

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired
'''
# Documents with handwritten types in the client.
LEFT_OUT = {"Import", "Problem", "FieldError"}
# Bodies whose fields are arguments of methods.
BODIES = {
    *("AgentFields", "DraftFields", "AgentChanges", "FactChange"),
    *("LanguageModelFields", "LanguageModelChanges"),
}
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def written() -> str:
    """Return the expected module."""
    parts = described()["components"]["schemas"]
    classes = [one(name, part) for name, part in sorted(parts.items()) if is_wanted(name, part)]
    return formatted("\n\n".join([HEAD, *classes]) + "\n")


def is_wanted(name: str, part: dict[str, Any]) -> bool:
    """Return whether the client needs this document: answers, and bodies with many fields."""
    if part.get("type") != "object" or name in LEFT_OUT or name.endswith("Page"):
        return False
    return name in BODIES or name in ANSWERED


def one(name: str, part: dict[str, Any]) -> str:
    """Return the class of a document."""
    lines = [f"class {called(name)}(TypedDict):"]
    text = " ".join(part.get("description", name).split())
    lines += [f'    """{text}"""', ""]
    required = part.get("required", [])
    for field, inner in part.get("properties", {}).items():
        kind = type_of(inner)
        lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
        if description := " ".join(inner.get("description", "").split("\n\n")[0].split()):
            wrapped = textwrap.wrap(description.replace('"', "'"), 88)
            lines.append('    """' + "\n    ".join(wrapped) + '"""')
    return "\n".join(lines)


def called(name: str) -> str:
    """Return the name of a document in the client."""
    new = {"AgentFields": "NewAgent", "LanguageModelFields": "NewLanguageModel"}
    return new.get(name, name)


def type_of(part: dict[str, Any]) -> str:
    """Return the type of a value of the description."""
    if "$ref" in part:
        name = part["$ref"].rsplit("/", 1)[1]
        inner = SCHEMAS[name]
        return type_of(inner) if inner.get("type") != "object" else called(name)
    for joint in ("oneOf", "anyOf", "allOf"):
        if joint in part:
            return " | ".join(dict.fromkeys(type_of(inner) for inner in part[joint]))
    if "enum" in part:
        return f"Literal[{', '.join(repr(value) for value in part['enum'])}]"
    kinds = part.get("type")
    if kinds is None:
        return "Any"
    found = [shape_of(kind, part) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return " | ".join(found)


def shape_of(kind: str, part: dict[str, Any]) -> str:
    """Return the type of one kind of value."""
    if kind == "array":
        return f"list[{type_of(part['items'])}]"
    if kind == "object":
        inner = part.get("additionalProperties")
        return f"dict[str, {type_of(inner) if isinstance(inner, dict) else 'Any'}]"
    return PLAIN[kind]


def answered() -> Iterator[str]:
    """Yield the names of answers, and of the documents inside them."""
    waiting = [
        content["schema"]
        for path in API["paths"].values()
        for operation in path.values()
        for status, response in operation["responses"].items()
        if status < "300"
        for content in response.get("content", {}).values()
        if "schema" in content
    ]
    waiting += [{"$ref": f"#/components/schemas/{name}"} for name in BODIES]
    known: set[str] = set()
    while waiting:
        for name in refs(waiting.pop()):
            if name not in known:
                known.add(name)
                waiting.append(SCHEMAS[name])
                yield name


def refs(part: Any) -> Iterator[str]:
    """Yield the names that a part of the description refers to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].rsplit("/", 1)[1]
        for inner in part.values():
            yield from refs(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from refs(inner)


def formatted(text: str) -> str:
    """Return the text as ruff formats it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(MODULE), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


API = described()
SCHEMAS = API["components"]["schemas"]
ANSWERED = set(answered())

if __name__ == "__main__":
    MODULE.write_text(written())
