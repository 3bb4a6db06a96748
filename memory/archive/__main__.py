"""Searches an archive from the command line, without a server and without Django's settings.

python -m memory.archive search FILE "question"
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memory.archive.manager import MemoryManager
from tenants.exceptions import KonstructError

MAX_HITS = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, or 1 after an error that was printed."""
    given = _parser().parse_args(arguments)
    try:
        lines = _search(given.file, given.question, given.limit)
    except KonstructError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memory.archive", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    search = commands.add_parser(
        "search", help="find the messages and facts that are nearest in meaning to a question"
    )
    search.add_argument("file", type=_existing_file, help="an archive, such as an export")
    search.add_argument("question", help="what you want to know, in your own words")
    search.add_argument(
        "--limit", type=_limit, default=5, help="hits of each kind, at most (default: 5)"
    )
    return parser


def _search(file: Path, question: str, limit: int) -> list[str]:
    """Return the lines that list the hits."""
    with MemoryManager(file) as archive:
        messages = archive.search(question, limit)
        facts = archive.search_facts(question, limit)
        titles = {
            id: archive.get_conversation(id).title
            for id in {hit.message.conversation_id for hit in messages}
        }
    lines = ["Messages" if messages else "Messages: none"]
    for hit in messages:
        message, title = hit.message, _line(titles[hit.message.conversation_id])
        where = f" in {title}" if title else ""
        opening = f"{hit.similarity:5.2f}  {message.timestamp:%Y-%m-%d %H:%M} UTC  {message.role}"
        lines.append(f"{opening}{where}: {_line(message.content)}")
    lines.append("Facts" if facts else "Facts: none")
    for fact in facts:
        about = f" (about {_line(fact.user_id)})" if fact.user_id else ""
        lines.append(f"{fact.similarity:5.2f}  {_line(fact.content)}{about}")
    return lines


def _line(text: str) -> str:
    """The text on one line, without characters that control a terminal."""
    words = " ".join(text.split())
    return "".join(each if each.isprintable() else "�" for each in words)


def _existing_file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text!r}")
    return path


def _limit(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MAX_HITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MAX_HITS}")
    return number


if __name__ == "__main__":
    raise SystemExit(main())
