"""A mail server on loopback that stores accepted mails, and can refuse them."""

import contextlib
import socket
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller

TAKEN = "250 OK"


class MailServer:
    """Mails, oldest first, with their recipients; and the answers to the next ones."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.answers: list[str] = []
        """Answers to recipients, each for one mail; then all are taken."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)

    def start(self) -> None:
        """Accept mails from now on."""
        self._controller.start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        self._controller.stop()

    async def handle_RCPT(  # noqa: N802 (aiosmtpd's name)
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        """Accept or refuse a recipient."""
        answer = self.answers.pop(0) if self.answers else TAKEN
        if answer == TAKEN:
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        """Store a mail."""
        mail = message_from_bytes(envelope.content, policy=policy.default)
        self.mails.append(mail)
        self.recipients.append(list(envelope.rcpt_tos))
        return TAKEN


@contextlib.contextmanager
def mail_server() -> Iterator[MailServer]:
    """Run a mail server that accepts mails."""
    server = MailServer()
    server.start()
    try:
        yield server
    finally:
        with contextlib.suppress(Exception):  # a test may have stopped it
            server.stop()
