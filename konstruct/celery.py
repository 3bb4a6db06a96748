"""The Celery application of web, worker and beat, with its broker's transport and scheduler."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery, Task
from celery.beat import Scheduler as CeleryScheduler
from celery.signals import beat_init, task_postrun, task_prerun
from kombu.transport import TRANSPORT_ALIASES, redis as kombu_redis
from redis.exceptions import ConnectionError as BrokerDown, ResponseError
from structlog.contextvars import bind_contextvars, unbind_contextvars

from konstruct import __version__
from konstruct.heartbeats import BEAT, touch_heartbeat_file, write_heartbeat
from tenants.outages import outage_reason

logger = logging.getLogger(__name__)


class Scheduler(CeleryScheduler):
    """Celery's scheduler with the schedule in memory: all tasks are due within seconds."""

    _is_failing = False

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send a task that is due. A broker that is down is logged once, not at each task."""
        touch_heartbeat_file()
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except Exception as error:  # retried when the task is due again
            if not self._is_failing:
                logger.error("No task can be sent: %s", outage_reason(error))  # noqa: TRY400
            self._is_failing = True
            return
        if self._is_failing:
            self._is_failing = False
            logger.warning("Tasks are sent again")
        write_heartbeat(BEAT)


class Channel(kombu_redis.Channel):
    """A channel that raises BrokerDown after it is closed.

    When the broker is lost, Celery closes the channel. Later calls, such as the acknowledgement of
    a task that was running, need the connection that kombu 5.7.0 has just removed: the worker ends
    with AttributeError: 'NoneType' object has no attribute 'hostname' or 'client'. Celery handles a
    lost connection. A task that is lost with it loses no work: the outbox sends it again.
    """

    @contextmanager
    def conn_or_acquire(self, client: Any = None) -> Iterator[Any]:
        """Yield a client of the broker; raise BrokerDown if the channel is closed."""
        if client is None and getattr(self.connection, "client", None) is None:
            raise BrokerDown("the connection to the broker is closed")
        with super().conn_or_acquire(client) as broker_client:
            yield broker_client


class Transport(kombu_redis.Transport):
    """Kombu's transport for Redis with this Channel.

    A broker that refuses writes, in a failover or because of a full disk, is a lost connection:
    otherwise Celery ends the worker.
    """

    Channel = Channel
    connection_errors = (*kombu_redis.Transport.connection_errors, ResponseError)

    def establish_connection(self) -> Any:
        """Connect to a broker that takes writes. Celery tries again after some seconds."""
        touch_heartbeat_file()
        transport: Any = super().establish_connection()
        try:
            transport._avail_channels[-1].client.set("public:takes_writes", 1, ex=1)
        except self.connection_errors:
            transport._avail_channels.pop().close()
            raise
        return transport


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")

TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "konstruct.celery:Transport"))
app = Celery("konstruct")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@beat_init.connect
def _start_beat(**kwargs: Any) -> None:
    """Log the schedule, write the first heartbeat, and serve metrics."""
    from konstruct.metrics import serve  # needs the apps to be loaded

    tasks = [
        f"{entry['task']} every {entry['schedule']:g} s"
        for entry in app.conf.beat_schedule.values()
    ]
    logger.info("Konstruct %s: beat starts, and sends %s", __version__, ", ".join(tasks))
    write_heartbeat(BEAT)
    serve()


@task_prerun.connect
def _bind_task_to_log(task_id: str, task: Task, **kwargs: Any) -> None:
    """Add the task to its log lines."""
    bind_contextvars(task_name=task.name, task_id=task_id)


@task_postrun.connect
def _unbind_task_from_log(**kwargs: Any) -> None:
    """Remove the task from further log lines of this thread."""
    unbind_contextvars("task_name", "task_id")
