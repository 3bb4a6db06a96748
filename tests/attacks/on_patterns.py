"""Attacks on every regular expression of the product: run as a module in a child process.

The texts repeat parts of the pattern: its literals, one of each kind of character, and an end that
makes the match fail.
"""

import ast
import importlib
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import regex
from django.urls.resolvers import RegexPattern

from tests.attacks.growing import Attack, attack_all

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = {"re", "regex"}
SPEAKS_OF_PATTERNS = re.compile(r"\b(?:re|regex)\.|Regex|re_path")
READING = {
    "match", "search", "fullmatch", "findall", "finditer", "split", "sub", "subn",
}  # fmt: skip
KINDS = (
    " ", "\t", "\n", "a", "A", "1", ".", ",", "-", "_", "*", "~", "#", "`", "[", "]", "(", ")", "<",
    "@", "|", ":", "/", "?", '"', "é", "\u0301", "好", "か", "。", "\x1f",
)  # fmt: skip
TEXT_ENDS = ("", "\x00", "x")
# Not used on longer texts.
READ_UP_TO = {"konstruct.orchestrator.handoff.detection": 500}


def sources() -> Iterator[tuple[str, str]]:
    """Return every module of the product by name, with its source."""
    for package in ("konstruct", "memory", "tenants"):
        for path in sorted((ROOT / package).rglob("*.py")):
            relative = path.relative_to(ROOT).with_suffix("")
            parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
            yield ".".join(parts), path.read_text()


def calls_in(source: str) -> Iterator[tuple[ast.Call, str, bool]]:
    """Yield every call of `re`, its name, and whether it is inside a function."""
    if not SPEAKS_OF_PATTERNS.search(source):
        return
    nodes: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while nodes:
        node, inside = nodes.pop()
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        nodes += [(child, inside) for child in ast.iter_child_nodes(node)]
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        owner = called.value if isinstance(called, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id in LIBRARIES:
            yield node, f"re.{called.attr}", inside  # type: ignore[attr-defined]
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in ("RegexValidator", "RegexField", "re_path"):
            yield node, name, inside


def patterns() -> Iterator[tuple[str, Any, set[str]]]:
    """Yield every pattern with its place and the methods that use it."""
    used: dict[str, set[str]] = {}
    for _, source in sources():
        for name, method in re.findall(rf"(\w+)\.({'|'.join(READING)})\(", source):
            used.setdefault(name, set()).add(method)
    for module_name, source in sources():
        calls = list(calls_in(source))
        if not calls:
            continue
        module = importlib.import_module(module_name)
        for name, value in vars(module).items():
            for found in value if isinstance(value, tuple) else (value,):
                if isinstance(found, re.Pattern | regex.Pattern):
                    yield f"{module_name}.{name}", found, used.get(name, {"search", "fullmatch"})
        # A path may be created in a loop, so that its call does not name its pattern.
        for url in vars(module).get("urlpatterns", ()):
            if isinstance(url.pattern, RegexPattern):
                text = url.pattern.regex.pattern
                yield f"{module_name} re_path {text}", re.compile(text), {"search"}
        for call, called, _ in calls:
            if not called.startswith("re.") and called != "re_path":
                code = compile(ast.Expression(call.args[0]), module_name, "eval")
                text = eval(code, vars(module))  # noqa: S307  (our own source)
                yield f"{module_name} {called} {call.lineno}", re.compile(text), {"search"}


def attacks() -> Iterator[tuple[str, Attack]]:
    """Yield every pattern against every text, by every method that uses it."""
    for place, pattern, methods in patterns():
        module = place.rpartition(".")[0]
        for method, (name, text) in itertools.product(sorted(methods), texts(pattern.pattern)):
            yield f"{place} {name}", read(pattern, method, text, READ_UP_TO.get(module))


def read(pattern: Any, method: str, text: Any, most: int | None) -> Attack:
    """Apply a method of a pattern to a text of this length."""

    def attack(length: int) -> None:
        attacked = text(min(length, most or length))
        if method in ("sub", "subn"):
            getattr(pattern, method)("", attacked)
        elif method == "finditer":
            for _ in pattern.finditer(attacked):
                pass
        else:
            getattr(pattern, method)(attacked)

    return attack


def texts(pattern: str) -> Iterator[tuple[str, Any]]:
    """Yield texts: a beginning, a repeated part, and an end."""
    literals = list(
        dict.fromkeys(re.findall(r"[A-Za-z]{3,}|https?://", re.sub(r"\\.", " ", pattern)))
    )
    begins = ["", "a", "# ", "[x](http://a", "please remember", *literals[:8]]
    pumps = [
        *KINDS,
        *literals[:8],
        " a",
        "a ",
        "a.",
        "1,",
        "**a",
        "_a",
        "[x](http://a(b)",
        "<@U1|",
        "a\u0301",
    ]
    for begin, pump, end in itertools.product(begins, pumps, TEXT_ENDS):
        yield f"{begin!r} {pump!r}… {end!r}", _text(begin, pump, end)


def _text(begin: str, pump: str, end: str) -> Any:
    return lambda length: begin + pump * (length // len(pump)) + end


if __name__ == "__main__":
    django.setup()
    every = int(sys.argv[1])
    attacked = attack_all(itertools.islice(attacks(), 0, None, every))
    assert attacked * every > 10_000, attacked
