"""WSGI entry point. A process that could bypass row-level security does not serve."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "konstruct.settings")
application = get_wsgi_application()

from tenants.checks.at_start import refuse_unsafe_role  # noqa: E402  (needs the apps to be loaded)

refuse_unsafe_role()
