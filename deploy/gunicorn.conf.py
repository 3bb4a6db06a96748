"""The web process, alike under `manage.py serve` and in the container.

Whatever gunicorn can be told may be overridden by GUNICORN_CMD_ARGS.
"""

import os
from signal import Signals
from typing import Any

from gunicorn.glogging import Logger

from konstruct.processes import bind_to_parent


class AccessLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's, without the health checks that come every few seconds."""

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: Any) -> None:
        """Log a request."""
        if not environ["PATH_INFO"].startswith("/health/"):
            super().access(resp, req, environ, request_time)


wsgi_app = "konstruct.wsgi:application"
bind = f"{os.environ.get('KONSTRUCT_HOST', '127.0.0.1')}:{os.environ.get('PORT', '8000')}"
workers = 2
worker_class = "gthread"
# Most requests wait: for Postgres, or with ?wait= for a reply.
threads = 16
graceful_timeout = 10
# The most that it can be: ids in a query may be of 255 characters of any script.
limit_request_line = 8190
logger_class = AccessLogger
accesslog = "-"
access_log_format = "%(m)s %(U)s %(s)s %(M)s ms"
control_socket_disable = True


def post_fork(arbiter: Any, worker: Any) -> None:
    """Die with the arbiter: an orphan would keep the port from the arbiter's successor."""
    bind_to_parent(Signals.SIGKILL, arbiter.pid)
