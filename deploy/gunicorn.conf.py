"""The web process, alike under `manage.py serve` and in the container.

Whatever gunicorn can be told may be overridden by GUNICORN_CMD_ARGS.
"""

import gc
import os
import resource
from signal import Signals
from typing import Any

import django
from django.conf import settings

from konstruct.processes import bind_to_parent, return_freed_memory, share_malloc_heaps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
# gunicorn's first lines, too, have the form of LOG_FORMAT.
logconfig_dict = settings.LOGGING
wsgi_app = "konstruct.asgi:application"
bind = f"{os.environ.get('KONSTRUCT_HOST', '127.0.0.1')}:{os.environ.get('PORT', '8000')}"
workers = 2
worker_class = "konstruct.web.worker.Worker"
# An idle connection costs a socket and no thread.
keepalive = 15
graceful_timeout = 10
control_socket_disable = True

# Each connection is an open file, and the usual limit of 1,024 is soon reached.
MAX_FILES = 65_536


def on_starting(arbiter: Any) -> None:
    """Load Django and the embedding model once, before there are workers, which share them."""
    share_malloc_heaps()
    django.setup(set_prefix=False)
    from memory.embedding.embedder import load_before_fork  # needs the apps to be loaded

    load_before_fork()
    gc.freeze()


def post_fork(arbiter: Any, worker: Any) -> None:
    """Die with the arbiter: an orphan would keep the port from the arbiter's successor."""
    bind_to_parent(Signals.SIGKILL, arbiter.pid)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = MAX_FILES if most == resource.RLIM_INFINITY else min(most, MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    return_freed_memory()
    from konstruct.metrics import serve  # needs the apps to be loaded

    serve()
