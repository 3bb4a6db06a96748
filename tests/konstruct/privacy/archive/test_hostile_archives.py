"""Hostile archives: refused with bounded work and without changes."""

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
import sqlite_vec

from konstruct.privacy.archive import exporting as manifests, importing
from konstruct.privacy.archive.exporting import ArchiveRefused
from konstruct.privacy.archive.importing import import_memory
from memory.archive import ArchiveDamaged, SQLiteManager
from memory.models import Message
from tenants.context import tenant_scope
from tenants.exceptions import KonstructError
from tenants.models import Tenant
from tests.konstruct.privacy.archive.forging import forge_text, opened

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
    " SELECT 'messages' AS kind, i AS position, '{}' AS row FROM n"
)
CROSSED = (
    "SELECT 'messages' AS kind, a.position, a.row FROM kept AS a, kept AS b, kept AS c, kept AS d"
)
# Each replaces an imported table by an object that SQLite runs, or that no export writes.
SCHEMAS = {
    "endless view": f"ALTER TABLE exported RENAME TO kept; CREATE VIEW exported AS {ENDLESS}",
    "crossed view": f"ALTER TABLE exported RENAME TO kept; CREATE VIEW exported AS {CROSSED}",
    "view of the manifest": f"DROP TABLE manifest; CREATE VIEW manifest AS {ENDLESS}",
    "computed column": (
        "DROP TABLE exported; CREATE TABLE exported (kind TEXT, position INTEGER,"
        " row TEXT AS (hex(zeroblob(100000000))))"
    ),
    "added column": "ALTER TABLE manifest ADD COLUMN more TEXT AS (hex(zeroblob(9))) VIRTUAL",
    "fts": "DROP TABLE exported; CREATE VIRTUAL TABLE exported USING fts5(kind, position, row)",
    "other constraint": (
        "DROP TABLE manifest;"
        "CREATE TABLE manifest (document TEXT NOT NULL CHECK (length(document) > 0)) STRICT"
    ),
    "disguised": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql ="
        f" 'CREATE VIEW exported AS {ENDLESS.replace(chr(39), chr(39) * 2)}', rootpage = 0"
        " WHERE name = 'exported'"
    ),
}


def change(path: Path, sql: str) -> None:
    """Run SQL in the file without restrictions."""
    sqlite = apsw.Connection(str(path))
    sqlite.enable_load_extension(True)
    sqlite.load_extension(sqlite_vec.loadable_path())
    sqlite.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    sqlite.pragma("journal_mode", "delete")
    sqlite.execute(sql)
    sqlite.close()


def refused(tenant: Tenant, path: Path, error: type[Exception], reason: str) -> None:
    before, beside = path.read_bytes(), sorted(os.listdir(path.parent))
    with pytest.raises(error, match=reason):
        import_memory(tenant, path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == beside
    with tenant_scope(tenant.id):
        assert not Message.objects.exists()


@pytest.mark.long
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_that_is_not_an_exports_is_refused(
    archive: Path, tenant_b: Tenant, schema: str
) -> None:
    change(archive, SCHEMAS[schema])
    refused(tenant_b, archive, KonstructError, "is not read|is damaged|no export of a tenant")


@pytest.mark.long
def test_reading_takes_steps_in_proportion_to_the_file(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "MIN_STEPS", 1_000_000)
    monkeypatch.setattr(manifests, "STEPS_PER_BYTE", 1)
    with (
        pytest.raises(ArchiveDamaged, match="interrupted"),
        manifests.open_archive(archive) as (file, _),
    ):
        file.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchall()


@pytest.mark.long
def test_cyclic_pages_are_not_followed(archive: Path, tenant_b: Tenant) -> None:
    """A tree whose inner pages name the same page many times has endless rows."""
    with SQLiteManager(archive) as file:
        ((root,),) = file.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'manifest'")
        ((size,),) = file.rows("PRAGMA page_size")
    content = bytearray(archive.read_bytes())
    first = (root - 1) * size
    cells = 100
    page = bytearray(size)
    page[0:12] = bytes(
        [5, 0, 0, 0, cells, *(size - 6 * cells).to_bytes(2, "big"), 0]
    ) + root.to_bytes(4, "big")
    for cell in range(cells):
        place = size - 6 * (cell + 1)
        page[12 + 2 * cell : 14 + 2 * cell] = place.to_bytes(2, "big")
        page[place : place + 5] = root.to_bytes(4, "big") + bytes([cell])
    content[first : first + size] = page
    archive.write_bytes(content)
    refused(tenant_b, archive, KonstructError, "is damaged")


@pytest.mark.long
def test_text_that_is_not_utf_8_is_refused(archive: Path, tenant_b: Tenant) -> None:
    change(archive, "UPDATE exported SET row = CAST(x'7b22ff227d' AS TEXT) WHERE kind = 'messages'")
    refused(tenant_b, archive, ArchiveDamaged, "is damaged")


@pytest.mark.long
def test_log_beside_the_archive_is_not_ignored(archive: Path, tenant_b: Tenant) -> None:
    Path(f"{archive}-wal").write_bytes(b"x")
    refused(tenant_b, archive, ArchiveRefused, "a.db-wal beside .* holds part of its data")


@pytest.mark.long
def test_a_file_that_changes_while_it_is_read_is_refused(
    archive: Path, tenant_b: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checked content is the imported content."""
    with manifests.open_archive(archive) as (file, manifest):
        other = replace(manifest, sha256=manifest.sha256 | {"messages": manifest.sha256["facts"]})
        (messages,) = (kind for kind in manifests.kinds() if kind.name == "messages")
        assert [len(batch) for batch in importing.batches_of(file, messages, manifest)] == [2]
        with pytest.raises(ArchiveRefused, match="its messages have another digest than its"):
            list(importing.batches_of(file, messages, other))
    with manifests.open_archive(archive) as (file, _):
        monkeypatch.setattr(manifests, "open_archive", lambda path: nullcontext((file, other)))
        refused(tenant_b, archive, ArchiveRefused, "its messages have another digest")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 2}, "has format 2"),
        ({"format": True}, "cannot be read"),
        ({"counts": [1]}, "cannot be read"),
        ({"tenant": "\x1b[31m"}, "cannot be read"),
        ({"tenant_id": "x"}, "cannot be read"),
        ({"more": 1}, "cannot be read"),
    ],
    ids=str,
)
def test_a_manifest_that_no_export_writes_is_refused(
    archive: Path, tenant_b: Tenant, change: dict[str, Any], reason: str
) -> None:
    with opened(archive) as sqlite:
        [(document,)] = sqlite.execute("SELECT document FROM manifest")
        sqlite.execute(
            "UPDATE manifest SET document = ?", (json.dumps(json.loads(document) | change),)
        )
    refused(tenant_b, archive, ArchiveRefused, reason)


@pytest.mark.parametrize(
    "row",
    ["[" * 100_000, "1" * 10_000, "[]", '{"id": 1', '{"id": NaN}', '{"id": "\\ud800"}',
     '{"tenant_id": "x", "id": "y"}'],
    ids=lambda row: row[:20],
)  # fmt: skip
def test_invalid_row_is_refused(archive: Path, tenant_b: Tenant, row: str) -> None:
    with opened(archive) as sqlite:
        forge_text(sqlite, "agents", [row])
    refused(tenant_b, archive, ArchiveRefused, "its agents cannot be imported|which this version")


def test_an_empty_file_is_none(tmp_path: Path, tenant_b: Tenant) -> None:
    (tmp_path / "empty.db").touch()
    refused(tenant_b, tmp_path / "empty.db", ArchiveRefused, "is empty")
