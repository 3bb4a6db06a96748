"""Files of Anthropic's memory tool: facts of an agent about a user, with the path as external id.

The answers and errors are those that the documentation of memory_20250818 gives. Each change
keeps the former text as a version. A deleted file is a retracted fact, which can be restored.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote
from uuid import UUID

from django.conf import settings

from memory.arguments import id_problem, is_blank, is_unicode
from memory.embedding.embedder import model_version
from memory.facts import lifecycle, service
from memory.models import MemoryEntry, facts
from tenants.context import execute, required_tenant_id
from tenants.exceptions import KonstructError

ROOT: Final = "/memories"
MAX_FILES: Final = 1000
MAX_PATH_CHARACTERS: Final = 255
# Directories are listed so deep.
MAX_LEVELS: Final = 2
# Lines before and after a replacement in the answer.
CONTEXT_LINES: Final = 2
# The parameters of each command.
PARAMETERS: Final[Mapping[str, Mapping[str, type]]] = {
    "view": {"path": str, "view_range": list},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}
OPTIONAL: Final = {"view_range", "new_str"}


class MemoryToolError(KonstructError):
    """An error that the language model gets as the result of its call."""


class MemoryFiles:
    """The files of an agent and a user in the current tenant. Call `run` in a transaction.

    Each other method is a command of the tool. It returns the answer for the language model.

    Args:
        agent_id: the agent.
        user_id: the user, or a project.
        author: recorded in the events of the facts.

    Raises:
        MemoryToolError: the command cannot be done.
    """

    def __init__(self, agent_id: UUID, user_id: str, author: facts.Author) -> None:
        self._scope = {"tenant_id": required_tenant_id(), "agent_id": agent_id, "user_id": user_id}
        self._author = author
        self.changed: list[UUID] = []
        """The facts that were written."""

    def run(self, call: Mapping[str, Any]) -> str:
        """Run a command, which a language model wrote with its parameters.

        Raises:
            MemoryToolError: the command cannot be done, or there is no such command.
        """
        given = {name: value for name, value in call.items() if value is not None}
        command = str(given.pop("command", ""))
        known = PARAMETERS.get(command, {})
        wrong = [
            *(known.keys() - given.keys() - OPTIONAL),
            *(name for name in given if not isinstance(given[name], known.get(name, ()))),
            *(name for name, value in given.items() if not is_unicode(str(value))),
        ]
        if command not in PARAMETERS or wrong:
            names = ", ".join(sorted(wrong))
            raise MemoryToolError(f"Error: Invalid command {command!r}, or parameters: {names}")
        return str(getattr(self, command)(**given))

    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """Return a file with line numbers, or the files of a directory with their sizes."""
        place = _checked(path)
        file = self._file(place)
        if file is None:
            return self._listing(path, place)
        lines = file.content.split("\n")
        match view_range or [1, -1]:
            case [int(first), int(last)]:
                first = max(first, 1)
            case _:
                raise MemoryToolError(f"Error: Invalid `view_range` parameter: {view_range}")
        shown = lines[first - 1 : len(lines) if last == -1 else last]
        return f"Here's the content of {path} with line numbers:\n{_numbered(shown, first)}"

    def create(self, path: str, file_text: str) -> str:
        """Create a file."""
        place = _checked(path)
        self._lock()
        self._refuse_taken(place, f"Error: File {path} already exists")
        if self._below(ROOT).count() >= MAX_FILES:
            raise MemoryToolError(f"Error: There are {MAX_FILES:,} files; delete some first")
        self._write(place, file_text)
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace a text that is in the file once."""
        self._lock()
        file = self._existing_file(path, ". Please provide a valid path.")
        found = re.finditer(re.escape(old_str), file.content) if old_str else ()
        lines = [file.content.count("\n", 0, place.start()) + 1 for place in found]
        if not lines:
            raise MemoryToolError(
                f"No replacement was performed, old_str `{old_str}` did not appear verbatim in"
                f" {path}."
            )
        if len(lines) > 1:
            raise MemoryToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in"
                f" lines: {', '.join(map(str, lines))}. Please ensure it is unique"
            )
        content = file.content.replace(old_str, new_str)
        self._write(file.external_id or "", content)
        first = max(lines[0] - CONTEXT_LINES, 1)
        snippet = content.split("\n")[first - 1 : lines[0] + CONTEXT_LINES]
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line"
            f" numbers):\n{_numbered(snippet, first)}"
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert a text after a line; 0: at the beginning."""
        self._lock()
        file = self._existing_file(path)
        lines = file.content.removesuffix("\n").split("\n")
        if not 0 <= insert_line <= len(lines):
            raise MemoryToolError(
                f"Error: Invalid `insert_line` parameter: {insert_line}. It should be within the"
                f" range of lines of the file: [0, {len(lines)}]"
            )
        lines.insert(insert_line, insert_text.removesuffix("\n"))
        self._write(file.external_id or "", "\n".join(lines) + "\n")
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a directory with its files."""
        place = _checked(path)
        if place == ROOT:
            raise MemoryToolError(f"Error: Cannot delete the {ROOT} directory itself")
        self._lock()
        for file in self._existing(path, place):
            self._retract(file, f"deleted {path}")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Rename or move a file, or a directory with its files."""
        old, new = _checked(old_path), _checked(new_path)
        self._lock()
        files = self._existing(old_path, old)
        if new == ROOT or old == ROOT or new.startswith(f"{old}/"):
            raise MemoryToolError(f"Error: Cannot rename {old_path} to {new_path}")
        self._refuse_taken(new, f"Error: The destination {new_path} already exists")
        for file in files:
            moved = _checked(new + (file.external_id or "").removeprefix(old))
            self._retract(file, f"renamed to {moved}")
            # Embedding a long text takes a second.
            is_current = file.embedding_model == model_version()
            self._write(moved, file.content, file.embedding if is_current else None)
        return f"Successfully renamed {old_path} to {new_path}"

    def _lock(self) -> None:
        """Do commands that write one after the other."""
        name = f"konstruct.files {self._scope['agent_id']} {self._scope['user_id']}"
        execute("SELECT public.wait_for_tenant_lock(%s)", [name])

    def _files(self) -> facts.MemoryEntryQuerySet:
        return MemoryEntry.objects.filter(**self._scope).as_of().defer("embedding")

    def _file(self, place: str) -> MemoryEntry | None:
        return self._files().filter(external_id=place).first()

    def _below(self, place: str) -> facts.MemoryEntryQuerySet:
        return self._files().filter(external_id__startswith=f"{place}/").order_by("external_id")

    def _existing(self, path: str, place: str) -> list[MemoryEntry]:
        file = self._file(place)
        files = [*self._below(place)] if file is None else [file]
        if not files:
            raise MemoryToolError(f"Error: The path {path} does not exist")
        return files

    def _existing_file(self, path: str, hint: str = "") -> MemoryEntry:
        file = self._file(_checked(path))
        if file is None:
            raise MemoryToolError(f"Error: The path {path} does not exist{hint}")
        return file

    def _refuse_taken(self, place: str, error: str) -> None:
        """Refuse a path that is a file or a directory, or below a file."""
        parts = place.split("/")
        above = ["/".join(parts[:count]) for count in range(3, len(parts) + 1)]
        is_taken = self._files().filter(external_id__in=above).exists()
        if place == ROOT or is_taken or self._below(place).exists():
            raise MemoryToolError(error)

    def _write(self, place: str, content: str, embedding: Any = None) -> None:
        limit = settings.MAX_MESSAGE_CHARACTERS
        if len(content) > limit:
            raise MemoryToolError(f"Error: {place} would have more than {limit:,} characters")
        if is_blank(content):
            raise MemoryToolError(f"Error: {place} would be empty; give text, or delete it")
        entry = MemoryEntry(**self._scope, external_id=place, content=content, embedding=embedding)
        self.changed.append(service.LongTermMemory().remember(entry, author=self._author).memory_id)

    def _retract(self, file: MemoryEntry, reason: str) -> None:
        lifecycle.retract(file.memory_id, author=self._author, reason=reason)
        self.changed.append(file.memory_id)

    def _listing(self, path: str, place: str) -> str:
        sizes = {place: 0}
        for name, content in self._below(place).values_list("external_id", "content"):
            parts = (name or "")[len(place) + 1 :].split("/")
            if any(part.startswith(".") or part == "node_modules" for part in parts):
                continue
            size = len(content.encode())
            sizes[place] += size
            for level in range(1, min(len(parts), MAX_LEVELS) + 1):
                shown = "/".join([place, *parts[:level]]) + "/" * (level < len(parts))
                sizes[shown] = sizes.get(shown, 0) + size
        if len(sizes) == 1 and place != ROOT and not self._below(place).exists():
            raise MemoryToolError(f"The path {path} does not exist. Please provide a valid path.")
        lines = "\n".join(f"{_size(size)}\t{shown}" for shown, size in sizes.items())
        return (
            f"Here're the files and directories up to {MAX_LEVELS} levels deep in {path}, excluding"
            f" hidden items and node_modules:\n{lines}"
        )


def _checked(path: str) -> str:
    """Return the path without a slash at its end; refuse one that is not below ROOT."""
    place = path.rstrip("/")
    if place != ROOT and not place.startswith(f"{ROOT}/"):
        raise MemoryToolError(f"Error: Path must start with {ROOT}, got: {path}")
    parts = unquote(place).replace("\\", "/").split("/")[1:]
    if any(part in ("", ".", "..") for part in parts):
        raise MemoryToolError(f"Error: Path {path} would escape {ROOT} directory")
    if problem := "is too long" if len(place) > MAX_PATH_CHARACTERS else id_problem(place):
        raise MemoryToolError(f"Error: The path {problem}")
    return place


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def _size(size: int) -> str:
    """Return a number of bytes as `du -h` does: 512B, 1.5K."""
    return f"{size}B" if size < 1024 else f"{size / 1024:.1f}K"
