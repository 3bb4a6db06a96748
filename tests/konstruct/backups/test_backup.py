"""A backup is complete or absent. An incomplete or changed one is refused before any change."""

import json
import re
import stat
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings as given
from django.core.management.base import CommandError
from psycopg.errors import LockNotAvailable

from konstruct.backups.dumping import MANIFEST, backups_in, remove_old
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.privacy.erasure import erasing
from tenants import journal, postgres_tools
from tenants.context import fetch_value, tenant_scope
from tenants.models import OperatorEvent, Tenant
from tests import database
from tests.konstruct.backups.conftest import BY, Backup, owner_works, run, texts, without_room
from tests.konstruct.conftest import SendMessage
from tests.tenants.schemas.test_migrate import forget_migration

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def fingerprint(tenant: Tenant) -> list[Any]:
    """Return a tenant's rows with the transactions that wrote them."""
    with database.cleaner("default").cursor() as cursor:
        cursor.execute(f"SET app.current_tenant = '{tenant.id}'")
        cursor.execute(
            f"SELECT id, content, xmin::text FROM {tenant.schema_name}.memory_message ORDER BY 1"
        )
        rows = cursor.fetchall()
        cursor.execute("RESET app.current_tenant")
    state = Tenant.objects.values("state", "state_before", "migrated_to", "server").get(
        pk=tenant.pk
    )
    return [rows, state]


def test_a_backup_is_for_its_owner_alone_and_names_no_secret(
    tenant_a: Tenant, send_message: SendMessage, backup: Backup
) -> None:
    send_message(tenant_a, "My dog is called Rex.")
    made = backup()
    assert re.fullmatch(r"konstruct-\d{8}T\d{6}Z", made.name)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in made.iterdir()} == {0o600}
    manifest = json.loads((made / MANIFEST).read_text())
    assert set(manifest["files"]) == {file.name for file in made.iterdir()} - {MANIFEST}
    (entry,) = [tenant for tenant in manifest["tenants"] if tenant["slug"] == "tenant-a"]
    assert entry["id"] == str(tenant_a.id)
    assert "memory.0001_initial" in entry["migrations"]
    text = (made / MANIFEST).read_text()
    for secret in (given.SECRET_KEY, *given.CHANNEL_TOKEN_KEYS):
        assert secret not in text
    assert "Rex" not in text
    assert "is whole: 2 tenants" in run("verify_backup", made)
    tenant = Tenant.objects.get(pk=tenant_a.pk)
    assert tenant.backed_up_at == datetime.fromisoformat(entry["as_of"])
    event = OperatorEvent.objects.get(detail__command="backup")
    assert event.detail["folder"] == made.name


def test_backup_of_one_tenant_has_no_data_of_another(
    tenant_a: Tenant, tenant_b: Tenant, send_message: SendMessage, backup: Backup
) -> None:
    send_message(tenant_a, "Zyxomma")
    send_message(tenant_b, "Quokkasaurus")
    made = backup("--tenant", "tenant-a")
    dumps = list(made.glob("*.dump"))
    assert [dump.name for dump in dumps] == [f"{tenant_a.schema_name}.dump"]
    program = postgres_tools.import_string(given.POSTGRES_BIN)() / "pg_restore"
    text = subprocess.run([program, "--file=-", *dumps], capture_output=True, check=True).stdout
    assert b"Zyxomma" in text
    assert b"Quokkasaurus" not in text
    with pytest.raises(CommandError, match=r"has no tenant 'tenant-b'\. It has tenant-a"):
        run("restore", made, "--tenant", "tenant-b", "--yes")


def cut_off(made: Path, name: str) -> None:
    path = made / name
    path.write_bytes(path.read_bytes()[:-100])


def one_bit(made: Path, name: str) -> None:
    path = made / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def removed(made: Path, name: str) -> None:
    (made / name).unlink()


@pytest.mark.parametrize(
    ("change", "kind"), [(cut_off, MANIFEST), (one_bit, "dump"), (removed, "jobs.jsonl")]
)
def test_changed_backup_is_refused_without_changes(
    tenant_a: Tenant,
    send_message: SendMessage,
    backup: Backup,
    change: Callable[[Path, str], None],
    kind: str,
) -> None:
    send_message(tenant_a, "My dog is called Rex.")
    made = backup("--tenant", "tenant-a")
    before = fingerprint(tenant_a)
    name = kind if kind == MANIFEST else f"{tenant_a.schema_name}.{kind}"
    if (made / name).stat().st_size == 0 and change is not removed:
        (made / name).write_text("{}\n")
    else:
        change(made, name)
    for command in (["verify_backup", made], ["restore", made, "--tenant", "tenant-a", "--yes"]):
        with pytest.raises(CommandError, match=r"backup|manifest|digest|read"):
            run(*map(str, command))
    assert fingerprint(tenant_a) == before


