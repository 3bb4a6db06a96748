"""The tenant's admin and the operators' admin.

Django's autodiscovery, which the URLs call, imports this package, as the admin module of the app
`konstruct`. It imports all modules below: these register their models and pages on the two sites
(tenants/admin/sites.py).
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
