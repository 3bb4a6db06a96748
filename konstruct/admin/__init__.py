"""The tenant's admin and the operators' admin.

Django's autodiscovery, which the URLs call, imports this package, as the admin module of the app
`konstruct`. Importing the modules below registers their models and pages on the two sites
(tenants/admin/sites.py).
"""

from konstruct.admin import agents as agents
from konstruct.admin import dashboard as dashboard
from konstruct.admin import memory as memory
from konstruct.admin import operations as operations
from konstruct.admin import people as people
from konstruct.admin import security as security
from konstruct.admin import time_zones as time_zones