def test_an_edited_manifest_is_refused(tenant_a: Tenant, backup: Backup) -> None:
    made = backup("--tenant", "tenant-a")
    manifest = json.loads((made / MANIFEST).read_text())
    manifest["tenants"][0]["id"] = "../../etc"
    (made / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(CommandError, match=r"manifest\.json does not fit: it was changed"):
        run("restore", made, "--all", "--yes")


def test_backup_of_another_secret_key_is_refused(
    tenant_a: Tenant, backup: Backup, settings: Any
) -> None:
    made = backup("--tenant", "tenant-a")
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another" * 10
    with pytest.raises(CommandError, match="added to SECRET_KEY_FALLBACKS"):
        run("verify_backup", made)
    settings.SECRET_KEY_FALLBACKS = [former]
    assert "is whole" in run("verify_backup", made)


def test_the_dump_of_another_tenant_is_refused(
    tenant_a: Tenant, tenant_b: Tenant, backup: Backup, monkeypatch: Any
) -> None:
    made = backup()
    # As if a deployment had signed the wrong file.
    monkeypatch.setattr(
        "konstruct.backups.dumping.dump_name", lambda pk: f"{tenant_b.schema_name}.dump"
    )
    before = fingerprint(tenant_b)
    with pytest.raises(CommandError, match="is not a dump of the tenant 'tenant-a' alone"):
        run("restore", made, "--tenant", "tenant-a", "--yes")
    assert fingerprint(tenant_b) == before


def test_a_restore_that_fails_puts_the_tenant_back(
    tenant_a: Tenant, send_message: SendMessage, backup: Backup
) -> None:
    made = backup("--tenant", "tenant-a")
    send_message(tenant_a, "This came later.")
    before = fingerprint(tenant_a)
    with without_room():
        run("restore", made, "--tenant", "tenant-a", "--yes")
    assert fingerprint(tenant_a) == before
    send_message(tenant_a, "And goes on.")


@pytest.mark.data
def test_interrupted_replay_leaves_the_tenant_closed_and_continues(
    tenant_a: Tenant, send_message: SendMessage, backup: Backup, monkeypatch: Any
) -> None:
    for user in ("anna", "bella", "ben"):
        send_message(tenant_a, f"I am {user}.", user)
    made = backup("--tenant", "tenant-a")
    with tenant_scope(tenant_a.id):
        request_erasure("anna", by=BY)
        request_erasure("bella", by=BY)
    owner_works()
    calls, carry_out = [], erasing.carry_out

    def killed_at_the_second(request: Any, **options: Any) -> Any:
        calls.append(request)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return carry_out(request, **options)

    monkeypatch.setattr(erasing, "carry_out", killed_at_the_second)
    with pytest.raises(CommandError, match="interrupted"):
        run("restore", made, "--tenant", "tenant-a", "--yes")
    assert Tenant.objects.get(pk=tenant_a.pk).state == "restoring"
    monkeypatch.setattr(erasing, "carry_out", carry_out)
    run("restore", made, "--tenant", "tenant-a", "--yes")
    assert Tenant.objects.get(pk=tenant_a.pk).state == "active"
    assert texts(tenant_a)[0] == "I am ben."
    assert len(texts(tenant_a)) == 2


@pytest.mark.data
def test_damaged_journal_stops_the_restore_of_a_tenant(
    tenant_a: Tenant, backup: Backup, journal_file: Path, settings: Any
) -> None:
    journal.append(tenant_a.id, "rows", rows=[])
    made = backup("--tenant", "tenant-a")
    before = fingerprint(tenant_a)
    journal_file.write_text("")
    with pytest.raises(CommandError, match="another journal, or an older copy"):
        run("restore", made, "--tenant", "tenant-a", "--yes")
    journal_file.unlink()
    with pytest.raises(CommandError, match="cannot be used: No such file"):
        run("restore", made, "--tenant", "tenant-a", "--yes")
    settings.ERASURE_JOURNAL = ""
    with pytest.raises(CommandError, match="pass --without-journal"):
        run("restore", made, "--tenant", "tenant-a", "--yes")
    assert fingerprint(tenant_a) == before
    run("restore", made, "--tenant", "tenant-a", "--without-journal", "--yes")


@pytest.mark.data
def test_full_disk_is_an_error_without_leftovers(
    tenant_a: Tenant, backup: Backup, tmp_path: Path, monkeypatch: Any
) -> None:
    real = postgres_tools.dump_schema
    monkeypatch.setattr(
        "tenants.postgres_tools.dump_schema",
        lambda *arguments: real(*arguments, "--file=/dev/full"),
    )
    with pytest.raises(CommandError, match="there is no space left in"):
        backup("--tenant", "tenant-a")
    assert list((tmp_path / "backups").iterdir()) == []
    assert Tenant.objects.get(pk=tenant_a.pk).backed_up_at is None


def test_a_tenant_that_fails_does_not_stop_the_others(
    tenant_a: Tenant, tenant_b: Tenant, backup: Backup, tmp_path: Path
) -> None:
    with database.cleaner("default").cursor() as cursor:
        cursor.execute(f"ALTER SCHEMA {tenant_a.schema_name} RENAME TO lost")
    try:
        with pytest.raises(CommandError, match="not backed up: tenant-a: ") as error:
            backup()
    finally:
        with database.cleaner("default").cursor() as cursor:
            cursor.execute(f"ALTER SCHEMA lost RENAME TO {tenant_a.schema_name}")
    assert error.value.returncode == 4
    (made,) = backups_in(tmp_path / "backups")
    assert "is whole: 1 tenants" in run("verify_backup", made)


def test_no_migration_is_recorded_during_a_dump(
    tenant_a: Tenant, backup: Backup, monkeypatch: Any
) -> None:
    """What replaces the schema waits as well: it needs a stronger lock."""
    real, refused = postgres_tools.dump_schema, list[str]()

    def dump(*args: Any) -> None:
        with (
            psycopg.connect(database.url_of("owner"), options="-c lock_timeout=50ms") as other,
            pytest.raises(LockNotAvailable) as error,
        ):
            other.execute(f"DELETE FROM {tenant_a.schema_name}.django_migrations")
        refused.append(str(error.value))
        real(*args)

    monkeypatch.setattr("tenants.postgres_tools.dump_schema", dump)
    run("verify_backup", backup("--tenant", "tenant-a"))
    assert len(refused) == 1


@pytest.mark.data
def test_hostile_names_reach_no_path_and_no_program(
    tenant_a: Tenant, backup: Backup, tmp_path: Path
) -> None:
    hostile = "../../$(touch x);'\"<b>\n"
    Tenant.objects.filter(pk=tenant_a.pk).update(name=hostile)
    with database.cleaner("default").cursor() as cursor:
        cursor.execute(
            "UPDATE public.tenants_tenant SET slug = '--file=x' WHERE id = %s", [tenant_a.id]
        )
    try:
        made = backup()
        assert made.parent == tmp_path / "backups"
        assert {dump.name.partition(".")[0] for dump in made.glob("t_*")} == {
            tenant.schema_name for tenant in Tenant.objects.all()
        }
        run("restore", made, "--tenant=--file=x", "--yes")
        assert Tenant.objects.get(pk=tenant_a.pk).name == hostile
    finally:
        Tenant.objects.filter(pk=tenant_a.pk).update(name="Tenant-A")
        with database.cleaner("default").cursor() as cursor:
            cursor.execute(
                "UPDATE public.tenants_tenant SET slug = 'tenant-a' WHERE id = %s", [tenant_a.id]
            )


@pytest.mark.data
def test_old_backups_are_removed_and_the_newest_is_kept(
    tenant_a: Tenant, backup: Backup, tmp_path: Path
) -> None:
    directory = tmp_path / "backups"
    old = datetime.now(UTC) - timedelta(days=40)
    for days in (0, 1):
        (directory / f"konstruct-{old + timedelta(days=days):%Y%m%dT%H%M%SZ}").mkdir(parents=True)
    (directory / "konstruct-of-mine").mkdir()
    elsewhere = directory.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / MANIFEST).touch()
    (directory / "konstruct-20200101T000000Z").symlink_to(elsewhere)
    assert len(remove_old(directory, days=30)) == 1
    made = backup("--keep-days", "30")
    assert backups_in(directory) == [directory / "konstruct-20200101T000000Z", made]
    assert (elsewhere / MANIFEST).exists()
    assert (directory / "konstruct-of-mine").is_dir()


