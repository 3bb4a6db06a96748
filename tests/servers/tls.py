"""TLS in front of a local server, with a certificate for localhost."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.nginx import certify


@contextmanager
def tls_in_front(port: int, folder: Path) -> Iterator[int]:
    """Forward TLS connections to a local port. Yield the port for clients.

    The certificate is written into the folder, as `certificate.pem`.
    """
    certify(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            _copy(reader, to_writer), _copy(to_reader, writer), return_exceptions=True
        )

    loop = asyncio.new_event_loop()
    listening = asyncio.start_server(forward, "127.0.0.1", 0, ssl=context)
    server = loop.run_until_complete(listening)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()
