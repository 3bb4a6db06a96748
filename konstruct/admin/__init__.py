"""The tenant's admin and the operators': what a human sees of agents and their memory.

Django's autodiscovery imports this package, as the admin module of the app `konstruct`; importing
the modules below registers their models and pages on the two sites (tenants/sites.py).
"""

from konstruct.admin import (  # noqa: F401  (each registers what it shows)
    access_log,
    agents,
    arrivals,
    conversations,
    deliveries,
    escalations,
    facts,
    identities,
    installations,
    memories,
    memory_rows,
    people,
    replies,
    retention,
    tool_calls,
    windows,
)
