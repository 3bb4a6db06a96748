"""docs/reference.md: every signature equals the code, and every public name is documented."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from django.conf import settings

PAGE = (Path(settings.BASE_DIR) / "docs" / "reference.md").read_text()
SIGNATURE = re.compile(r"^- `([\w.]+)(\(.*?\))`", re.MULTILINE)
# Public names of the packages.
PROMISED = {
    "tenants.redis_keys": [
        "rate_limit_key", "idempotency_key", "session_key", "engaged_thread_key",
        "memory_short_key", "escalation_status_key", "pending_tool_confirm_key",
    ],
    "memory.short_term": ["get_recent_messages", "append_message"],
    "memory.long_term": ["retrieve_relevant", "store_embedding"],
    "memory.models": ["ConversationEmbedding", "MemoryEntry"],
    "memory.facts": ["LongTermMemory"],
    "memory.context": [
        "ContextManager", "LongTermMemory", "MemoryEntry", "SessionStore", "WorkingContextCompiler",
    ],
    "memory.context.session": ["SessionStore"],
    "memory.context.working": ["WorkingContextCompiler"],
    "memory.context.manager": ["ContextManager"],
    "memory.archive": ["MemoryManager", "SQLiteManager", "VectorStore"],
    "memory": ["MemoryManager", "SQLiteManager", "VectorStore"],
    "memory.tasks": ["embed_and_store"],
    "konstruct.orchestrator.models": ["Agent"],
    "konstruct.orchestrator.builder": ["build_system_prompt", "build_messages_with_memory"],
    "konstruct.orchestrator.runner": ["run_agent"],
    "konstruct.orchestrator.tasks": ["handle_message"],
}  # fmt: skip


def sections() -> dict[str, str]:
    """Return the page's sections of modules by module name."""
    parts = re.split(r"^## `([\w.]+)`$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def documented() -> list[tuple[str, str, str]]:
    return [
        (module, name, signature)
        for module, text in sections().items()
        for name, signature in SIGNATURE.findall(text)
    ]


def resolved(module: str, name: str) -> Any:
    """Return the object of a name, relative to its section's module or to the packages."""
    path = f"{module}.{name}" if not name.startswith(f"{module}.") else name
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise LookupError(path)


def signature_of(found: Any) -> str:
    """Return the parameters with their defaults, without types."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(found).parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(parameters))


def test_a_documented_signature_is_the_codes() -> None:
    for module, name, signature in documented():
        assert (name, signature_of(resolved(module, name))) == (name, signature)


# The documented functions of memory that use neither Postgres nor the cache.
COMPUTING = {
    "memory.embeddings.embed",
    "memory.embeddings.model_version",
    "memory.context.WorkingContextCompiler.compile",
    "memory.context.WorkingContextCompiler.count_tokens",
    "memory.context.WorkingContextCompiler.truncate_to_budget",
}


def twins() -> list[tuple[str, str]]:
    """Yield the documented functions and methods of memory with I/O and their async versions."""
    found = []
    for module, name, _ in documented():
        path = f"{module}.{name}"
        if module.startswith("memory.") and path not in COMPUTING:
            owner, _, function = name.rpartition(".")
            if not inspect.isclass(resolved(module, name)):
                found.append((path, ".".join(filter(None, (module, owner, f"a{function}")))))
    return found


def test_a_function_of_memory_has_an_asynchronous_twin_with_its_parameters() -> None:
    for name, twin in twins():
        module, _, rest = twin.partition(".")
        found = resolved(module, rest)
        assert inspect.iscoroutinefunction(found), twin
        original = resolved(module, name.partition(".")[2])
        assert (twin, signature_of(found)) == (twin, signature_of(original))


def test_the_named_twins_and_their_functions_are_found() -> None:
    assert ("memory.short_term.clear_window", "memory.short_term.aclear_window") in twins()
    assert len(twins()) > 15


def test_every_promised_name_is_there() -> None:
    for module, names in PROMISED.items():
        for name in names:
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
