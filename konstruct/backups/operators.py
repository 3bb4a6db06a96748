"""The operators of a deployment, their permissions and their log in a backup."""

import json
from pathlib import Path
from typing import Any, Final

from konstruct.backups.files import PUBLIC, Manifest, backup_name, check_file
from tenants.audit.operator_log import record_command
from tenants.exceptions import InvalidTenant
from tenants.models import OperatorEvent
from tenants.postgres_tools import insert_rows, read_rows, run, session_on
from tenants.servers import MAIN

# Tables of the public schema that operators need to log in, in the order of the restore. Rows of
# tenants in public tables are dumped with the tenant; migrations create the others.
PUBLIC_TABLES: Final = (
    "django_content_type",
    "auth_permission",
    "auth_group",
    "auth_group_permissions",
    "auth_user",
    "auth_user_groups",
    "auth_user_user_permissions",
    "tenants_operatorevent",
)
_SUBJECT: Final = "operators"


def dump_operators(folder: Path) -> None:
    """Write the operators into the folder of a backup."""
    with session_on(MAIN) as session, (folder / PUBLIC).open("x") as file:
        run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for table in PUBLIC_TABLES:
            for row in read_rows(session, f"public.{table}"):
                file.write(f'{{"table":"{table}","row":{row}}}\n')


def restore_operators(path: Path, manifest: Manifest) -> bool:
    """Restore the operators, their permissions and their log into a deployment that has none.

    Returns:
        False if they are those of this backup already, as after a restore that was killed later.

    Raises:
        BackupInvalid: the backup does not have them.
        InvalidTenant: there are operators or tenants already. Nothing was changed.
    """
    detail_of_backup = {"detail__command": "restore", "detail__backup": backup_name(manifest)}
    if OperatorEvent.objects.filter(subject=_SUBJECT, **detail_of_backup).exists():
        return False
    check_file(path, manifest, PUBLIC)
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in PUBLIC_TABLES}
    with (path / PUBLIC).open() as file:
        for line in file:
            document = json.loads(line)
            rows[document["table"]].append(document["row"])
    with session_on(MAIN) as session, session.transaction():
        for table in ("auth_user", "tenants_tenant"):
            if run(session, f"SELECT 1 FROM public.{table} LIMIT 1"):  # noqa: S608
                raise InvalidTenant(
                    "there are operators or tenants here: --public restores into an empty"
                    " deployment, after manage.py migrate. Without --public, operators stay as"
                    " they are"
                )
        for table in reversed(PUBLIC_TABLES):
            run(session, f"DELETE FROM public.{table}")  # noqa: S608
        for table in PUBLIC_TABLES:
            insert_rows(session, f"public.{table}", rows[table])
            if "id" in (rows[table] or [{}])[0]:
                run(
                    session,
                    f"SELECT setval(pg_get_serial_sequence('public.{table}', 'id'),"  # noqa: S608
                    f" (SELECT max(id) FROM public.{table}))",
                )
    record_command("restore", "restore", _SUBJECT, backup=backup_name(manifest))
    return True
