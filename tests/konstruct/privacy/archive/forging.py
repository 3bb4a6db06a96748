"""Change archives, with matching digests."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from konstruct.privacy.archive.exporting import digest_of


def forge(path: Path, kind: str, change: Callable[[list[Any]], None]) -> None:
    """Change the rows of a kind in place, and the manifest with them."""
    with opened(path) as sqlite:
        rows = [
            json.loads(row)
            for (row,) in sqlite.execute(
                "SELECT row FROM exported WHERE kind = ? ORDER BY position", (kind,)
            )
        ]
        change(rows)
        forge_text(sqlite, kind, [json.dumps(row, sort_keys=True) for row in rows])


@contextmanager
def opened(path: Path) -> Iterator[apsw.Connection]:
    """Open the file in SQLite. Close it afterwards, without its journal."""
    sqlite = apsw.Connection(str(path))
    try:
        yield sqlite
    finally:
        sqlite.close()


def forge_text(sqlite: apsw.Connection, kind: str, rows: list[str]) -> None:
    """Replace the rows of a kind, and the manifest with them."""
    sqlite.execute("DELETE FROM exported WHERE kind = ?", (kind,))
    sqlite.executemany(
        "INSERT INTO exported VALUES (?, ?, ?)",
        [(kind, position, row) for position, row in enumerate(rows)],
    )
    [(document,)] = sqlite.execute("SELECT document FROM manifest")
    manifest = json.loads(document)
    manifest["counts"][kind], manifest["sha256"][kind] = digest_of(rows)
    sqlite.execute("UPDATE manifest SET document = ?", (json.dumps(manifest),))
