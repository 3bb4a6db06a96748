"""The app configuration of the project's package, which contains the other apps."""

import gc
from collections.abc import Mapping
from typing import ClassVar, Final

from django.apps import AppConfig

from tenants.personal_data import Declaration, Export, Merge, NoPersonalData, PersonalData

_OF_SESSIONS: Final = "thread_id = ANY(%(sessions)s)"
# For a person: threads without another speaker. For a tenant: all threads.
_OF_THREADS: Final = "(%(user)s::text IS NULL OR thread_id = ANY(%(threads)s))"
_OWN_PEOPLE: Final = NoPersonalData("the tenant's own people, or operators")
_ROLES: Final = NoPersonalData("roles of the tenant's own people")
_MIGRATE: Final = NoPersonalData("made by migrate")


class KonstructConfig(AppConfig):
    """Commands and templates, and the Celery application."""

    name = "konstruct"

    # Declarations of tables that libraries bring: sessions of LangGraph, and Django's own.
    tables_without_models: ClassVar[Mapping[str, Declaration]] = {
        "checkpoints": PersonalData(
            subject="metadata ->> 'user_id'",
            where=_OF_SESSIONS,
            export=Export(
                kind="checkpoints",
                position=15,
                key=("thread_id", "checkpoint_ns", "checkpoint_id"),
                where=_OF_THREADS,
            ),
            merge=Merge(
                for_user=(
                    "UPDATE checkpoints SET"
                    " metadata = jsonb_set(metadata, '{user_id}', to_jsonb(%(to)s::text))"
                    " WHERE metadata ->> 'user_id' = %(from)s",
                )
            ),
        ),
        "checkpoint_blobs": PersonalData(
            where=_OF_SESSIONS,
            export=Export(
                kind="checkpoint_blobs",
                position=16,
                key=("thread_id", "checkpoint_ns", "channel", "version"),
                where=_OF_THREADS,
            ),
        ),
        "checkpoint_writes": PersonalData(
            where=_OF_SESSIONS,
            export=Export(
                kind="checkpoint_writes",
                position=17,
                key=("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
                where=_OF_THREADS,
            ),
        ),
        "checkpoint_migrations": _MIGRATE,
        "django_admin_log": NoPersonalData("what the team did, without the names of rows"),
        "django_content_type": _MIGRATE,
        "django_migrations": _MIGRATE,
        "django_session": NoPersonalData("log-ins of the tenant's own people"),
        "auth_user": _OWN_PEOPLE,
        "auth_user_groups": _OWN_PEOPLE,
        "auth_user_user_permissions": _OWN_PEOPLE,
        "auth_group": _ROLES,
        "auth_group_permissions": _ROLES,
        "auth_permission": _MIGRATE,
    }

    def ready(self) -> None:
        """Load the Celery application with Django, so that tasks belong to it.

        It is not imported with the package: programs without Django (supervisors of the embedded
        services, processes that end with their parent) would take twice as long to start.
        """
        import konstruct.celery
        import konstruct.checks  # noqa: F401
        from konstruct.model_names import translate_model_names

        translate_model_names()

        # Loaded modules stay: the garbage collector skips them, and forks share them.
        gc.freeze()
        gc.enable()  # settings have disabled it