@pytest.mark.data
def test_a_restore_asks_before_it_replaces(
    tenant_a: Tenant, backup: Backup, monkeypatch: Any
) -> None:
    made = backup("--tenant", "tenant-a")
    before = fingerprint(tenant_a)
    statements: list[str] = []

    def answer(question: str) -> str:
        statements.append(question)
        return "no"

    monkeypatch.setattr("builtins.input", answer)
    with pytest.raises(CommandError, match="not restored"):
        run("restore", made, "--tenant", "tenant-a")
    assert "are lost. Type tenant-a to confirm" in statements[0]
    assert fingerprint(tenant_a) == before


@pytest.mark.data
def test_a_backup_of_an_older_version_is_migrated(tenant_a: Tenant, backup: Backup) -> None:
    with database.as_owner():
        forget_migration(tenant_a)
    run("restore", backup("--tenant", "tenant-a"), "--tenant", "tenant-a", "--yes")
    with tenant_scope(tenant_a.id):
        assert fetch_value("SELECT count(*) FROM django_migrations WHERE app = 'isolation'") == 1
    assert Tenant.objects.get(pk=tenant_a.pk).state == "active"


@pytest.mark.data
def test_a_newer_versions_backup_is_refused(
    tenant_a: Tenant, backup: Backup, monkeypatch: Any
) -> None:
    made = backup("--tenant", "tenant-a")
    known = frozenset({"memory.0000_earlier"})
    monkeypatch.setattr("tenants.schemas.migrating.known_migrations", lambda: known)
    before = fingerprint(tenant_a)
    with pytest.raises(CommandError, match="migrations that this version does not know"):
        run("restore", made, "--tenant", "tenant-a", "--yes")
    assert fingerprint(tenant_a) == before
