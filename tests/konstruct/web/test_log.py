"""The log of the production server: what a request holds cannot write lines of its own into it."""

import contextlib
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from tests.konstruct.api.live import serving

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
# A record, or what belongs to the one before.
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ \S+ \[\S+\]: |\[\d{4}-|  ")


def test_no_request_forges_a_line_or_speaks_to_the_terminal(
    process_environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with serving(process_environment, log) as url:
        there = urlsplit(url)
        for attack in ATTACKS:
            with socket.create_connection((there.hostname, there.port), 60) as client:
                client.sendall(attack + b"\r\nConnection: close\r\n\r\n")
                with contextlib.suppress(ConnectionResetError):
                    while client.recv(65536):
                        pass
    written = log.read_bytes().decode()
    lines = written.removesuffix("\n").split("\n")
    assert [line for line in lines if not line.isprintable() or not LINE.match(line)] == []
    assert r"Not Found: /x\nPOST /admin/ 200\x1b[31m" in written
    assert "GET /x%0aPOST%20/admin/%20200%1b[31m 404" in written
