"""The examination of a deployment: each part of it in a thread, and all within a time limit."""

import logging
import threading
import time
from contextlib import suppress
from typing import Final

from psycopg.errors import InsufficientPrivilege

from konstruct.doctor import machine, postgres, stores
from konstruct.doctor.answers import Answer, Finding, Report, Subject, wrong
from tenants.exceptions import KonstructError, detail_of
from tenants.postgresql.pool import call_before_connect

# For all subjects together: they are examined at the same time.
TIMEOUT_SECONDS: Final = 5.0
CONNECTION: Final = "connection"
GRANT: Final = "Grant the privileges that the check 'missing privileges' names."


class Examination:
    """The examination of one subject."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._answers: list[Answer] = []
        # The first one is being checked.
        self._pending = [CONNECTION, *subject.checks]
        # A daemon, since it may wait for a server for ever while the process is to end.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._subject.connect():
                del self._pending[0]
                while self._pending:
                    self._check(self._pending[0])
                    del self._pending[0]
        except Exception as error:
            if self._pending:
                self._add_answer(CONNECTION, wrong(_reason(error), self._subject.remedy))
                self._pending.clear()

    def _check(self, name: str) -> None:
        try:
            for finding in self._subject.checks[name]():
                self._add_answer(name, finding)
        except Exception as error:
            reason = f"It could not be checked: {_reason(error)}"
            remedy = GRANT if _is_refused(error) else self._subject.remedy
            self._add_answer(name, wrong(reason, remedy))

    def _add_answer(self, check: str, finding: Finding) -> None:
        name = self._subject.name
        self._answers.append(Answer(check, name, finding.status, finding.text, finding.remedy))

    def answers(self, deadline: float) -> list[Answer]:
        """Wait until the deadline, by time.monotonic(), and return the answers so far.

        The check that is not done by then is wrong, and names the checks after it.
        """
        self._thread.join(max(0.0, deadline - time.monotonic()))
        pending = list(self._pending)
        if pending and self._thread.is_alive():
            later = f" Not checked: {', '.join(pending[1:])}." if pending[1:] else ""
            remedy = f"{self._subject.remedy} On a busy machine: a longer --timeout."
            self._add_answer(pending[0], wrong(f"No answer in time.{later}", remedy.strip()))
        return list(self._answers)


def examine(seconds: float = TIMEOUT_SECONDS) -> Report:
    """Examine the deployment with the settings of this process. Nothing is changed.

    Args:
        seconds: limit for the whole examination.

    Returns:
        The answers in the order of subjects and checks.
    """
    with suppress(KonstructError):  # which its connections raise, too
        call_before_connect()
    started = time.monotonic()
    logging.disable(logging.ERROR)  # each outage is an answer
    try:
        examinations = [Examination(subject) for subject in subjects()]
        answers = [
            answer
            for examination in examinations
            for answer in examination.answers(started + seconds)
        ]
    finally:
        logging.disable(logging.NOTSET)
    return Report(answers, time.monotonic() - started)


def subjects() -> list[Subject]:
    """Return the parts of this deployment, as the settings name them."""
    return [*machine.subjects(), *stores.subjects(), *postgres.subjects()]


def _is_refused(error: Exception) -> bool:
    return isinstance(error.__cause__, InsufficientPrivilege)


def _reason(error: Exception) -> str:
    """Return an error in one line, without a traceback and without passwords."""
    return " ".join(detail_of(error).split())
