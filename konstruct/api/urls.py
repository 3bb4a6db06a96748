"""URLs of the resources below /api/v1/: each module declares those of its views."""

from importlib import import_module
from pkgutil import walk_packages

from konstruct.api import resources
from konstruct.api.http.routes import ROUTES

for _module in walk_packages(resources.__path__, f"{resources.__name__}."):
    import_module(_module.name)

urlpatterns = ROUTES
