"""A real nginx with deploy/nginx.conf in front of web processes, with its own certificate."""

import os
import shutil
import signal
import ssl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import create_server

import psutil
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.end_to_end.deployment import PROJECT, eventually

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")

# The configuration around a file that is included in the http block.
MAIN_CONFIGURATION = """
daemon off;
{user}
error_log stderr warn;
pid {folder}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/konstruct.conf;
}}
"""


class Nginx:
    """nginx in front of web processes at two local ports, in its own folder."""

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        self.http, self.https = free_ports(2)
        self._folder, self._ports = folder, ports

    @contextmanager
    def running(self) -> Iterator["Nginx"]:
        """Run nginx during the block."""
        certify(self._folder)
        self._configure()
        user = "user root;" if os.geteuid() == 0 else ""  # nginx's user must enter the folder
        (self._folder / "nginx.conf").write_text(
            MAIN_CONFIGURATION.format(folder=self._folder, user=user)
        )
        with (self._folder / "nginx.log").open("w") as log:
            self._process = psutil.Popen(
                [str(NGINX), "-p", self._folder, "-c", self._folder / "nginx.conf"], stderr=log
            )
            try:
                yield self
            finally:
                self._process.terminate()
                self._process.wait(30)

    def trust(self) -> ssl.SSLContext:
        """Return a client context that trusts the certificate."""
        return ssl.create_default_context(cafile=str(self._folder / "certificate.pem"))

    def send_nothing_to(self, port: int | None) -> None:
        """Mark a web process as down, or none. Return when nginx has no request there."""
        before = self._process.children()
        self._configure(down=port)
        self._process.send_signal(signal.SIGHUP)
        eventually(
            lambda: not any(process.is_running() for process in before), "old workers are there"
        )

    def _configure(self, down: int | None = None) -> None:
        config = (PROJECT / "deploy" / "nginx.conf").read_text()
        for original, replacement in {
            "listen 80;": f"listen 127.0.0.1:{self.http};",
            "listen 443 ssl;": f"listen 127.0.0.1:{self.https} ssl;",
            "127.0.0.1:8000": f"127.0.0.1:{self._ports[0]}",
            "127.0.0.1:8001": f"127.0.0.1:{self._ports[1]}",
            ".example.com;": ".localhost;",
            "/etc/ssl/konstruct/fullchain.pem": f"{self._folder}/certificate.pem",
            "/etc/ssl/konstruct/privkey.pem": f"{self._folder}/key.pem",
        }.items():
            assert original in config
            config = config.replace(original, replacement)
        config = config.replace(f":{down} max_fails=0;", f":{down} max_fails=0 down;")
        (self._folder / "konstruct.conf").write_text(config)


def free_ports(count: int) -> list[int]:
    """Return free ports."""
    with ExitStack() as opened:
        servers = [opened.enter_context(create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


def certify(folder: Path) -> None:
    """Write a self-signed certificate of the hosts, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
