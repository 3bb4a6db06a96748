"""The log of the production server: requests cannot inject lines."""

import contextlib
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from konstruct.api.auth.keys import parse_key
from konstruct.api.models import ApiKey
from tenants.context import tenant_scope
from tests.konstruct.api.live import WORKER, running, serving
from tests.konstruct.conftest import MESSAGES, Program

ATTACKS = [
    b"GET /x%0aPOST%20/admin/%20200%1b[31m HTTP/1.1\r\nHost: localhost",
    b"GET /x%0d%0a2026-01-01%2000:00:00,000%20ERROR%20forged HTTP/1.1\r\nHost: localhost",
    b"GET /%c2%85%e2%80%a8%e2%80%ae%ff%fe%9b HTTP/1.1\r\nHost: localhost",
    b"GET /api/v1/%0aforged%1b]0;title%07/ HTTP/1.1\r\nHost: localhost",
    b"GET / HTTP/1.1\r\nHost: a\x1b[31m\x9bb",
    b"GET / HTTP/1.1\r\nHost: evil%0aforged.example",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: a\x1b[31m",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a\x1b[31m\x9b\xe2\x80\xa8",
    b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nReferer: http://a/\x1b[31m%0a"
    b"\r\nContent-Length: 0",
    b"\x1b[31m / HTTP/1.1\r\nHost: localhost",
]
# The id, the name, the thread and the words of a person.
CANARY = "canary-of-a-person"
# A record, or a continuation of the previous one.
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ \S+ \[\S+( \w+=\S+)*\]: |  ")


def send_attacks(url: str) -> None:
    there = urlsplit(url)
    for attack in ATTACKS:
        with socket.create_connection((there.hostname, there.port), 60) as client:
            client.sendall(attack + b"\r\nConnection: close\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                while client.recv(65536):
                    pass


def test_no_request_forges_a_line_or_speaks_to_the_terminal(
    process_environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with serving(process_environment, log) as url:
        send_attacks(url)
    written = log.read_bytes().decode()
    lines = written.removesuffix("\n").split("\n")
    assert [line for line in lines if not line.isprintable() or not LINE.match(line)] == []
    # A path without a route can have any text.
    assert ": GET - 404 " in written


def key_id(program: Program) -> str:
    text = parse_key(program.key)
    assert text is not None
    with tenant_scope(program.tenant.id):
        return str(ApiKey.objects.get(prefix=text.prefix).pk)


def test_each_line_is_an_object_that_names_the_request_the_tenant_and_the_key(
    process_environment: dict[str, str], program_a: Program, program_b: Program, tmp_path: Path
) -> None:
    """Requests of two tenants, with and without a valid key, in turns on the same threads."""
    log = tmp_path / "log"
    ids = {
        "a": (str(program_a.tenant.id), key_id(program_a)),
        "b": (str(program_b.tenant.id), key_id(program_b)),
        "wrong": (None, None),
        "none": (None, None),
    }
    keys = {"a": program_a.key, "b": program_b.key, "wrong": f"{program_a.key}0", "none": ""}
    environment = {**process_environment, "LOG_FORMAT": "json", "WEB_THREADS": "2"}
    with (
        running(WORKER, environment, log),
        serving(environment, log) as url,
        httpx.Client(timeout=60) as client,
    ):

        def ask(number: int) -> None:
            caller = list(keys)[number % len(keys)]
            headers = {"X-Request-ID": f"{caller}-{number}"}
            if keys[caller]:
                headers["Authorization"] = f"Bearer {keys[caller]}"
            path = f"{MESSAGES}{program_a.tenant.id}/" if number % 3 else "/api/v1/agents/"
            client.get(url + path, headers=headers)

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(ask, range(48)))
        for program, name in ((program_a, "a"), (program_b, "b")):
            client.post(
                f"{url}{MESSAGES}?wait=30",
                headers={"Authorization": f"Bearer {program.key}", "X-Request-ID": f"{name}-said"},
                json={
                    "agent": program.agent.name, "user_id": "maria", "thread_id": "t",
                    "content": "My cat is called Findus.",
                },
            )  # fmt: skip
        authorized = {"Authorization": f"Bearer {program_a.key}"}
        for path in (f"users/{CANARY}/timeline/", f"{CANARY}/", f"messages/?user_id={CANARY}"):
            client.get(f"{url}/api/v1/{path}", headers=authorized)
        for wrong in ({}, {"metadata": {CANARY: [CANARY]}, "role": CANARY}):
            body = {"agent": program_a.agent.name, "user_id": CANARY, "thread_id": CANARY,
                    "name": CANARY, "content": CANARY, "external_id": CANARY, **wrong}  # fmt: skip
            client.post(f"{url}{MESSAGES}?wait=30", headers=authorized, json=body)
            client.post(f"{url}/api/v1/facts/", headers=authorized, json=body)
            client.post(f"{url}{MESSAGES}import/", headers=authorized, json={"messages": [body]})
        send_attacks(url)
    written = log.read_bytes().decode("ascii")
    assert CANARY not in written
    printed_by_celery = ("", "worker: Warm shutdown (MainProcess)")
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in written.splitlines() if line not in printed_by_celery
    ]
    assert all({"timestamp", "level", "logger", "event"} <= line.keys() for line in lines)
    for line in lines:
        name, dash, _ = line.get("request_id", "").partition("-")
        if dash and name in ids:
            assert (line.get("tenant_id"), line.get("key_id")) == ids[name]
    access = [line for line in lines if line["logger"] == "konstruct.access"]
    named = {line.get("request_id") for line in access}
    assert {f"{list(keys)[n % 4]}-{n}" for n in range(48)} | {"a-said", "b-said"} <= named
    (entry,) = (line for line in access if line["request_id"] == "b-said")
    assert (entry["method"], entry["path"], entry["status"]) == ("POST", MESSAGES, 200)
    compiled = [line for line in lines if line["event"] == "working_context_compiled"]
    assert sorted(line["tenant_id"] for line in compiled) == sorted([ids["a"][0], ids["b"][0]])
    assert {line["task_name"] for line in compiled} == {"reply"}
    assert "Findus" not in written
