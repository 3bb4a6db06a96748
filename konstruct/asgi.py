"""ASGI entry point. A process that could bypass row-level security does not serve."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
django.setup(set_prefix=False)

from konstruct.web.application import Application  # noqa: E402  (needs the apps to be loaded)
from tenants.checks import refuse_unsafe_role  # noqa: E402  (likewise)

application = Application()
refuse_unsafe_role()
