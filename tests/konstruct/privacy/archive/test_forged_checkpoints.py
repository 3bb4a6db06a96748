"""An archive's checkpoints are data: values that would run code are refused without an import."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from django.core.management import CommandError, call_command

from konstruct.privacy.archive.exporting import ArchiveRefused
from konstruct.privacy.archive.importing import import_memory
from memory.context import SessionStore
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Tenant
from tests.konstruct.privacy.archive.forging import forge
from tests.memory.context.checkpoints.attacks import json_attacks, msgpack_attacks

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

# All of them are in tests/memory/context/checkpoints/test_serializer.py.
ATTACKS = [("msgpack", "call-0"), ("msgpack", "in-a-list"), ("json", "lc-2")]


def put(type_: str, value: bytes | None) -> Callable[[list[Any]], None]:
    def change(rows: list[Any]) -> None:
        rows[0] |= {"type": type_, "blob": None if value is None else f"\\x{value.hex()}"}

    return change


def is_empty(tenant: Tenant) -> bool:
    with tenant_scope(tenant.id):
        return not Message.objects.exists() and not SessionStore().list_sessions()


@pytest.mark.parametrize("kind", ["checkpoint_blobs", "checkpoint_writes"])
@pytest.mark.parametrize(("encoding", "attack"), ATTACKS)
def test_checkpoint_with_code_is_refused_by_row_and_class(
    archive: Path, tenant_b: Tenant, kind: str, encoding: str, attack: str
) -> None:
    made = archive.parent / "made"
    attacks = {"msgpack": msgpack_attacks, "json": json_attacks}[encoding](made)
    forge(archive, kind, put(encoding, dict(attacks)[attack]))
    with pytest.raises(
        CommandError,
        match=rf"its {kind} cannot be imported: row 0 \(thread 'thread'\) a checkpoint's value",
    ):
        call_command("import_memory", "--tenant", "tenant-b", str(archive))
    assert is_empty(tenant_b)
    assert not made.exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("pickle", b"cos\nsystem\n"), "the encoding 'pickle'"),
        (put("msgpack", b"\xc1"), "not readable msgpack"),
        (lambda rows: rows[0].update(blob="\\001abc"), "not written in hexadecimal"),
        (lambda rows: rows[0].update(blob=["\\x00"]), "no encoding and value"),
        (lambda rows: rows.__setitem__(0, [1]), "is no JSON object"),
        (lambda rows: rows[0].pop("blob"), "not readable msgpack"),
        (lambda rows: rows[0].pop("channel"), "has no channel"),
        (lambda rows: rows.append(rows[0] | {"extra": 1}), "row 1 has other fields"),
    ],
)
def test_a_value_that_konstruct_does_not_write_is_refused(
    archive: Path, tenant_b: Tenant, change: Callable[[list[Any]], None], reason: str
) -> None:
    forge(archive, "checkpoint_blobs", change)
    with pytest.raises(ArchiveRefused, match=reason):
        import_memory(tenant_b, archive)
    assert is_empty(tenant_b)


def test_custom_class_is_accepted_if_configured(
    archive: Path, tenant_b: Tenant, settings: Any
) -> None:
    value = ormsgpack.packb([ormsgpack.Ext(0, ormsgpack.packb(["shop.state", "Mood", "good"]))])
    forge(archive, "checkpoint_blobs", put("msgpack", value))
    with pytest.raises(ArchiveRefused, match=r"shop.state.Mood.*name it in CHECKPOINT_TYPES"):
        import_memory(tenant_b, archive)
    assert is_empty(tenant_b)
    settings.CHECKPOINT_TYPES = ["shop.state.Mood"]
    import_memory(tenant_b, archive)
    assert [session.thread_id for session in SessionStore(tenant_b.id).list_sessions()] == [
        "thread"
    ]
