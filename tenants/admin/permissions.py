"""Names of permissions in the language of the reader. Django stores them in English."""

from typing import Any, Final

from django import forms
from django.contrib.auth.models import Permission
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

# Permissions that Django creates for each model.
_OF_A_MODEL: Final = {
    "add": _("Can add %(models)s"),
    "change": _("Can change %(models)s"),
    "delete": _("Can delete %(models)s"),
    "view": _("Can view %(models)s"),
}


def permission_name(permission: Permission) -> str:
    """Return the text of a permission, such as "Can view messages"."""
    action, _separator, model_name = permission.codename.partition("_")
    model = permission.content_type.model_class()
    if model is not None and model_name == model._meta.model_name and action in _OF_A_MODEL:
        return str(_OF_A_MODEL[action]) % {"models": model._meta.verbose_name_plural}
    return gettext(permission.name)


class PermissionsField(forms.ModelMultipleChoiceField):
    """Permissions of a person or of a role."""

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.content_type} | {permission_name(obj)}"
