"""Searches an archive from the command line, without a server and without Django's settings.

python -m memory.archive search FILE "question"
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memory.archive.manager import MemoryManager
from tenants.exceptions import KonstructError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, or 1 after an error that was printed."""
    parser = argparse.ArgumentParser(prog="python -m memory.archive", description=__doc__)
    parser.add_argument("command", choices=["search"])
    parser.add_argument("file", type=Path, help="an archive, such as an export")
    parser.add_argument("question", help="the text to search for")
    parser.add_argument("--limit", type=int, default=5, help="hits of each kind (default: 5)")
    options = parser.parse_args(arguments)
    if not options.file.is_file():
        parser.error(f"there is no file {str(options.file)!r}")
    try:
        lines = _search(options.file, options.question, options.limit)
    except KonstructError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _search(file: Path, question: str, limit: int) -> list[str]:
    """Return the lines that list the hits."""
    with MemoryManager(file) as archive:
        messages = archive.search(question, limit)
        facts = archive.search_facts(question, limit)
        lines = ["Messages" if messages else "Messages: none"]
        for hit in messages:
            message = hit.message
            title = archive.get_conversation(message.conversation_id).title
            where = f" in {_line(title)}" if title else ""
            opening = f"{hit.similarity:5.2f}  {message.timestamp:%Y-%m-%d %H:%M} UTC"
            lines.append(f"{opening}  {message.role}{where}: {_line(message.content)}")
    lines.append("Facts" if facts else "Facts: none")
    for fact in facts:
        about = f" (about {_line(fact.user_id)})" if fact.user_id else ""
        lines.append(f"{fact.similarity:5.2f}  {_line(fact.content)}{about}")
    return lines


def _line(text: str) -> str:
    """Return the text on one line, without characters that control a terminal."""
    line = " ".join(text.split())
    return "".join(character if character.isprintable() else "�" for character in line)


if __name__ == "__main__":
    raise SystemExit(main())
