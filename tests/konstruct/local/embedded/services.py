"""Read the processes of the embedded services, and run SQL and the module's command."""

import subprocess

import psycopg
import redis

from konstruct.local import services
from konstruct.local.embedded import SERVICES
from tests.konstruct.running import run_python

USER = """
import sys
from konstruct.local import embedded
embedded.ensure()
print("ready", flush=True)
sys.stdin.read()
"""


def wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def leave(process: subprocess.Popen[str]) -> None:
    process.communicate("")
    assert process.returncode == 0


def supervisor() -> int:
    return int((services.home() / "supervisord.pid").read_text())


def postmaster() -> int:
    return int((SERVICES["postgres"].data / "postmaster.pid").read_text().split()[0])


def valkey_server() -> int:
    with redis.Redis.from_url(services.redis_url()) as client:
        return client.info("server")["process_id"]


def sql(query: str, role: str = "owner", database: str = "konstruct") -> list[tuple]:
    with psycopg.connect(services.database_url(role, database), autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else []


def may_connect(user: str, password: str | None) -> bool:
    try:
        psycopg.connect(
            host=str(services.socket_directory()),
            user=user,
            dbname="konstruct",
            password=password,
            passfile=str(services.socket_directory() / "none"),
        ).close()
    except psycopg.OperationalError as error:
        if "password" not in str(error):
            raise
        return False
    return True


def embedded_command(*arguments: str) -> tuple[int, str, str]:
    ran = run_python("-m", "konstruct.local.embedded", *arguments)
    return ran.returncode, ran.stdout, ran.stderr
