"""Names of models, fields and choices in the language of the reader."""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.utils.translation import gettext_lazy, override


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
