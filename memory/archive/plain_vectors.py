"""An archive's vectors, read from the tables in which vec0 keeps them, without vec0.

For files that are not trusted: sqlite-vec believes what stands in those tables. Their layout is
that of sqlite-vec 0.1.
"""

from collections import OrderedDict
from collections.abc import Iterator

import apsw

from memory.archive.exceptions import ArchiveDamaged

# Chunks of 1,024 vectors that are kept at hand; vectors of different models lie in different ones.
_CHUNKS_HELD = 8
_FLOAT_BYTES = 4

_PLACES = """
SELECT embeddings.id, model_version, chunk_id, chunk_offset
FROM embeddings JOIN vectors_rowids ON vectors_rowids.rowid = number ORDER BY number
"""
_CHUNK = "SELECT vectors FROM vectors_vector_chunks00 WHERE rowid = ?"


def stored_vectors(connection: apsw.Connection) -> Iterator[tuple[str, str, bytes]]:
    """Id, model and vector of each embedding, in the order in which they were stored.

    Raises:
        ArchiveDamaged: a vector does not stand where the file says.
    """
    dimensions = connection.execute("SELECT value FROM properties WHERE name = 'dimensions'").get
    size = _FLOAT_BYTES * dimensions if isinstance(dimensions, int) else 0
    chunks: OrderedDict[int, bytes] = OrderedDict()
    for id, model_version, chunk, offset in connection.execute(_PLACES):
        if chunk not in chunks:
            found = connection.execute(_CHUNK, (chunk,)).get
            chunks[chunk] = found if isinstance(found, bytes) else b""
            if len(chunks) > _CHUNKS_HELD:
                chunks.popitem(last=False)
        chunks.move_to_end(chunk)
        place = offset * size if isinstance(offset, int) else -1
        vector = chunks[chunk][place : place + size] if place >= 0 else b""
        if not size or len(vector) != size:
            raise ArchiveDamaged(f"the vector of {id!r} does not stand where the file says")
        yield id, model_version, vector
