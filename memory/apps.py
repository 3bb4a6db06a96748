"""The Django application of memory, installed in every tenant's schema."""

from django.apps import AppConfig

from memory.embedding.vectors import send_vectors_in_binary


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = "Memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        send_vectors_in_binary()
