"""Django's name for the package that holds the others."""

import gc

from django.apps import AppConfig


class KonstructConfig(AppConfig):
    """Commands and templates, and the Celery application."""

    name = "konstruct"

    def ready(self) -> None:
        """Let tasks belong to our application wherever Django is set up.

        Not imported with the package: what runs without Django (supervisors of the
        embedded services, processes that die with their parent) would start in twice the time.
        """
        import konstruct.celery  # noqa: F401

        # What is loaded stays: the collector never looks through it, and forks share it.
        gc.freeze()
        gc.enable()  # settings have disabled it
