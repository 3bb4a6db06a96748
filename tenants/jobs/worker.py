"""Worker processes: a process that dies or hangs loses its leases within seconds.

A process has one row on each server (`tenants_worker`), and one thread that renews it. However many
jobs the process leases, that is one statement every RENEW_SECONDS. The same thread ends the leases
of processes with an expired row, by the clock of Postgres; their jobs are due at once. A process
that was stopped meanwhile finds its row gone, and begins anew with another id.

The thread has its own connections. One that waited for a connection of the pool could wait as
long as a lease is valid.

A process without `start`, such as a command, leases jobs until the time limit of a job.
"""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import UUID, uuid4

from django.db import DatabaseError, InterfaceError, connections

from tenants.context import connection, fetch_value, server_scope
from tenants.jobs.lease import end_abandoned
from tenants.outages import outage_reason
from tenants.servers import servers

logger = logging.getLogger(__name__)

RENEW_SECONDS: Final = 2.0
# A process that has renewed nothing for so long counts as dead.
VALID_SECONDS: Final = 10.0

_RENEW = "SELECT public.renew_worker(%s, make_interval(secs => %s), %s)"
_RETURN = "SELECT public.return_expired_jobs()"
_GIVE_BACK = "SELECT public.give_back_jobs(%s)"


class _Process:
    """This process: its id, and on which servers the id is known."""

    def __init__(self) -> None:
        self.id = uuid4()
        self.pid = os.getpid()
        self.known: set[str] = set()
        self.ended = threading.Event()

    def run(self) -> None:
        """Renew until `ended`."""
        with _separate_connections():
            while not self.ended.wait(RENEW_SECONDS):
                renew()
                with suppress(DatabaseError, InterfaceError):  # it is tried again
                    end_abandoned()


@contextmanager
def _separate_connections() -> Iterator[None]:
    """Run the block with separate connections of this thread to the servers, not of a pool."""
    shared = {server: connections[server] for server in servers()}
    for server, wrapper in shared.items():
        connections[server] = wrapper.copy()
    try:
        yield
    finally:
        for server, wrapper in shared.items():
            connections[server].close()
            connections[server] = wrapper


_process: _Process | None = None


def start() -> None:
    """Register this process, and keep it registered by a thread. Once for each process.

    Raises:
        OperationalError: a server cannot be reached.
    """
    global _process
    if _process is None or _process.pid != os.getpid():
        _process = _Process()
        renew()
        threading.Thread(target=_process.run, name="leases", daemon=True).start()


def this_worker() -> UUID | None:
    """Return the id of this process; None if it was not started as a worker."""
    return None if _process is None or _process.pid != os.getpid() else _process.id


def renew() -> None:
    """Renew this process on each server, and end the leases of processes that have expired.

    A process that finds itself expired, or a server that was away, waits for one turn before it
    ends those of others: they may be late for the same reason.
    """
    process = _process
    if process is None:
        return
    for server in servers():
        try:
            with server_scope(server):
                connection.close_if_broken()
            with server_scope(server), connection.cursor() as cursor:
                is_new = server not in process.known
                cursor.execute(_RENEW, [process.id, VALID_SECONDS, is_new])
                if not cursor.fetchone()[0]:
                    logger.warning("Leases of this process have expired: it was stopped for long")
                    process.id, process.known = uuid4(), set()
                    renew()
                    return
                process.known.add(server)
                if is_new:
                    continue
                cursor.execute(_RETURN)
                if count := cursor.fetchone()[0]:
                    logger.warning("%s jobs of workers that died are due again", count)
        except (DatabaseError, InterfaceError) as error:  # the process must go on to renew
            logger.warning("Leases are not renewed: %s", outage_reason(error))
            process.known.discard(server)


def give_back_all() -> int:
    """End this process as a worker: its jobs are due at once, their attempts do not count.

    For a process that stops. Later writes of its threads are refused. Returns the
    number of jobs.
    """
    process, count = _process, 0
    if process is None:
        return 0
    process.ended.set()
    with _separate_connections():
        for server in process.known:
            try:
                with server_scope(server):
                    count += fetch_value(_GIVE_BACK, [process.id])
            except (DatabaseError, InterfaceError) as error:
                logger.warning("Jobs are due when the leases expire: %s", outage_reason(error))
    return count
