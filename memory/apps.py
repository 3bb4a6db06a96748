"""The Django application of memory, installed in every tenant's schema."""

from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = "Memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memory.fields import dump_vectors_as_binary  # needs the app registry

        dump_vectors_as_binary()
