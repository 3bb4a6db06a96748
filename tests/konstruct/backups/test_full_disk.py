"""A full disk at any moment of a backup: an error, and no incomplete backup."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from konstruct.local.services import binaries
from tenants.models import Tenant
from tests import database
from tests.konstruct.backups.conftest import Backup
from tests.konstruct.conftest import SendMessage
from tests.konstruct.running import PROJECT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.data]

# Runs a program with its own mounts. Root stays root, who may use the socket of Postgres.
MOUNT_NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
# Mounts a disk of the given size in kB for this process only, backs up there, and lists the files.
_ON_A_SMALL_DISK = """
mount -t tmpfs -o size=$1k tmpfs "$2" || exit 99
"$3" manage.py backup "$2"
status=$?
for each in "$2"/*; do test -e "$each" && echo "left: ${each##*/}" >&2; done
for each in "$2"/konstruct-*Z; do test -e "$each" && "$3" manage.py verify_backup "$each"; done
exit $status
"""


def mounts() -> bool:
    """Return whether this account may mount a disk for a process."""
    command = ["mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return (
            subprocess.run(
                [*MOUNT_NAMESPACE, *command], capture_output=True, check=False
            ).returncode
            == 0
        )
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not mounts(), reason="needs the right to mount a small disk")
def test_a_backup_onto_a_disk_that_is_full_at_any_moment_is_not_there(
    tenant_a: Tenant,
    tenant_b: Tenant,
    send_message: SendMessage,
    backup: Backup,
    process_environment: dict[str, str],
    journal_file: Path,
    tmp_path: Path,
) -> None:
    for tenant in (tenant_a, tenant_b):
        send_message(tenant, "My dog is called Rex.")
    pages = sum(-(-file.stat().st_size // 4096) for file in backup().iterdir())
    with database.as_owner():
        Tenant.objects.update(backed_up_at=None)
    disk = tmp_path / "disk"
    disk.mkdir()

    environment = {
        **process_environment,
        "ERASURE_JOURNAL": str(journal_file),
        "PATH": f"{binaries()}:{os.environ['PATH']}",
    }

    def on_a_disk_of(kilobytes: int) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", _ON_A_SMALL_DISK, "sh"]
        return subprocess.run(
            [*MOUNT_NAMESPACE, *command, str(kilobytes), str(disk), sys.executable],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    # In the first dump, in the second, and in the last file before the manifest.
    for part in (0.25, 0.75, 0.98):
        ran = on_a_disk_of(int(pages * part) * 4)
        assert ran.returncode == 1, ran
        assert "o space left on device" in ran.stderr
        assert "left: " not in ran.stderr
        assert not Tenant.objects.filter(backed_up_at__isnull=False).exists()
    ran = on_a_disk_of(pages * 4 + 64)
    assert ran.returncode == 0, ran
    assert "is whole: 2 tenants" in ran.stdout
