"""The app configuration of the project's package, which contains the other apps.

It shows names of models, fields and choices in the language of the reader.
"""

import gc
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from django.apps import AppConfig, apps
from django.utils.translation import gettext_lazy, override

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

        translate_model_names()

        # Loaded modules stay: the garbage collector skips them, and forks share them.
        gc.freeze()
        gc.enable()  # settings have disabled it


def translate_model_names() -> None:
    """Show names, help texts and choices of models in the language of the reader.

    Most names of fields are those that Django derives from their attributes. Migrations do not see
    the change: it replaces derived values, not declared ones.
    """
    with override("en"):
        for config in apps.get_app_configs():
            config.verbose_name = _lazy_text(config.verbose_name)
        for model in apps.get_models():
            options = model._meta
            # The plural first: Django derives it from the singular.
            for name in ("verbose_name_plural", "verbose_name"):
                setattr(options, name, _lazy_text(getattr(options, name)))
            for field in options.fields:
                field.verbose_name = _lazy_text(field.verbose_name)
                field.help_text = _lazy_text(field.help_text)
                if field.choices:
                    field.choices = translated_choices(field.flatchoices)


def translated_choices(choices: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return choices of a model with their labels in the language of the reader."""
    return [(key, _lazy_text(label)) for key, label in choices]


def _lazy_text(text: Any) -> Any:
    return gettext_lazy(str(text)) if text else text
