#!/usr/bin/env python
"""Django's command line, as the database role that the command needs."""

import io
import os
import sys
from signal import SIGPIPE

# Commands of Django and django-tenants that change a tenant outside of its context, or without
# an entry in a log, or do not work with these tables; and what to run instead. Code that calls
# call_command is trusted.
REFUSED = {
    "all_tenants_command": "run a command of Konstruct with --tenant SLUG, or enter each tenant by"
    " tenants.context.tenant_scope in manage.py shell",
    "clone_tenant": "run manage.py create_tenant SLUG, then manage.py export_memory and manage.py"
    " import_memory",
    "collectstatic_schemas": "files of the pages are the same for all tenants and need no command;"
    " a proxy that serves them takes manage.py collectstatic",
    "create_domain": "add a domain on the tenant's page of the operators' admin, or with manage.py"
    " create_tenant SLUG --domain NAME",
    "create_missing_schemas": "run manage.py create_tenant SLUG again, which finishes what was"
    " interrupted; manage.py list_tenants shows the state of each",
    "create_tenant_superuser": "run manage.py create_tenant_admin --tenant SLUG --username NAME,"
    " which records it in the access log",
    "delete_domain": "remove the domain on the tenant's page of the operators' admin",
    "dumpdata": "run manage.py export_memory for a tenant, or manage.py backup for all",
    "flush": "run manage.py delete_tenant SLUG, or manage.py erase_user for one person",
    "generateschema": "run manage.py spectacular, which writes the OpenAPI description",
    "loaddata": "run manage.py import_memory or manage.py import_history",
    "rename_schema": "a schema is named after the tenant's id, which manage.py list_tenants shows;"
    " the name of a tenant is changed in the operators' admin",
    "tenant_command": "run a command of Konstruct with --tenant SLUG, or enter the tenant by"
    " tenants.context.tenant_scope in manage.py shell",
    "test": "run make test, or pytest with the files that you want",
    "testserver": "run manage.py demo, which makes tenants to try, or make test",
}


def main() -> None:
    """Run a management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
    try:
        from django.core.management import execute_from_command_line

        from tenants.naming import OWNER_COMMANDS
    except ImportError as error:
        sys.exit(f"manage.py: {error}. Run `make setup`, then use .venv/bin/python.")
    command = sys.argv[1] if sys.argv[1:] else ""
    if command in REFUSED:
        sys.stderr.write(f"CommandError: {command} is refused: {REFUSED[command]}\n")
        sys.exit(2)
    if command in OWNER_COMMANDS:
        os.environ.setdefault("KONSTRUCT_DB_ROLE", "owner")
    if command == "worker" and not os.environ.get("DATABASE_POOL_SIZE"):
        os.environ["DATABASE_POOL_SIZE"] = "10"  # hundreds of threads, most of which wait
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # who reads a log does not wait for its end
    try:
        execute_from_command_line(sys.argv)
    except BrokenPipeError:  # such as `list_tenants | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        sys.exit(128 + SIGPIPE)


if __name__ == "__main__":
    main()
