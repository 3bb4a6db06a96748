"""What can be wrong inside an archive that SQLite can open."""

from itertools import islice

import apsw

from memory.archive.database.schema import recorded_dimensions

# How many problems are named: one damaged page can make thousands.
NAMED = 5

_DISAGREEMENTS = {
    "{} embeddings have no vector": (
        "SELECT count(*) FROM embeddings WHERE number NOT IN (SELECT rowid FROM vectors)"
    ),
    "{} vectors have no embedding": (
        "SELECT count(*) FROM vectors WHERE rowid NOT IN (SELECT number FROM embeddings)"
    ),
    "{} messages have an embedding_id that is not there": (
        # Not by NOT IN, which holds for messages without one, too, when there are no embeddings.
        "SELECT count(*) FROM messages WHERE embedding_id IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM embeddings WHERE embeddings.id = messages.embedding_id)"
    ),
}


def problems(connection: apsw.Connection) -> list[str]:
    """What does not agree in the file, at most a few of each kind; empty if all is well."""
    found = [
        row[0] for row in connection.execute(f"PRAGMA integrity_check({NAMED})") if row[0] != "ok"
    ]
    found += [
        f"row {row} of {table} refers to a row of {parent} that is not there"
        for table, row, parent, _ in islice(connection.execute("PRAGMA foreign_key_check"), NAMED)
    ]
    # Without a table of vectors in this file, they are kept elsewhere.
    if not found and recorded_dimensions(connection) is not None:
        for problem, query in _DISAGREEMENTS.items():
            if count := connection.execute(query).get:
                found.append(problem.format(count))
    return found
