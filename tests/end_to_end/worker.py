"""The worker of all queues, with orders to die at any step.

    python -m tests.end_to_end.worker DIRECTORY

A file in the directory is called `before STEP` or `after STEP`. The first process at that point
removes the file and kills itself with SIGKILL. The product has no code for this.
"""

import functools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Every step of handle_message and of embed_and_store: module, function.
STEPS = [
    ("konstruct.orchestrator.pipeline.respond", "answer"),
    ("konstruct.orchestrator.pipeline.respond", "gather_context"),
    ("konstruct.orchestrator.pipeline.respond", "build_prompt"),
    ("konstruct.orchestrator.runner", "run_agent"),
    ("konstruct.orchestrator.pipeline.respond", "record_reply"),
    ("konstruct.orchestrator.pipeline.respond", "append_to_window"),
    ("konstruct.orchestrator.pipeline.respond", "finish"),
    ("memory.indexing", "drain"),
    ("memory.indexing", "index_messages"),
    ("memory.indexing", "_store"),
]
# Of the functions that update a channel.
STEPS_OF_CHANNELS = [
    ("konstruct.channels.delivery", "record_post"),
    ("konstruct.channels.delivery", "update_post"),
]
# `after` one step is `before` the next one. These points are distinct.
POINTS = [f"before {step}" for _, step in STEPS] + [
    "after finish",
    "after index_messages",
    "after _store",
]


def breakable(module: Any, name: str, directory: Path) -> None:
    """Wrap a function with the two points."""
    function: Callable[..., Any] = getattr(module, name)

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        die_if_ordered(directory / f"before {name}")
        result = function(*args, **kwargs)
        die_if_ordered(directory / f"after {name}")
        return result

    setattr(module, name, step)


def die_if_ordered(order: Path) -> None:
    """Follow the order for this point if there is one."""
    try:
        order.rename(order.with_suffix(".obeyed"))
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the worker."""
    import importlib

    from konstruct.celery import app

    app.loader.import_default_modules()
    from django.conf import settings

    from konstruct.worker import run

    for module, name in (*STEPS, *STEPS_OF_CHANNELS):
        breakable(importlib.import_module(module), name, Path(sys.argv[1]))
    run(list(settings.JOB_SLOTS))


if __name__ == "__main__":
    main()
